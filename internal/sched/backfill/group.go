package backfill

// decideGroup appends the decisions about the jobs of one group, which start
// together or not at all. All are decided when the first of them is considered.
func (p *planner) decideGroup(out []Decision, jobs []*Job) []Decision {
	first := len(out)
	for _, k := range jobs {
		out = append(out, Decision{ID: k.ID, Duration: k.Duration, Reason: p.ineligibleReason(k)})
	}
	all := out[first:]
	if p.startTogether(jobs, all) {
		return out
	}
	if p.waitTogether(jobs, all) {
		p.later = append(p.later, later{group: jobs, at: first})
	}
	return out
}

// membersOf returns the pending jobs of a group in the queue's order.
func (p *planner) membersOf(group int64) []*Job {
	if p.membersByGroup == nil {
		p.membersByGroup = map[int64][]*Job{}
		for _, j := range p.pending {
			if j.Group != 0 {
				p.membersByGroup[j.Group] = append(p.membersByGroup[j.Group], j)
			}
		}
	}
	return p.membersByGroup[group]
}

// startTogether starts the jobs now if every one of them fits.
func (p *planner) startTogether(jobs []*Job, all []Decision) bool {
	if p.stopped {
		return false
	}
	for i, j := range jobs {
		if all[i].Reason != "" || j.Begin > p.now {
			return false
		}
	}
	p.beginGroup(jobs)
	defer clear(p.groupNodes)
	for i, j := range jobs {
		if p.overLimit(j) == "" && p.startNow(j, &all[i]) == "" && all[i].StartNow {
			p.noteGroupNodes(j.ID, all[i].Nodes)
			continue
		}
		for k := range i {
			p.unbook(jobs[k], &all[k])
			all[k] = Decision{ID: jobs[k].ID, Duration: jobs[k].Duration}
		}
		return false
	}
	return true
}

// beginGroup records the nodes that the members of a group require. Components of a
// heterogeneous job never share a node.
func (e *engine) beginGroup(jobs []*Job) {
	if e.groupNodes == nil {
		e.groupNodes = map[int]int64{}
	}
	for _, j := range jobs {
		for _, node := range j.Required {
			e.groupNodes[node] = j.ID
		}
	}
}

// noteGroupNodes records the nodes that the member with the id was assigned.
func (e *engine) noteGroupNodes(id int64, nodes []Assignment) {
	for i := range nodes {
		e.groupNodes[nodes[i].Node] = id
	}
}

// unbook undoes startNow.
func (p *planner) unbook(j *Job, d *Decision) {
	c := p.claim(j, d)
	p.occupy(&c, -1)
	p.releaseCPUs(d.Nodes, j.sharers() > 1)
	for _, l := range j.Limits {
		p.limitsLeft[l] += p.s.Limits[l].usage(j, d.Nodes)
	}
}

// waitTogether books the earliest time at which all of the jobs fit, and sets the reasons
// why they wait. later reports whether their start must be planned after all others'.
func (p *planner) waitTogether(jobs []*Job, all []Decision) (later bool) {
	aside := ""
	for i, j := range jobs {
		if all[i].Reason == "" {
			all[i].Reason = p.overLimit(j)
		}
		if all[i].Reason == "" {
			all[i].Reason = p.neverRunnable(j)
		}
		aside = all[i].Reason + aside
	}
	if aside != "" { // the others wait for the one that cannot be planned
		p.explain(jobs, all)
		return false
	}
	p.explain(jobs, all)
	p.stopped = p.stopped || p.s.Policy.NoBackfill
	if p.reservations(jobs[0].Partition) > 0 {
		p.reserved[p.partitionIndex(jobs[0].Partition)]++
		p.reserveTogether(jobs, all)
		return false
	}
	return p.s.Policy.PlanAll
}

// explain sets the reason of the jobs that have none. If the first of them in
// its partition waits for resources, so do the others, as in Slurm.
func (p *planner) explain(jobs []*Job, all []Decision) {
	if p.startsOnly {
		return
	}
	first := map[int]bool{}
	for i, j := range jobs {
		if all[i].Reason != "" {
			continue
		}
		all[i].Reason = p.reason(j)
		if all[i].Reason == ReasonPriority && first[j.Partition] {
			all[i].Reason = ReasonResources
		}
		if all[i].Reason == ReasonResources {
			first[j.Partition] = true
		}
	}
}

// maxTries is the maximum number of times that are tried for a group.
const maxTries = 256

// reserveTogether books the earliest time at which all of the jobs fit, if there is one.
func (p *planner) reserveTogether(jobs []*Job, all []Decision) {
	at := p.now + 1
	for range maxTries {
		next, ok := p.bookAt(jobs, all, at)
		if !ok {
			return
		}
		if next == at {
			return
		}
		at = next
	}
}

// bookAt books every job at at. If one fits only later, it books nothing and returns that
// time. ok is false if one never fits.
func (p *planner) bookAt(jobs []*Job, all []Decision, at int64) (next int64, ok bool) {
	p.beginGroup(jobs)
	defer clear(p.groupNodes)
	for i, j := range jobs {
		d := &all[i]
		until := Forever
		for n := range j.choices() {
			if start, nodes, fits := p.earliest(p.shapeOf(j, n), j, max(at, j.Begin), until); fits {
				d.Start, d.Nodes, d.Choice = start, nodes, n
				until = start - 1
			}
		}
		if d.Nodes != nil && d.Start == at {
			p.book(j, d)
			p.noteGroupNodes(j.ID, d.Nodes)
			continue
		}
		next, ok = d.Start, d.Nodes != nil
		d.Start, d.Nodes, d.Choice = 0, nil, 0
		for k := range i {
			c := p.claim(jobs[k], &all[k])
			p.occupy(&c, -1)
			all[k].Start, all[k].Nodes, all[k].Choice = 0, nil, 0
		}
		return next, ok
	}
	return at, true
}
