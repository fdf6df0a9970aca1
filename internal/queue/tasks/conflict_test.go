package tasks

import (
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// After a conflict the array is read once, and its tasks are recorded in its newest
// version.
func TestArrayIsReadOnceAfterConflict(t *testing.T) {
	reads := 0
	c := fake.Cluster(fake.CountReads(&reads))
	fake.AddJob(t, c, 7, "anna", nil)
	c.ApplyJob(fake.StoredJob(t, c, 7))
	other := fake.ChangeStored(t, c, 7, func(b *v1alpha1.BatchJob) { b.Spec.Job.Comment = "of another client" })
	reads = 0
	got, err := record(t.Context(), c, 7, func(a *v1alpha1.ArrayStatus) { a.Pending = "1-3" })
	if err != nil || got.Spec.Job.Comment != other.Spec.Job.Comment || got.Status.Array.Pending != "1-3" {
		t.Fatalf("error %v, the array is %+v", err, got)
	}
	if reads != 1 {
		t.Errorf("the array was read %d times, want once", reads)
	}
}
