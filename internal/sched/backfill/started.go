package backfill

// Started returns the running job that j becomes when it starts according to d.
func (j *Job) Started(d *Decision) Running {
	r := Running{
		ID:            j.ID,
		End:           endOf(d.Start, d.takes()),
		Allocation:    make([]NodeAllocation, len(d.Nodes)),
		Exclusive:     j.Exclusive,
		User:          j.User,
		UserExclusive: j.UserExclusive,
		Share:         j.Share,
		Licenses:      j.Licenses,
		Reservation:   j.reservation(d.Choice),
	}
	for i := range d.Nodes {
		a := &d.Nodes[i]
		r.Allocation[i] = NodeAllocation{Node: a.Node, CPUs: a.CPUs, Memory: a.Memory, GRES: a.GRES}
	}
	return r
}
