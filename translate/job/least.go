package job

// LeastNodes returns the smallest number of nodes that the job can run on: the
// requested minimum, all nodes that it lists, and at least one.
func (j *Job) LeastNodes() int32 {
	return max(j.Shape.MinNodes, int32(len(j.Placement.NodeList)), 1)
}

// MaxSwitchWait is how long a job waits for few switches at most, in seconds: Slurm's
// default of max_switch_wait.
const MaxSwitchWait = 300

// SwitchWait returns how long the job waits for the number of switches that it requests,
// in seconds, or 0 if it requests none.
func (p *Placement) SwitchWait() int32 {
	switch {
	case p.Switches == 0:
		return 0
	case p.SwitchesWait <= 0:
		return MaxSwitchWait
	}
	return min(p.SwitchesWait, MaxSwitchWait)
}
