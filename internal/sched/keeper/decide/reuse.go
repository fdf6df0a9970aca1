package decide

import (
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// reusePause is the interval in which waiting pods are checked.
const reusePause = 500 * time.Millisecond

// ownsLeftoverPods reports whether the job's own pods have outlived it.
func (f *Facts) ownsLeftoverPods() bool {
	p := f.Job.Status.Pods
	return p != nil && p.JobID == f.Job.Spec.JobID
}

// leftoverPods is Next for a job with a final state whose pods have outlived it:
// they are deleted when no job can use them.
func (f *Facts) leftoverPods() Action {
	live := f.livePods()
	switch {
	case f.PodsReused:
		return Action{Wake: f.Now.Add(time.Minute)}
	case f.PodsReusable:
		return Action{Wake: f.Now.Add(reusePause)}
	case !f.Progress.CleanedUp, len(f.missingDeletions(live)) > 0:
		return Action{Kind: CleanUp, Deletions: f.deletions(live), Wake: f.Now.Add(killMargin)}
	case len(live) > 0:
		return Action{Wake: f.Now.Add(killMargin)}
	}
	return Action{Kind: ClearPods}
}

// MayLeavePods reports whether a job with that outcome may leave its pods to
// another one.
func MayLeavePods(o *Outcome) bool {
	return o.Final == v1alpha1.StateCompleted || o.Final == v1alpha1.StateFailed
}
