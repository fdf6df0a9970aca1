package simulation

import (
	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// podsOf returns the attempt whose pods the attempt runs in: its own, or those of an earlier
// job.
func (t *truth) podsOf(k runKey) runKey {
	if b := t.of(k.job).placed[k.attempt]; b != nil {
		return hostOf(b)
	}
	return k
}

func hostOf(b *v1alpha1.BatchJob) runKey {
	h := b.RunsIn()
	return runKey{h.JobID, h.Attempt}
}

// checkReuse checks a job that is placed in the pods of an earlier one: they are those of a
// job of the same user and partition, and no other job runs there.
func (t *truth) checkReuse(b *v1alpha1.BatchJob) {
	host := hostOf(b)
	if host.job == b.Spec.JobID {
		return
	}
	switch first := t.of(host.job).placed[host.attempt]; {
	case first == nil:
		t.violate("job %d was placed in the pods of %s, which never existed", b.Spec.JobID, host)
	case first.Spec.User != b.Spec.User || first.Namespace != b.Namespace:
		t.violate("job %d of user %s was placed in the pods of %s of user %s", b.Spec.JobID, b.Spec.User, host, first.Spec.User)
	case first.Status.Partition != b.Status.Partition:
		t.violate("job %d of partition %s was placed in the pods of %s of partition %s", b.Spec.JobID,
			b.Status.Partition, host, first.Status.Partition)
	case !sameCPUs(first, b):
		t.violate("job %d was placed in the pods of %s, which have other CPUs", b.Spec.JobID, host)
	case podTemplate(first) != podTemplate(b):
		t.violate("job %d was placed in the pods of %s, which are not as its own", b.Spec.JobID, host)
	}
	for _, o := range t.sim.api.list(kindJob) {
		x := current(o.(*v1alpha1.BatchJob)) //nolint:forcetypeassert // of that kind
		if x.Spec.JobID != b.Spec.JobID && x.HoldsAllocation() && hostOf(x) == host {
			t.violate("jobs %d and %d run in the pods of %s", b.Spec.JobID, x.Spec.JobID, host)
		}
	}
}

// sameCPUs reports whether both jobs have the same CPUs of the same node.
func sameCPUs(a, b *v1alpha1.BatchJob) bool {
	m, n := a.Status.Allocation.Nodes, b.Status.Allocation.Nodes
	return len(m) == 1 && len(n) == 1 && m[0].Node == n[0].Node && m[0].CPUIDs == n[0].CPUIDs
}

// podReused notes that the agent in the pod of the attempt host has received another job.
func (t *truth) podReused(host, k runKey) {
	t.seen["jobs ran in reused pods"]++
	if t.podsOf(k) != host {
		t.violate("the agent of %s received %s, which runs in the pods of %s", host, k, t.podsOf(k))
	}
}

// checkPod checks that a script starts in a pod of its user that is on the job's node.
func (t *truth) checkPod(k runKey, b *v1alpha1.BatchJob) {
	p := t.sim.machine.pod(k, 0)
	switch {
	case p == nil:
		t.violate("job %s began without a pod", k)
	case p.Namespace != b.Namespace || p.Annotations[wire.AnnotationPodTemplateHash] != podTemplate(b):
		t.violate("job %s of user %s began in pod %s/%s", k, b.Spec.User, p.Namespace, p.Name)
	case p.Spec.NodeName != b.Status.Allocation.Nodes[0].Node:
		t.violate("job %s began on node %s", k, p.Spec.NodeName)
	}
}

// reuses stores a job that ended and, in the pods of the first such job, one that runs.
func (s *simulation) reuses(change func(*v1alpha1.BatchJob)) {
	place := func(b *v1alpha1.BatchJob) { b.Spec.User, b.Status.Partition = "a", "debug" }
	s.api.put(aJob(s, func(b *v1alpha1.BatchJob) {
		place(b)
		b.Status.State = v1alpha1.StateCompleted
	}))
	s.api.put(aJob(s, func(b *v1alpha1.BatchJob) {
		place(b)
		b.Status.Pods = &v1alpha1.PodsOf{JobID: 1, Attempt: 1}
		if change != nil {
			change(b)
		}
	}))
}
