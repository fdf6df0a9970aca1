package backfill

import (
	"cmp"
	"slices"
)

// byPriority orders pending jobs: highest priority first, then first come,
// then lowest id. It sorts a list of indexes, so that Snapshot stays as it is.
func byPriority(jobs []Job) []int {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &jobs[a], &jobs[b]
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(x.Submit, y.Submit), cmp.Compare(x.ID, y.ID))
	})
	return order
}

// requiredFirst moves the nodes the job names to the front. It reports false
// when one of them is no candidate.
func (j *Job) requiredFirst(all []candidate) ([]candidate, bool) {
	if len(j.Required) == 0 {
		return all, true
	}
	out := make([]candidate, 0, len(all))
	var rest []candidate
	for _, c := range all {
		if slices.Contains(j.Required, c.node) {
			out = append(out, c)
		} else {
			rest = append(rest, c)
		}
	}
	return append(out, rest...), len(out) == len(j.Required)
}

// byCapacity orders the candidates after the first keep by falling capacity.
func byCapacity(all []candidate, keep int) []candidate {
	out := slices.Clone(all)
	slices.SortStableFunc(out[keep:], func(a, b candidate) int { return cmp.Compare(b.tasks, a.tasks) })
	return out
}

func inNodeOrder(chosen []candidate) []candidate {
	out := slices.Clone(chosen)
	slices.SortFunc(out, func(a, b candidate) int { return cmp.Compare(a.node, b.node) })
	return out
}
