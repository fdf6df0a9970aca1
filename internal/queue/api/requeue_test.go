package api_test

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// A job that was cancelled while it waited can be put back into the queue, as in
// Slurm, from the instant at which scancel has answered: it is pending no more,
// though the keeper has not said so yet.
func TestRequeueRightAfterACancel(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.add(t, 1, "anna", nil)
	if got := h.operation(t, "anna", status.Operation{Verb: status.OpCancel, Jobs: []string{"1"}}); got.Error != "" {
		t.Fatalf("%+v", got)
	}
	done := make(chan status.OperationStatus, 1)
	go func() {
		done <- h.operation(t, "anna", status.Operation{Verb: status.OpRequeue, Jobs: []string{"1"}})
	}()
	select {
	case got := <-done:
		t.Fatalf("answered before the job was over: %+v", got)
	case <-time.After(20 * time.Millisecond): // a wrong answer comes at once
	}
	known, _ := h.Job(1)
	b := &v1alpha1.BatchJob{}
	if err := h.Client.Get(context.Background(), client.ObjectKeyFromObject(known), b); err != nil {
		t.Fatal(err)
	}
	b.Status.State = v1alpha1.StateCancelled
	if err := h.Client.Status().Update(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	h.ApplyJob(b)
	if got := <-done; got.Error != "" {
		t.Errorf("%+v", got)
	}
	if b, _ := h.Job(1); b.Spec.Requeues != 1 || b.Spec.Cancel != nil {
		t.Errorf("%+v", b.Spec)
	}
}
