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
			b = b.DeepCopy()
			b.Status.State = v1alpha1.StateSuspended
			h.Jobs.Apply(b)
			shown = true
		}
	}
	if got := <-done; got.Error != "" {
		t.Errorf("%+v", got)
	}
	h.ops.Settle = time.Millisecond
	if got := h.operation(t, "opal", status.Operation{Verb: status.OpResume, Jobs: []string{"1"}}); got.Error != "" {
		t.Errorf("without an agent: %+v", got)
	}
}
