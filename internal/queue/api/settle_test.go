package api_test

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// The answer to suspend comes when the job's state shows it, and comes also
// when that does not happen.
func TestSuspendWaitsForTheState(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.ops.Settle = time.Minute
	h.add(t, 1, "anna", state(v1alpha1.StateRunning))
	done := make(chan status.OperationStatus, 1)
	go func() {
		done <- h.operation(t, "opal", status.Operation{Verb: status.OpSuspend, Jobs: []string{"1"}})
	}()
	for shown := false; !shown; {
		select {
		case got := <-done:
			t.Fatalf("answered while the job ran: %+v", got)
		case <-time.After(time.Millisecond):
		}
		if b, ok := h.Job(1); ok && b.Spec.Suspend {
			h.is(t, b, v1alpha1.StateSuspended)
			shown = true
		}
	}
	select { // an operation that waits for nothing ends after 40 s at the latest
	case got := <-done:
		if got.Error != "" {
			t.Errorf("%+v", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("not answered though the state shows it")
	}
	h.ops.Settle = time.Millisecond
	if got := h.operation(t, "opal", status.Operation{Verb: status.OpResume, Jobs: []string{"1"}}); got.Error != "" {
		t.Errorf("without an agent: %+v", got)
	}
}

// is has the job be in a state, as its keeper writes it.
func (h *house) is(t *testing.T, b *v1alpha1.BatchJob, state string) {
	t.Helper()
	b = b.DeepCopy()
	b.Status.State = state
	if err := h.Client.Status().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	h.Jobs.Apply(b)
}
