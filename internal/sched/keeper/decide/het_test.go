package decide

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// When one component of a heterogeneous job loses a node for good, the others fail with
// it, including the one that runs the script, as in Slurm.
func TestHetComponentsFailTogether(t *testing.T) {
	sibling := func(state, final string) *v1alpha1.BatchJob {
		return &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: 8}, Status: v1alpha1.BatchJobStatus{State: state, Final: final, StartTime: at(t0)}}
	}
	for _, tt := range []struct {
		sibling *v1alpha1.BatchJob
		want    Kind
		final   string
	}{
		{sibling(v1alpha1.StateRunning, ""), Wait, ""},
		{sibling(v1alpha1.StateCompleting, v1alpha1.StateCompleted), Wait, ""},
		{sibling(v1alpha1.StateCompleting, v1alpha1.StateNodeFail), End, v1alpha1.StateNodeFail},
		{sibling(v1alpha1.StateNodeFail, ""), End, v1alpha1.StateNodeFail},
	} {
		a := Next(Facts{Job: aJob("RUNNING", noRequeue), Pods: pods(pod(0), pod(1)), Now: t0, Rules: rules, Siblings: []*v1alpha1.BatchJob{tt.sibling},
			Lost: never, Unreachable: never})
		if a.Kind != tt.want || a.Outcome.Final != tt.final {
			t.Errorf("%s %s: %d %+v", tt.sibling.Status.State, tt.sibling.Status.Final, a.Kind, a.Outcome)
		}
	}
}

// When one component of a heterogeneous job is preempted, the others are preempted with it,
// also if the process died before it could write that.
func TestHetComponentsArePreemptedTogether(t *testing.T) {
	sibling := func(state string, change func(*v1alpha1.BatchJobStatus)) *v1alpha1.BatchJob {
		b := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: 8}, Status: v1alpha1.BatchJobStatus{State: state}}
		change(&b.Status)
		return b
	}
	preempted := func(mode string) func(*v1alpha1.BatchJobStatus) {
		return func(s *v1alpha1.BatchJobStatus) {
			s.Preempt = &v1alpha1.Preemption{By: 9, Mode: mode, Due: *at(t0.Add(time.Minute))}
		}
	}
	queued := func(s *v1alpha1.BatchJobStatus) {
		s.Past = []v1alpha1.PastAttempt{{Reason: status.ReasonPreempted, End: *at(t0.Add(time.Second))}}
	}
	earlier := func(s *v1alpha1.BatchJobStatus) {
		s.Past = []v1alpha1.PastAttempt{{Reason: status.ReasonPreempted, End: *at(t0.Add(-time.Second))}}
	}
	due := t0.Add(time.Minute)
	for i, tt := range []struct {
		sibling *v1alpha1.BatchJob
		now     time.Time
		want    Kind
		final   string
	}{
		{sibling(v1alpha1.StateRunning, preempted("CANCEL")), t0, WarnPreempted, ""},
		{sibling(v1alpha1.StateRunning, preempted("CANCEL")), due, End, v1alpha1.StatePreempted},
		{sibling(v1alpha1.StateCompleting, preempted("REQUEUE")), due, End, v1alpha1.StatePending},
		{sibling(v1alpha1.StatePreempted, preempted("CANCEL")), due, End, v1alpha1.StatePreempted},
		{sibling(v1alpha1.StatePending, queued), t0.Add(2 * time.Second), End, v1alpha1.StatePending},
		{sibling(v1alpha1.StatePending, earlier), t0.Add(2 * time.Second), Wait, ""},
	} {
		a := Next(Facts{Job: aJob("RUNNING"), Pods: pods(pod(0), pod(1)), Now: tt.now, Rules: rules,
			Siblings: []*v1alpha1.BatchJob{tt.sibling}, Lost: never, Unreachable: never})
		if a.Kind != tt.want || a.Outcome.Final != tt.final {
			t.Errorf("%d: %d %+v", i, a.Kind, a.Outcome)
		}
	}
}

// A component with a final state is kept while the first one has none, and is queued again
// together with it. If it was deleted, it would be created again with the same id.
func TestHetComponentsAreQueuedTogether(t *testing.T) {
	first := func(state string, restarts int32) *v1alpha1.BatchJob {
		return &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: 6},
			Status: v1alpha1.BatchJobStatus{State: state, Restarts: restarts}}
	}
	final := func(change ...func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
		b := aJob(v1alpha1.StateTimeout, change...)
		b.Status.EndTime = at(t0)
		return b
	}
	for i, tt := range []struct {
		job, first *v1alpha1.BatchJob
		want       Kind
	}{
		{final(), first(v1alpha1.StatePending, 1), Requeue},
		{final(cancelled), first(v1alpha1.StatePending, 1), Wait},
		{final(), first(v1alpha1.StateRunning, 1), Wait},
		{final(), first(v1alpha1.StateCompleting, 0), Wait},
		{final(), first(v1alpha1.StateCompleted, 0), Delete},
	} {
		a := Next(Facts{Job: tt.job, Now: t0.Add(time.Hour), Rules: rules, Leader: tt.first})
		if a.Kind != tt.want {
			t.Errorf("%d: %d, want %d", i, a.Kind, tt.want)
		}
	}
}

// A heterogeneous job that cannot start any more because a component was cancelled is
// cancelled.
func TestHetJobIsCancelledWithComponent(t *testing.T) {
	second := aJob(v1alpha1.StateCancelled, cancelled)
	a := Next(Facts{Job: aJob(v1alpha1.StatePending), Now: t0, Rules: rules, Siblings: []*v1alpha1.BatchJob{second}})
	if a.Kind != End || a.Outcome.Final != v1alpha1.StateCancelled {
		t.Errorf("%d %+v", a.Kind, a.Outcome)
	}
}

// A component in the queue is cancelled when the first one has ended, unless that one is about to
// be queued again.
func TestHetComponentWaitsForItsRequeuedLeader(t *testing.T) {
	leader := func(change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
		b := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: 8},
			Status: v1alpha1.BatchJobStatus{State: v1alpha1.StateCompleted}}
		change(b)
		return b
	}
	for _, tt := range []struct {
		name   string
		leader *v1alpha1.BatchJob
		want   Kind
	}{
		{"ended", leader(func(*v1alpha1.BatchJob) {}), End},
		{"requeued", leader(func(b *v1alpha1.BatchJob) { b.Spec.Requeues = 1 }), Wait},
		{"requeued and cancelled", leader(func(b *v1alpha1.BatchJob) {
			b.Spec.Requeues, b.Spec.Cancel = 1, &v1alpha1.CancelRequest{}
		}), End},
	} {
		a := Next(Facts{Job: aJob("PENDING"), Leader: tt.leader, Now: t0, Rules: rules})
		if a.Kind != tt.want {
			t.Errorf("the first component is %s: action %d, want %d", tt.name, a.Kind, tt.want)
		}
	}
}
