package decide

import (
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// awaitNodes returns the action for a placed job whose nodes are not all there: it waits for
// those that boot, and is over if one does not come, was lost or was set down. ok is false if
// all nodes are there; then ready is since when at least one of them runs.
func (f *Facts) awaitNodes() (a Action, ready time.Time, ok bool) {
	waits := false
	for i := range f.Job.Status.Allocation.Nodes {
		n := f.Job.Status.Allocation.Nodes[i].ObjectName()
		var b Boot
		if f.Boot != nil {
			b = f.Boot(n)
		}
		switch {
		case b.Failed != "":
			return f.bootFailed("node " + n + " did not boot: " + b.Failed), ready, true
		case b.Waiting:
			waits = true
		case f.Unreachable(n): // nothing has begun there, so there is nothing to wait for
			return returnToQueue("node " + n + " was lost"), ready, true
		case f.Down != nil && f.Down(n): // its agent may never report
			return returnToQueue("node " + n + " was set down"), ready, true
		}
		ready = latest(ready, b.Ready)
	}
	return Action{}, ready, waits
}

// bootFailed returns the action for a job one of whose nodes does not come: it is requeued, or
// ends in BOOT_FAIL if it must not be.
func (f *Facts) bootFailed(why string) Action {
	if f.Job.Spec.Workload != nil || f.requeueAllowed() {
		return returnToQueue(why)
	}
	return endWith(v1alpha1.StateBootFail, status.ReasonNodeDown, why)
}
