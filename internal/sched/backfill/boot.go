package backfill

import (
	"cmp"
	"slices"
)

// A node with Boot > 0 does not run yet. In the profile it is free, but an advance
// reservation of its own (bootReservation) keeps it from jobs until it could have booted, so
// that planned starts include the time to boot. A job that can start now only if some nodes
// boot for it gets them now, under the name of that reservation, and waits for them.

// bootReservation is the name of the advance reservations of nodes that have to boot. No
// reservation of a cluster has such a name.
const bootReservation = "\x00boot"

// withBootReservations returns s with the advance reservations of its nodes that have to boot,
// or s itself if all nodes run.
func (s *Snapshot) withBootReservations() *Snapshot {
	var nodes map[int64]*NodeSet // by Boot
	for i := range s.Nodes {
		boot := s.Nodes[i].Boot
		if boot <= 0 || s.Nodes[i].Unavailable {
			continue
		}
		if nodes == nil {
			nodes = map[int64]*NodeSet{}
		}
		if nodes[boot] == nil {
			nodes[boot] = &NodeSet{}
		}
		nodes[boot].Add(i)
	}
	if nodes == nil {
		return s
	}
	out := *s
	out.AdvanceReservations = slices.Clone(s.AdvanceReservations)
	for boot, set := range nodes {
		out.AdvanceReservations = append(out.AdvanceReservations, AdvanceReservation{
			Name: bootReservation, Start: s.Now, End: s.Now + boot, Nodes: *set, Flex: true,
		})
	}
	slices.SortStableFunc(out.AdvanceReservations, func(a, b AdvanceReservation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.End, b.End))
	})
	return &out
}

// mayBoot reports whether nodes may boot for one of the job's choices of nodes: not for a job
// in an advance reservation, whose nodes have to run when it begins.
func (j *Job) mayBoot(choice int) bool { return j.reservation(choice) == "" }

// bootOf returns how long the slowest of the nodes takes to boot.
func (e *engine) bootOf(nodes []Assignment) int64 {
	boot := int64(0)
	for i := range nodes {
		boot = max(boot, e.nodes[nodes[i].Node].Boot)
	}
	return boot
}

// startBooting starts the job on nodes of which some have yet to boot. If nodes that run will
// be free for the job before that, it books these instead. It returns the reason of a limit
// that the job would exceed with its nodes.
func (p *planner) startBooting(j *Job, d *Decision) (over string) {
	for n := range j.choices() {
		if !j.mayBoot(n) {
			continue
		}
		nodes, boot := p.fitsBooting(p.shapeOf(j, j.choices()+n), j)
		if nodes == nil {
			continue
		}
		if over = p.exceededLimit(j, nodes); over != "" {
			p.releaseCPUs(nodes, j.sharers() > 1)
			continue
		}
		if !p.s.Policy.BootEagerly && len(p.groupNodes) == 0 && p.reserveRunning(j, d, p.now+boot-1) {
			p.releaseCPUs(nodes, j.sharers() > 1)
			return ""
		}
		d.StartNow, d.Start, d.Choice, d.Nodes, d.Boot = true, p.now, n, nodes, boot
		p.book(j, d)
		p.consumeLimits(j, nodes)
		return ""
	}
	return over
}

// maxBootTries is how often fitsBooting searches with a longer time to boot.
const maxBootTries = 3

// fitsBooting returns nodes and CPUs for the job from now on, and the time that they take to
// boot. The job holds them for that time in addition to its own. It returns nil if there are
// none.
func (e *engine) fitsBooting(s *requestShape, j *Job) (nodes []Assignment, boot int64) {
	for try := range maxBootTries {
		assumed := boot
		if try == maxBootTries-1 {
			assumed = e.longestBoot
		}
		if nodes = e.fitsNow(s, j, addDurations(j.Duration, assumed)); nodes == nil {
			return nil, 0
		}
		if boot = e.bootOf(nodes); boot <= assumed {
			return nodes, boot
		}
		e.releaseCPUs(nodes, j.sharers() > 1)
	}
	return nil, 0
}

// takes returns how long the job has its nodes.
func (d *Decision) takes() int64 { return addDurations(d.Duration, d.Boot) }

// addDurations returns the sum of two durations; Forever has no end.
func addDurations(a, b int64) int64 {
	if a >= Forever-b {
		return Forever
	}
	return a + b
}

// reserveRunning books the earliest start of the job on nodes that run, if there is one not
// later than until.
func (p *planner) reserveRunning(j *Job, d *Decision, until int64) bool {
	for n := range j.choices() {
		at, nodes, ok := p.earliest(p.shapeOf(j, n), j, p.now+1, until)
		if ok && p.bootOf(nodes) == 0 {
			d.Start, d.Nodes, d.Choice = at, nodes, n
			until = at - 1
		}
	}
	if d.Nodes == nil {
		return false
	}
	p.book(j, d)
	return true
}
