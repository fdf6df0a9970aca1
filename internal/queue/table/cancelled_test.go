package table_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
)

// TestCancelledWhilePending: Slurm 22.05.8 shows the moment of the cancellation as start
// and end of a job that never ran, and why it waited.
func TestCancelledWhilePending(t *testing.T) {
	c := fake.Cluster(fake.AssignUIDs)
	all := table.New(c, directory.New(c, nil), nil)
	ended := metav1.NewMicroTime(time.Unix(1_700_000_000, 0))
	fake.AddJob(t, c, 1, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Status.Reason, b.Status.EndTime = v1alpha1.StateCancelled, "BeginTime", &ended
	})
	r := all.Get(1)
	if r.Tasks != 0 {
		t.Errorf("%d tasks, though their number was not given", r.Tasks)
	}
	if r.Start != ended.Unix() || r.End != ended.Unix() || r.Reason != "BeginTime" {
		t.Errorf("start %d, end %d, reason %s", r.Start, r.End, r.Reason)
	}
}

// TestReleasedSinceThePlan: a plan that was made while the job was held does not count for
// a job that has been released.
func TestReleasedSinceThePlan(t *testing.T) {
	c, all := newTable(plans{1: {Reason: "JobHeldUser"}, 2: {Reason: "Resources", Priority: 7}})
	fake.AddJob(t, c, 1, "anna", nil)
	fake.AddJob(t, c, 2, "anna", nil)
	if got := all.Merged(all.Get(1)).Reason; got != "None" {
		t.Errorf("released: %s", got)
	}
	if got := all.Merged(all.Get(2)); got.Reason != "Resources" || got.Priority != 7 {
		t.Errorf("waiting: %s, priority %d", got.Reason, got.Priority)
	}
}
