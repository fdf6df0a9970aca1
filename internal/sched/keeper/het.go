package keeper

import (
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// togetherTime is how long the components of a heterogeneous job may take to
// be placed one after the other.
const togetherTime = 10 * time.Second

// unsplit tells whether components are still to be made jobs of their own.
func (f *Facts) unsplit() bool { return len(f.SplitOff) < len(f.Job.Spec.Components) }

// apart says what becomes of a component that holds nodes while another one
// does not, or has lost one of its own, or whose first component, which runs the
// script, has ended. ok is false as long as all is well.
func (f *Facts) apart() (a Action, ok bool) {
	for _, s := range f.Siblings {
		if s.Status.State == v1alpha1.StateNodeFail || s.Status.State == v1alpha1.StateCompleting && s.Status.Final == v1alpha1.StateNodeFail {
			return end(v1alpha1.StateNodeFail, status.ReasonNodeDown, "a node of another component was lost"), true
		}
		waits := s.Status.State == "" || s.Status.State == v1alpha1.StatePending
		if waits && s.Spec.Cancel == nil && !f.Now.Before(f.Job.Status.StartTime.Add(togetherTime)) {
			return giveBack("another component of the job does not run"), true
		}
	}
	return f.followLeader()
}

// togetherDue is when a component that does not run yet is missed; zero: never.
func (f *Facts) togetherDue() time.Time {
	for _, s := range f.Siblings {
		if s.Status.State == "" || s.Status.State == v1alpha1.StatePending {
			return f.Job.Status.StartTime.Add(togetherTime)
		}
	}
	return time.Time{}
}

// followLeader ends a further component when the first one has.
func (f *Facts) followLeader() (a Action, ok bool) {
	l := f.Leader
	switch {
	case l == nil:
		return Action{}, false
	case l.Status.State == v1alpha1.StateCompleting && l.Status.Final == v1alpha1.StatePending, l.Spec.Requeues > l.Status.Requeues:
		return requested(), true
	case l.Status.State == v1alpha1.StateCompleting:
		return end(l.Status.Final, l.Status.Reason, ""), true
	case l.IsFinal():
		return end(l.Status.State, l.Status.Reason, ""), true
	}
	return Action{}, false
}
