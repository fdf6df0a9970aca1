package decide

import (
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/status"
)

// pending is Next for a job in the queue.
func (f *Facts) pending() Action {
	switch {
	case f.Job.EndRequested():
		return endWith(v1alpha1.StateCancelled, f.waitReason(), "")
	case f.leaderEnded(), f.lacksComponent():
		return endWith(v1alpha1.StateCancelled, "", "")
	case f.hasUnsplitComponents():
		return Action{Kind: SplitComponents}
	case f.PlanReason == status.ReasonDependencyNeverSatisfied && f.killInvalid():
		return endWith(v1alpha1.StateCancelled, status.ReasonDependencyNeverSatisfied, "")
	case f.PlanReason == backfill.ReasonDeadline:
		return endWith(v1alpha1.StateDeadline, status.ReasonDeadline, "")
	}
	if due := f.latestStart(); !due.IsZero() {
		if !f.Now.Before(due) {
			return endWith(v1alpha1.StateDeadline, status.ReasonDeadline, "")
		}
		return Action{Wake: due}
	}
	return Action{}
}

// waitReason returns the reason why the job is pending, which a cancelled job keeps.
func (f *Facts) waitReason() string {
	if f.PlanReason == "None" {
		return ""
	}
	return f.PlanReason
}

// killInvalid reports whether the job ends when its dependency can never be met.
func (f *Facts) killInvalid() bool {
	if k := f.Job.Spec.Job.Batch.KillOnInvalidDep; k != nil {
		return *k
	}
	return f.Rules.KillInvalid
}

// latestStart returns the latest time at which the pending job can start to end before its
// deadline; zero if it has none, or is held.
func (f *Facts) latestStart() time.Time {
	t := f.Job.Spec.Job.Time
	if t.Deadline == 0 || f.Job.Spec.Job.Hold != "" {
		return time.Time{}
	}
	shortest := t.Limit
	if t.Min > 0 {
		shortest = t.Min
	}
	// A job without a limit gets the time until its deadline, but at least a minute.
	return time.Unix(t.Deadline, 0).Add(-time.Duration(max(1, shortest)) * time.Minute)
}
