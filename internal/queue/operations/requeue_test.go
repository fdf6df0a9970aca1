package operations_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
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

// TestReleasedTaskIsSeenAtOnce: a task that is released, and split off its array
// thereby, is shown as released by the next query, also if the watch has put the new
// objects into the store and the table has not heard of them yet.
func TestReleasedTaskIsSeenAtOnce(t *testing.T) {
	var c *cluster
	entered, heard := make(chan struct{}), make(chan struct{})
	watching := false
	watch := func(o client.Object, err error) error {
		if b, ok := o.(*v1alpha1.BatchJob); ok && err == nil && watching {
			go c.ApplyJob(b.DeepCopy())
			<-entered
		}
		return err
	}
	all := fake.Cluster(interceptor.Funcs{
		Create: func(ctx context.Context, k client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return watch(o, fake.AssignUIDs.Create(ctx, k, o, opts...))
		},
		Patch: func(
			ctx context.Context, k client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			return watch(o, k.Patch(ctx, o, p, opts...))
		},
	})
	all.Jobs.Subscribe(func(_, _ *v1alpha1.BatchJob) {
		if watching {
			entered <- struct{}{}
			<-heard
		}
	})
	c = clusterOf(all)
	next := int64(7)
	all.NextID = func(context.Context) (int64, error) { next++; return next, nil }
	c.add(t, 7, "anna", func(b *v1alpha1.BatchJob) {
		b.Spec.Job.Array = &job.Array{Spec: "1-3"}
		b.Spec.Job.Hold = "user"
	})
	watching = true
	defer close(heard)
	release := status.Operation{Verb: status.OpRelease, Jobs: []string{"7_2"}}
	if got := c.operation(t, "anna", release); got.Error != "" {
		t.Fatal(got.Error)
	}
	for _, row := range c.table.Select(t.Context(), table.Query{IDs: []int64{7}, AllStates: true}) {
		switch {
		case row.ArrayWhole && row.Rest.Has(2):
			t.Errorf("the array still has the task: %s", row.ArrayTaskID)
		case !row.ArrayWhole && row.Held != "":
			t.Errorf("task %s is held", row.ArrayTaskID)
		}
	}
}
