package decide

import (
	"slices"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// unstoredRetry is the interval in which a job that is not in the accounting database yet
// is reconciled again, in case a notification was lost.
const unstoredRetry = 30 * time.Second

// awaitedRetry is the interval in which a job that others wait for is reconciled again.
const awaitedRetry = time.Minute

// final is Next for a job with a final state.
func (f *Facts) final() Action {
	switch {
	case f.Assumed: // it was cancelled together with many others
		return Action{Kind: WriteAssumed}
	case f.Job.DeletionTimestamp != nil && f.Unstored:
		return Action{Wake: f.Now.Add(unstoredRetry)}
	case f.Job.DeletionTimestamp != nil && f.ownsLeftoverPods() && (f.PodsReused || f.PodsReusable || f.IsAwaited):
		// Deleting it deletes its pods.
		return f.leftoverPods()
	case f.Job.DeletionTimestamp != nil:
		return f.removeFinalizer()
	}
	if f.ownsLeftoverPods() { // the next attempt would forget them
		return f.leftoverPods()
	}
	if f.Job.RequeueRequested() && !f.Job.EndRequested() || f.recurs() || f.isQueuedWithLeader() {
		return Action{Kind: Requeue}
	}
	gone := f.Now
	if e := f.Job.Status.EndTime; e != nil {
		gone = e.Add(f.Rules.MinJobAge)
	}
	switch {
	case f.Now.Before(gone):
		return Action{Wake: gone}
	case f.IsAwaited, len(f.SplitOff) > 0, f.Leader != nil && !f.Leader.IsFinal():
		return Action{Wake: f.Now.Add(awaitedRetry)}
	case f.Unstored:
		return Action{Wake: f.Now.Add(unstoredRetry)}
	}
	return Action{Kind: Delete}
}

// removeFinalizer lets the API server delete a job after the jobs that were split off it
// have ended. They need its script, and are cancelled with it. No job may depend on it any
// more, because a job that is gone counts as a dependency that is satisfied.
func (f *Facts) removeFinalizer() Action {
	for _, t := range f.SplitOff {
		if t.Spec.Cancel == nil && !t.IsFinal() {
			return Action{Kind: CancelParts}
		}
	}
	if f.IsAwaited || slices.ContainsFunc(f.SplitOff, func(t *v1alpha1.BatchJob) bool { return !t.IsFinal() }) {
		return Action{Wake: f.Now.Add(awaitedRetry)}
	}
	return Action{Kind: RemoveFinalizer}
}
