package operations_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/status"
)

// TestSuspendWaitsForTheState: suspend returns when the job is suspended, and
// resume after a while even if the job does not run again.
func TestSuspendWaitsForTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.service.StateTimeout = 10 * time.Second
		c.add(t, 1, "anna", fake.InState(v1alpha1.StateRunning))
		done := c.start(t, "opal", status.Operation{Verb: status.OpSuspend, Jobs: []string{"1"}})
		synctest.Wait()
		select {
		case got := <-done:
			t.Fatalf("suspend returned while the job ran: %+v", got)
		default:
		}
		if !c.stored(t, 1).Suspend {
			t.Fatal("the job is not to be suspended")
		}
		start := time.Now()
		c.setState(t, 1, v1alpha1.StateSuspended)
		if got := <-done; got.Error != "" || time.Since(start) >= c.service.StateTimeout {
			t.Errorf("%+v after %v", got, time.Since(start))
		}
		start = time.Now()
		got := c.operation(t, "opal", status.Operation{Verb: status.OpResume, Jobs: []string{"1"}})
		if lasted := time.Since(start); got.Error != "" || lasted != c.service.StateTimeout {
			t.Errorf("resume without an agent: %+v after %v", got, lasted)
		}
	})
}

// TestCancellationWaitsForTheState: a cancelled pending job is not listed as pending when the
// operation returns.
func TestCancellationWaitsForTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.service.StateTimeout = 10 * time.Second
		c.add(t, 1, "anna", fake.InState(v1alpha1.StatePending))
		done := c.start(t, "anna", status.Operation{Verb: status.OpCancel, Jobs: []string{"1"}})
		synctest.Wait()
		select {
		case got := <-done:
			t.Fatalf("it returned while the job was pending: %+v", got)
		default:
		}
		c.setState(t, 1, v1alpha1.StateCancelled)
		if got := <-done; got.Error != "" {
			t.Error(got)
		}
		c.add(t, 2, "anna", fake.InState(v1alpha1.StatePending))
		start := time.Now()
		got := c.operation(t, "anna", status.Operation{Verb: status.OpSignal, Signal: 9, Batch: true, Jobs: []string{"2"}})
		if lasted := time.Since(start); got.Error != "" || lasted >= time.Second {
			t.Errorf("without a keeper: %+v after %v", got, lasted)
		}
	})
}
