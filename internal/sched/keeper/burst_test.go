package keeper

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
)

// Writes that can wait are put off while pods come and while they are bound.
func TestBindBurstLastsWhilePodsArriveAndAreBound(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	k := &Keeper{Config: Config{Cluster: c}}
	assumed := func(old *v1alpha1.BatchJob, state string) *v1alpha1.BatchJob {
		t.Helper()
		n, ok := c.Jobs.AssumeStatus(old, t0, func(s *v1alpha1.BatchJobStatus) { s.State = state })
		if !ok {
			t.Fatalf("%s is not assumed", state)
		}
		return n
	}
	expect := func(what string, old, now *v1alpha1.BatchJob, want bool) {
		t.Helper()
		if got := k.isBindBurst(old, now); got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
	queued := schedtest.Attempt("", schedtest.Representing("group ml/g"))
	c.Jobs.AssumeJob(queued)
	expect("pods come", nil, queued, true)
	placed := assumed(queued, v1alpha1.StateConfiguring)
	expect("they are placed", queued, placed, true)
	running := assumed(placed, v1alpha1.StateRunning)
	expect("they are bound", placed, running, true)

	written := running.DeepCopy()
	fake.Feed(c, written)
	expect("the start is written", running, written, false)
	expect("an object comes", nil, written, false)
	completed := written.DeepCopy()
	completed.Status.State = v1alpha1.StateCompleted
	fake.Feed(c, completed)
	expect("a written job ends", written, completed, false)

	submitted := schedtest.Attempt(v1alpha1.StatePending)
	submitted.Spec.JobID, submitted.UID = 8, "submitted"
	fake.Feed(c, submitted)
	expect("a submitted job starts", submitted, assumed(submitted, v1alpha1.StateRunning), false)
}
