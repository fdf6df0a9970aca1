package keeper

import (
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// After a conflict the job is read once, and the store has its newest version.
func TestJobIsReadOnceAfterConflict(t *testing.T) {
	reads := 0
	c := fake.Cluster(fake.CountReads(&reads))
	k := newKeeper(c)
	fake.AddJob(t, c, 7, "anna", nil)
	b, _ := c.Job(7)
	other := fake.ChangeStored(t, c, 7, func(b *v1alpha1.BatchJob) { b.Spec.Job.Comment = "of another client" })
	reads = 0
	_, err := k.write(t.Context(), b, func(s *v1alpha1.BatchJobStatus) { s.Reason = "x" })
	newest, _ := c.Job(7)
	if !errors.Is(err, errChanged) || newest.Spec.Job.Comment != other.Spec.Job.Comment {
		t.Fatalf("error %v, the store has %+v; want a conflict and the newest version", err, newest)
	}
	if reads != 1 {
		t.Errorf("the job was read %d times, want once", reads)
	}
}

// An object that was replaced by another one of the same name is gone from the store
// after a conflict.
func TestReplacedObjectIsRemovedFromStore(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	fake.AddJob(t, c, 7, "anna", nil)
	old := fake.StoredJob(t, c, 7)
	known := old.DeepCopy()
	known.UID = "of-the-replaced-object"
	c.Jobs.Remove(old, time.Now())
	c.ApplyJob(known)
	if err := c.Client.Update(t.Context(), old); err != nil { // another version
		t.Fatal(err)
	}
	k := newKeeper(c)
	_, err := k.write(t.Context(), known, func(s *v1alpha1.BatchJobStatus) { s.Reason = "x" })
	if !errors.Is(err, errChanged) {
		t.Fatalf("error %v, want a conflict: the object is another one", err)
	}
	if _, ok := c.Jobs.ByUID(known.UID); ok {
		t.Error("the store still has the replaced object")
	}
}
