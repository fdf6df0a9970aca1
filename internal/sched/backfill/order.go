package backfill

import (
	"cmp"
	"slices"
)

// byPriority returns the pending jobs by priority, then by submission, then by
// id. Jobs with one ID, the parts of an array, keep their order. It sorts
// pointers, so that Snapshot does not change.
func byPriority(jobs []Job) []*Job {
	type key struct {
		priority, submit, id int64
		at                   int
	}
	keys := make([]key, len(jobs)) // contiguous in memory, unlike the jobs
	for i := range jobs {
		keys[i] = key{-jobs[i].Priority, jobs[i].Submit, jobs[i].ID, i}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.priority != b.priority {
			return cmp.Compare(a.priority, b.priority)
		}
		return cmp.Or(cmp.Compare(a.submit, b.submit), cmp.Compare(a.id, b.id), cmp.Compare(a.at, b.at))
	})
	order := make([]*Job, len(jobs))
	for i := range keys {
		order[i] = &jobs[keys[i].at]
	}
	return order
}

// compareQueueOrder compares jobs by priority, then by submission, then by id.
func compareQueueOrder(a, b *Job) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID))
}

// requiredFirst moves the job's required nodes to the front. It reports false
// if one of them is not a candidate.
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

// byCapacity returns the candidates sorted by decreasing capacity, except the first keep,
// which stay in place.
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

// positionOf returns the position of node i (see Node.Position).
func (e *engine) positionOf(i int) int {
	if e.hasPositions {
		return e.nodes[i].Position
	}
	return i
}

// inPositionOrder returns chosen in the order of positions. It does not change
// chosen, and may return it.
func (e *engine) inPositionOrder(chosen []candidate) []candidate {
	if len(chosen) <= 1 {
		return chosen
	}
	out := slices.Clone(chosen)
	slices.SortFunc(out, func(a, b candidate) int { return cmp.Compare(e.positionOf(a.node), e.positionOf(b.node)) })
	return out
}
