package v1alpha1

// ObjectName returns the name of the node's object in Kubernetes.
func (a *NodeAllocation) ObjectName() string {
	if a.Node != "" {
		return a.Node
	}
	return a.Name
}

// RunsIn names the pods that the job's present attempt runs in: its own, or those of a job
// before it.
func (b *BatchJob) RunsIn() PodsOf {
	if b.Status.Pods != nil {
		return *b.Status.Pods
	}
	return PodsOf{JobID: b.Spec.JobID, Attempt: b.Status.Attempt}
}
