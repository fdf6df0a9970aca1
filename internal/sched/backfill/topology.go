package backfill

import (
	"cmp"
	"slices"
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
