package operations_test

import (
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// start carries out an operation on one job in the background and returns the
// channel on which the outcome comes.
func (c *cluster) start(t *testing.T, user string, op status.Operation) <-chan status.OperationStatus {
	done := make(chan status.OperationStatus, 1)
	go func() { done <- c.operation(t, user, op) }()
	return done
}

// on returns the operation with the verb on one job.
func on(job int64, verb string) status.Operation {
	return status.Operation{Verb: verb, Jobs: []string{strconv.FormatInt(job, 10)}}
}

// TestRequeueRightAfterCancel: as in Slurm, a pending job can be requeued as soon as
// scancel has returned, although its final state has not been written yet.
func TestRequeueRightAfterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(t, 1, "anna", nil)
		if got := c.operation(t, "anna", on(1, status.OpCancel)); got.Error != "" {
			t.Fatalf("%+v", got)
		}
		done := c.start(t, "anna", on(1, status.OpRequeue))
		synctest.Wait()
		select {
		case got := <-done:
			t.Fatalf("the requeue did not wait for the end of the job: %+v", got)
		default:
		}
		c.setState(t, 1, v1alpha1.StateCancelled)
		if got := <-done; got.Error != "" {
			t.Errorf("%+v", got)
		}
		if b, _ := c.Job(1); b.Spec.Requeues != 1 || b.Spec.Cancel != nil {
			t.Errorf("%+v", b.Spec)
		}
	})
}

// TestRequeueHoldKeepsAnOperatorsHold: the owner could release any other hold.
func TestRequeueHoldKeepsAnOperatorsHold(t *testing.T) {
	c := newCluster(t)
	held := func(b *v1alpha1.BatchJob) { b.Status.State, b.Spec.Job.Hold = v1alpha1.StateRunning, "admin" }
	c.add(t, 1, "anna", held)
	if got := c.operation(t, "anna", on(1, status.OpRequeueHold)); got.Error != "" {
		t.Fatal(got.Error)
	}
	if s := c.stored(t, 1); s.Job.Hold != "admin" || s.Requeues != 1 {
		t.Errorf("hold %q, requeues %d", s.Job.Hold, s.Requeues)
	}
	if got := c.operation(t, "anna", on(1, status.OpRelease)); got.Error != authz.Denied {
		t.Errorf("release by the owner: %q", got.Error)
	}
	c.add(t, 2, "anna", held)
	got := c.operation(t, "opal", on(2, status.OpRequeueHold))
	if s := c.stored(t, 2); got.Error != "" || s.Job.Hold != job.HoldRequeue {
		t.Errorf("requeuehold by an operator: %q, hold %q", got.Error, s.Job.Hold)
	}
}
