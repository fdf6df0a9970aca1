package backfill

import "cmp"

// defers reports whether j is considered after the other jobs of the queue, in the order of
// the policy, because it can only be backfilled.
func (p *planner) defers(j *Job) bool {
	return p.s.Policy.BackfillOrder != ByPriority && p.reservations(j.Partition) <= 0
}

// compareBackfill compares jobs that can only be backfilled: negative if a is considered
// before b.
func (p *planner) compareBackfill(a, b *Job) int {
	if p.s.Policy.BackfillOrder == BySlowdown {
		return cmp.Compare(b.slowdown(p.now), a.slowdown(p.now))
	}
	return cmp.Compare(a.Duration, b.Duration)
}

// leastWait is added to the time that a job has waited, in seconds, so that of jobs that were
// just submitted the shortest comes first.
const leastWait = 60

// slowdown returns how long the job has waited in proportion to its time limit.
func (j *Job) slowdown(now int64) float64 {
	waited := int64(0)
	if j.Since > 0 {
		waited = max(0, now-j.Since)
	}
	return float64(waited+leastWait) / float64(max(1, j.Duration))
}
