package backfill

import (
	"cmp"
	"slices"
	"strings"
)

// pickConstraintCounts returns as many nodes of each set as its count, and then the other
// nodes that the job needs. Nodes that are in few sets are chosen first, so that nodes in
// several sets are left for the sets that need them. If the first such nodes cannot run all
// tasks, it chooses those with the highest capacity.
func (j *Job) pickConstraintCounts(all []candidate) []candidate {
	if p := j.pickWithCounts(all); p != nil {
		return p
	}
	return j.pickWithCounts(byCapacity(all, 0))
}

// pickWithCounts is pickConstraintCounts with one order of the candidates: among
// nodes that are in the same number of sets, the first ones are chosen.
func (j *Job) pickWithCounts(all []candidate) []candidate {
	only := *j
	only.Required = slices.Clone(j.Required)
	rest := slices.Clone(all)
	slices.SortStableFunc(rest, func(a, b candidate) int { return j.countsServed(a.node) - j.countsServed(b.node) })
	parts := slices.Clone(j.ConstraintCounts)
	slices.SortStableFunc(parts, func(a, b ConstraintCount) int { return cmp.Compare(a.Nodes.Len(), b.Nodes.Len()) })
	for _, p := range parts {
		left := p.Count
		rest = slices.DeleteFunc(rest, func(c candidate) bool {
			if left == 0 || !p.Nodes.Has(c.node) {
				return false
			}
			left--
			only.Required = append(only.Required, c.node)
			return true
		})
		if left > 0 {
			return nil
		}
	}
	slices.Sort(only.Required)
	only.Required = slices.Compact(only.Required)
	return only.pick(all)
}

// countsServed returns how many sets of ConstraintCounts contain the node.
func (j *Job) countsServed(node int) (n int) {
	for i := range j.ConstraintCounts {
		if j.ConstraintCounts[i].Nodes.Has(node) {
			n++
		}
	}
	return n
}

// pickContiguous returns nodes with consecutive positions. all is in the order
// of positions.
func (e *engine) pickContiguous(j *requestShape, all []candidate) []candidate {
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && e.positionOf(all[to].node) == e.positionOf(all[to-1].node)+1 {
			to++
		}
		for first := from; first < to; first++ {
			for last := first + j.fewestNodes(); last <= to; last++ {
				if j.MaxNodes > 0 && last-first > j.MaxNodes {
					break
				}
				only := j.Job
				only.MinNodes, only.MaxNodes = last-first, last-first
				if p := only.pick(all[first:last]); p != nil {
					return p
				}
			}
		}
		from = to
	}
	return nil
}

// pickByTopology returns nodes below as few switches as possible: those of the lowest level
// of the topology at which one switch has enough nodes, and there of the switch with the
// fewest candidates. If the number of switches is limited, it returns nodes of at most that
// many leaf switches, or nil.
func (e *engine) pickByTopology(s *requestShape, j *Job, in interval, all []candidate) []candidate {
	bound := s.Switches > 0 && (j.SwitchesUntil == 0 || in.start < j.SwitchesUntil)
	deepest := 0
	for i := range all {
		deepest = max(deepest, len(e.topology[all[i].node]))
	}
	for depth := deepest; depth > 0; depth-- {
		var best []candidate
		for _, group := range e.groupByPath(all, depth) {
			if p := s.pick(group); p != nil && (best == nil || len(group) < len(best)) {
				best = group
			}
		}
		if best != nil {
			if p := s.pick(best); !bound || e.countLeaves(p) <= s.Switches {
				return p
			}
		}
	}
	if !bound {
		return s.pick(all)
	}
	return e.pickLeaves(s, all)
}

// groupByPath groups the candidates by the first depth elements of their paths,
// in the order of the groups' first nodes.
func (e *engine) groupByPath(all []candidate, depth int) [][]candidate {
	var out [][]candidate
	at := map[string]int{}
	for _, c := range all {
		p := e.topology[c.node]
		key := strings.Join(p[:min(depth, len(p))], "\x00")
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], c)
	}
	return out
}

// countLeaves returns the number of leaf switches of the nodes.
func (e *engine) countLeaves(nodes []candidate) int {
	return len(e.groupByPath(nodes, int(^uint(0)>>1)))
}

// pickLeaves returns nodes of at most s.Switches leaf switches, those with the highest
// capacity, or nil.
func (e *engine) pickLeaves(s *requestShape, all []candidate) []candidate {
	leaves := e.groupByPath(all, int(^uint(0)>>1))
	slices.SortStableFunc(leaves, func(a, b []candidate) int { return cmp.Compare(totalTasks(b), totalTasks(a)) })
	for n := 1; n <= min(s.Switches, len(leaves)); n++ {
		if p := s.pick(inNodeOrder(slices.Concat(leaves[:n]...))); p != nil {
			return p
		}
	}
	return nil
}
