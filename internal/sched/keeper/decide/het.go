package decide

import (
	"slices"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// hetStartTimeout is the time in which all components of a heterogeneous job must be
// placed.
const hetStartTimeout = 10 * time.Second

// hasUnsplitComponents reports whether components are still to become jobs of their
// own.
func (f *Facts) hasUnsplitComponents() bool { return len(f.SplitOff) < len(f.Job.Spec.Components) }

// separated returns the action for a component with nodes if another component has none
// or has lost a node, or if the first component, which runs the script, has ended. ok is
// false if none of these is the case.
func (f *Facts) separated() (a Action, ok bool) {
	for _, s := range f.Siblings {
		if s.Status.State == v1alpha1.StateNodeFail ||
			s.Status.State == v1alpha1.StateCompleting && s.Status.Final == v1alpha1.StateNodeFail {
			return endWith(v1alpha1.StateNodeFail, status.ReasonNodeDown, "a node of another component was lost"), true
		}
		if f.wasPreempted(s) {
			a := requeueRequested()
			a.Outcome.Reason = status.ReasonPreempted
			return a, true
		}
		waits := s.Status.State == "" || s.Status.State == v1alpha1.StatePending
		if waits && s.Spec.Cancel == nil && !f.Now.Before(f.Job.Status.StartTime.Add(hetStartTimeout)) {
			return returnToQueue("another component of the job does not run"), true
		}
	}
	return f.endWithLeader()
}

// preemption returns the decision to preempt the job, or another component of it, which is
// written for one component after the other; nil: there is none.
func (f *Facts) preemption() *v1alpha1.Preemption {
	if p := f.Job.Status.Preempt; p != nil {
		return p
	}
	for _, s := range f.Siblings {
		if s.Status.Preempt != nil {
			return s.Status.Preempt
		}
	}
	return nil
}

// wasPreempted reports whether the other component was preempted since the job started,
// and is in the queue again.
func (f *Facts) wasPreempted(s *v1alpha1.BatchJob) bool {
	n := len(s.Status.Past)
	if n == 0 || !s.AwaitsStart() || f.Job.Status.StartTime == nil {
		return false
	}
	last := &s.Status.Past[n-1]
	return last.Reason == status.ReasonPreempted && last.End.After(f.Job.Status.StartTime.Time)
}

// hetStartDue returns when a component must run at the latest; zero if all run.
func (f *Facts) hetStartDue() time.Time {
	for _, s := range f.Siblings {
		if s.Status.State == "" || s.Status.State == v1alpha1.StatePending {
			return f.Job.Status.StartTime.Add(hetStartTimeout)
		}
	}
	return time.Time{}
}

// endWithLeader ends a further component when the first one has ended.
func (f *Facts) endWithLeader() (a Action, ok bool) {
	l := f.Leader
	switch {
	case l == nil:
		return Action{}, false
	case l.Status.State == v1alpha1.StateCompleting && l.Status.Final == v1alpha1.StatePending,
		l.RequeueRequested():
		return requeueRequested(), true
	case l.Status.State == v1alpha1.StateCompleting:
		return endWith(l.Status.Final, l.Status.Reason, ""), true
	case l.IsFinal():
		return endWith(l.Status.State, l.Status.Reason, ""), true
	}
	return Action{}, false
}

// isQueuedWithLeader reports whether a further component with a final state is queued again
// because the first one was. It cannot run without the others.
func (f *Facts) isQueuedWithLeader() bool {
	l := f.Leader
	return l != nil && l.AwaitsStart() && l.Status.Restarts > 0 && !f.Job.EndRequested() && l.Spec.Cancel == nil
}

// leaderEnded reports whether the first component has ended for good: no requeue of it is
// requested, or it cannot be queued again.
func (f *Facts) leaderEnded() bool {
	l := f.Leader
	return l != nil && l.IsFinal() && (!l.RequeueRequested() || l.EndRequested())
}

// lacksComponent reports whether a component was cancelled, without which the job cannot start.
func (f *Facts) lacksComponent() bool {
	return slices.ContainsFunc(f.Siblings, func(s *v1alpha1.BatchJob) bool {
		return s.IsFinal() && s.Spec.Cancel != nil
	})
}
