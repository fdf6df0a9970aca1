package backfill

import (
	"cmp"
	"slices"
)

// byPriority returns the pending jobs by priority, then by submission, then by
// id. Jobs with one ID, the parts of an array, keep their order. It sorts
// pointers, so that Snapshot does not change.
func byPriority(jobs []Job) []*Job {
	order := make([]*Job, len(jobs))
	for i := range jobs {
		order[i] = &jobs[i]
	}
	bySubmission := func(a, b *Job) int { return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ID, b.ID)) }
	if !slices.IsSortedFunc(order, bySubmission) { // they usually are
		slices.SortStableFunc(order, bySubmission)
	}
	keys := make([]priorityKey, len(jobs))
	for i, j := range order {
		keys[i] = priorityKey{^(uint64(j.Priority) ^ 1<<63), j}
	}
	for i, k := range sortStably(keys) {
		order[i] = k.job
	}
	return order
}

// priorityKey is a job with a number that is larger for lower priorities, so that sorting does not
// read the jobs, which do not fit into the processor's caches.
type priorityKey struct {
	rank uint64
	job  *Job
}

// sortStably sorts keys by rank and keeps the order of equal ones. It may overwrite keys. It is a
// radix sort: its time is linear, and bytes of the ranks that are equal in all keys cost nothing.
func sortStably(keys []priorityKey) []priorityKey {
	differing := uint64(0)
	for i := range keys {
		differing |= keys[i].rank ^ keys[0].rank
	}
	sorted := make([]priorityKey, len(keys))
	for shift := 0; differing>>shift != 0; shift += 8 {
		if byte(differing>>shift) == 0 {
			continue
		}
		var starts [257]int // of the keys with each value of the byte
		for i := range keys {
			starts[int(byte(keys[i].rank>>shift))+1]++
		}
		for b := range 256 {
			starts[b+1] += starts[b]
		}
		for _, k := range keys {
			b := byte(k.rank >> shift)
			sorted[starts[b]] = k
			starts[b]++
		}
		keys, sorted = sorted, keys
	}
	return keys
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
