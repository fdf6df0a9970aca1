package job

// LeastNodes returns the smallest number of nodes that the job can run on: the
// requested minimum, all nodes that it lists, and at least one.
func (j *Job) LeastNodes() int32 {
	return max(j.Shape.MinNodes, int32(len(j.Placement.NodeList)), 1)
}
