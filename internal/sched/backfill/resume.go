package backfill

import "slices"

// A cycle in which no job starts stays open: its reservations remain booked. If the only
// change is that jobs are added to the end of the queue, the next cycle resumes it and
// decides only about these jobs.

// closeCycle removes the bookings of the open cycle, if there is one.
func (q *Queue) closeCycle() {
	if q.open {
		q.planner.undoCycle()
		q.open = false
	}
}

// resumes reports whether a cycle at now would make the same decisions as the open cycle
// about the jobs of that cycle.
func (q *Queue) resumes(now int64) bool {
	if !q.open || q.stale || !q.planner.hasLimits(q.base.Limits) {
		return false
	}
	return now == q.planner.now || now > q.planner.now && q.timed == 0 && q.planner.steadyUntil(now)
}

// noteSubmitted updates the open cycle after w was submitted.
func (q *Queue) noteSubmitted(w *pendingJob) {
	if w.job.Group != 0 || !q.pending.isLast(w) {
		q.closeCycle()
	}
	q.submitted++
}

// isTimed reports whether the passing of time alone could let the job start or change its
// reservation: it names a time, or may find nodes in a shorter interval with the same
// amounts.
func (j *Job) isTimed() bool {
	return j.Begin > 0 || j.Deadline > 0 || j.Switches > 0 || j.Contiguous || j.SpreadJob || j.Segment > 0 ||
		len(j.ConstraintCounts) > 0
}

// hasLimits reports whether limits has the remaining amounts that the cycle assumes.
func (e *engine) hasLimits(limits []Limit) bool {
	return slices.EqualFunc(e.limitsLeft, limits, func(left int64, l Limit) bool { return left == l.Left })
}

// steadyUntil reports whether no amount is expected to change until after the second that
// begins at now.
func (e *engine) steadyUntil(now int64) bool {
	next := now + max(1, e.s.Overtime)
	return len(e.s.AdvanceReservations) == 0 && e.network == nil && !e.approximate &&
		(len(e.at) == 1 || e.at[1] > next) && (len(e.releases) == 0 || e.releases[0].end > next)
}

// resumeCycle moves the time of the open cycle to now.
func (e *engine) resumeCycle(now int64) { e.now, e.at[e.first] = now, now }
