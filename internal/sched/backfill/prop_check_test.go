package backfill

import (
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// start moves what a plan starts from Pending to Running and returns how many.
func start(s *Snapshot, p Plan) int {
	started := 0
	for _, d := range p.Decisions {
		if !d.StartNow {
			continue
		}
		i := slices.IndexFunc(s.Pending, func(j Job) bool { return j.ID == d.ID })
		j := s.Pending[i]
		s.Pending = slices.Clone(s.Pending)
		if j.Copies > 1 {
			s.Pending[i].Copies--
		} else {
			s.Pending = slices.Delete(s.Pending, i, i+1)
		}
		r := Running{ID: j.ID, End: endOf(s.Now, d.Duration), Exclusive: j.Exclusive,
			User: j.User, UserExclusive: j.UserExclusive, Share: j.Share, Licenses: j.Licenses, Reservation: j.reservation(d.Choice)}
		r.End = min(r.End, lastsIn(s, r.Reservation))
		for _, a := range d.Nodes {
			r.Allocation = append(r.Allocation, NodeAllocation{Node: a.Node, CPUs: a.CPUs, Memory: a.Memory, GRES: a.GRES})
		}
		s.Running = append(s.Running, r)
		started++
	}
	return started
}

// lastsIn returns when a job that starts now in the reservation must have ended.
func lastsIn(s *Snapshot, reservation string) int64 {
	for _, b := range s.AdvanceReservations {
		if reservation != "" && b.Name == reservation && !b.Flex && b.Start <= s.Now && s.Now < b.End {
			return b.End
		}
	}
	return Forever
}

// checkKept fails if jobs that start now, outside of the reservations, leave
// fewer units of a license than those reserve.
func checkKept(t *rapid.T, s *Snapshot, started int) {
	for _, b := range s.AdvanceReservations {
		for _, l := range b.Licenses {
			free, inside, outside := int64(0), int64(0), false
			for i := range s.Licenses {
				if s.Licenses[i].Name == l.Name {
					free = s.Licenses[i].Total
				}
			}
			for i, r := range s.Running {
				for _, h := range r.Licenses {
					free -= h.Total
					if r.Reservation == b.Name {
						inside += h.Total
					} else if i >= len(s.Running)-started && min(r.End, b.End) > max(s.Now, b.Start) {
						outside = true
					}
				}
			}
			if outside && b.Start <= s.Now && free < l.Total-inside {
				t.Fatalf("%d of license %s are free, reservation %s keeps %d", free, l.Name, b.Name, l.Total-inside)
			}
		}
	}
}

// checkHeld fails if the running jobs hold more than there is.
func checkHeld(t *rapid.T, s *Snapshot) {
	for i := range s.Nodes {
		checkNode(t, s, i)
	}
	for _, l := range s.Licenses {
		held := int64(0)
		for _, r := range s.Running {
			for _, h := range r.Licenses {
				if h.Name == l.Name {
					held += h.Total
				}
			}
		}
		if held > l.Total {
			t.Fatalf("%d of %d licenses %s are held", held, l.Total, l.Name)
		}
	}
}

func checkNode(t *rapid.T, s *Snapshot, i int) {
	n := &s.Nodes[i]
	var apart, all CPUSet
	load, most := map[int]int{}, 2
	memory, gpus, jobs, exclusive := int64(0), int64(0), 0, false
	users, alone := map[int64]bool{}, false
	for _, r := range s.Running {
		for _, h := range r.Allocation {
			if h.Node != i {
				continue
			}
			if r.sharers() <= 1 {
				if all.Intersects(h.CPUs) {
					t.Fatalf("job %d shares CPUs %s of node %d", r.ID, h.CPUs, i)
				}
				apart.Union(h.CPUs)
			} else {
				for _, c := range h.CPUs.Members() {
					if load[c]++; load[c] > most || apart.Has(c) {
						t.Fatalf("job %d is one of %d on CPU %d of node %d", r.ID, load[c], c, i)
					}
				}
			}
			all.Union(h.CPUs)
			memory, jobs, exclusive = memory+h.Memory, jobs+1, exclusive || r.Exclusive
			users[r.User], alone = true, alone || r.UserExclusive
			for _, g := range h.GRES {
				gpus += g.Count
			}
		}
	}
	have := int64(0)
	for _, g := range n.GRES {
		have += g.Count
	}
	if all.Len() > n.CPUs || memory > n.Memory || gpus > have || (exclusive && jobs > 1) || (alone && len(users) > 1) {
		t.Fatalf("node %d over-committed: %s of %d CPUs, %d of %d MiB, %d of %d GPUs, %d jobs of %d users, exclusive %v, for one user %v",
			i, all, n.CPUs, memory, n.Memory, gpus, have, jobs, len(users), exclusive, alone)
	}
}

// checkReservations fails if a job that starts now uses nodes that are reserved for others.
func checkReservations(t *rapid.T, s *Snapshot, j Job, d Decision) {
	if !d.StartNow {
		return
	}
	mine := j.reservation(d.Choice)
	end := min(endOf(s.Now, d.Duration), lastsIn(s, mine))
	if j.Deadline > 0 && end > j.Deadline {
		t.Fatalf("job %d would end at %d, its deadline is %d", j.ID, end, j.Deadline)
	}
	for _, b := range s.AdvanceReservations {
		for _, a := range d.Nodes {
			overlaps := b.Start < end && b.End > s.Now
			own, cores := b.Name != "" && b.Name == mine, b.Cores[a.Node]
			if inside := cores.Clone(); inside.Len() > 0 && overlaps {
				inside.Union(a.CPUs)
				if own && inside.Len() > cores.Len() || !own && cores.Intersects(a.CPUs) {
					t.Fatalf("job %d of reservation %q starts on CPUs %s of node %d, of which %q keeps %s in %d-%d, until %d", j.ID, j.Reservation, a.CPUs, a.Node, b.Name, cores, b.Start, b.End, end)
				}
			}
			if own && !b.Flex && (!b.includes(a.Node) || b.Start > s.Now || b.End <= s.Now) ||
				!own && overlaps && b.Nodes.Has(a.Node) {
				t.Fatalf("job %d of reservation %q starts on node %d, kept for %q in %d-%d, until %d", j.ID, j.Reservation, a.Node, b.Name, b.Start, b.End, end)
			}
		}
	}
	parts := 0
	for i, a := range d.Nodes {
		if len(j.ConstraintCounts) > 0 && j.ConstraintCounts[0].Nodes.Has(a.Node) {
			parts++
		}
		if j.Contiguous && len(j.ConstraintCounts) == 0 && j.Segment == 0 && i > 0 && a.Node != d.Nodes[i-1].Node+1 {
			t.Fatalf("job %d requests contiguous nodes and got %+v", j.ID, d.Nodes)
		}
	}
	inBlock := map[string]int{}
	for _, a := range d.Nodes {
		inBlock[strings.Join(s.Nodes[a.Node].TopologyPath, ".")]++
	}
	for block, n := range inBlock {
		if j.Segment > 0 && len(j.ConstraintCounts) == 0 && (n%j.Segment != 0 || j.SegmentLayout == SegmentsSpread && n > j.Segment) {
			t.Fatalf("job %d requests segments of %d nodes (%d) and got %d nodes of block %q", j.ID, j.Segment, j.SegmentLayout, n, block)
		}
	}
	if len(j.ConstraintCounts) > 0 && parts < j.ConstraintCounts[0].Count {
		t.Fatalf("job %d got %d of the %d nodes it must have", j.ID, parts, j.ConstraintCounts[0].Count)
	}
}

// checkGroups fails if a group starts in part.
func checkGroups(t *rapid.T, s *Snapshot, p Plan) {
	starts, waits := 0, 0
	for _, d := range p.Decisions {
		i := slices.IndexFunc(s.Pending, func(j Job) bool { return j.ID == d.ID })
		switch {
		case s.Pending[i].Group == 0:
		case d.StartNow:
			starts++
		default:
			waits++
		}
	}
	if starts > 0 && waits > 0 {
		t.Fatalf("of a group %d start and %d do not", starts, waits)
	}
}

// checkGang fails if a decision gives a job less than it requested.
func checkGang(t *rapid.T, s *Snapshot, j Job, d Decision) {
	if d.Nodes == nil {
		return
	}
	tasks, seen := 0, map[int]bool{}
	for _, a := range d.Nodes {
		if seen[a.Node] || a.Tasks < 1 || s.Nodes[a.Node].Unavailable || (j.ExactPerNode && a.Tasks != j.TasksPerNode) {
			t.Fatalf("job %d: bad assignment %+v", j.ID, a)
		}
		if a.CPUCount < a.Tasks*max(1, j.CPUsPerTask) || d.StartNow && a.CPUs.Len() != a.CPUCount {
			t.Fatalf("job %d: %d CPUs (%s) for %d tasks", j.ID, a.CPUCount, a.CPUs, a.Tasks)
		}
		seen[a.Node] = true
		tasks += a.Tasks
	}
	if len(d.Nodes) < j.MinNodes || (j.MaxNodes > 0 && len(d.Nodes) > j.MaxNodes) || tasks != j.tasksWanted(len(d.Nodes)) {
		t.Fatalf("job %d got %d nodes and %d tasks, requested %+v", j.ID, len(d.Nodes), tasks, j)
	}
}
