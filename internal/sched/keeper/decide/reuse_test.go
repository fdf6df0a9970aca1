package decide

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// The assumed status of a task is written when the task runs for longer than most;
// of the others only the end is written.
func TestAssumedStatusOfALongTaskIsWritten(t *testing.T) {
	b := aJob(v1alpha1.StateRunning)
	f := Facts{Job: b, Now: t0.Add(time.Second)}
	if got := f.orWriteAssumed(Action{}); got.Kind != Wait {
		t.Errorf("nothing is assumed: %+v", got)
	}
	f.Assumed = true
	if got := f.orWriteAssumed(Action{Wake: t0.Add(time.Hour)}); got.Kind != Wait || !got.Wake.Equal(t0.Add(taskWriteDelay)) {
		t.Errorf("soon after its start: %+v", got)
	}
	if got := f.orWriteAssumed(Action{Kind: Suspend}); got.Kind != Suspend {
		t.Errorf("with something to do: %+v", got)
	}
	if f.Now = t0.Add(taskWriteDelay); f.orWriteAssumed(Action{}).Kind != WriteAssumed {
		t.Errorf("later: %+v", f.orWriteAssumed(Action{}))
	}
}

// A job that is being deleted stays while another one runs in its pods, which would be
// deleted with it.
func TestDeletedJobKeepsPodsThatAnotherRunsIn(t *testing.T) {
	b := aJob(v1alpha1.StateCompleted)
	b.DeletionTimestamp = &metav1.Time{Time: t0}
	b.Status.Pods = &v1alpha1.PodsOf{JobID: b.Spec.JobID, Attempt: b.Status.Attempt}
	f := Facts{Job: b, Now: t0, PodsReused: true}
	if got := f.final(); got.Kind != Wait || got.Wake.IsZero() {
		t.Errorf("%+v", got)
	}
	f.PodsReused, f.PodsReusable = false, true
	if got := f.final(); got.Kind != Wait || got.Wake.IsZero() {
		t.Errorf("when another may run there: %+v", got)
	}
	f.PodsReusable = false
	if got := f.final(); got.Kind != RemoveFinalizer {
		t.Errorf("when no other runs there: %+v", got)
	}
	f.IsAwaited = true
	if got := f.final(); got.Kind != CleanUp {
		t.Errorf("when another job depends on it: %+v", got)
	}
}

// A job that is requeued after its end keeps its pods until no other job runs there, and
// deletes them: the status of the next attempt does not name them.
func TestRequeuedJobDeletesItsPodsFirst(t *testing.T) {
	b := aJob(v1alpha1.StateCompleted)
	b.Spec.Requeues = b.Status.Requeues + 1
	b.Status.Pods = &v1alpha1.PodsOf{JobID: b.Spec.JobID, Attempt: b.Status.Attempt}
	f := Facts{Job: b, Now: t0, PodsReused: true}
	if got := f.final(); got.Kind != Wait || got.Wake.IsZero() {
		t.Errorf("while another runs there: %+v", got)
	}
	if f.PodsReused = false; f.final().Kind != CleanUp {
		t.Errorf("when no other runs there: %+v", f.final())
	}
	if b.Status.Pods = nil; f.final().Kind != Requeue {
		t.Errorf("without its pods: %+v", f.final())
	}
}
