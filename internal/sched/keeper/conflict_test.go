package keeper

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// After a conflict the job is read once, and the store has its newest version.
func TestAConflictIsReadOnce(t *testing.T) {
	reads := 0
	c := fake.Cluster(interceptor.Funcs{Get: func(
		ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
	) error {
		reads++
		return w.Get(ctx, key, o, opts...)
	}})
	k := New(Config{Cluster: c, Now: func() time.Time { return t0 }, Log: slog.New(slog.DiscardHandler)})
	fake.AddJob(t, c, 7, "anna", nil)
	b, _ := c.Job(7)
	other := fake.StoredJob(t, c, 7)
	other.Spec.Job.Comment = "changed by somebody else"
	if err := c.Client.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	reads = 0
	_, err := k.write(t.Context(), b, func(s *v1alpha1.BatchJobStatus) { s.Reason = "x" })
	newest, _ := c.Job(7)
	if !errors.Is(err, errChanged) || newest.Spec.Job.Comment != other.Spec.Job.Comment {
		t.Fatalf("%+v, %v", newest, err)
	}
	if reads != 1 {
		t.Errorf("the object was read %d times", reads)
	}
}

// An object that was replaced by another one of the same name is gone from the store
// after a conflict.
func TestAReplacedObjectIsRemoved(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	fake.AddJob(t, c, 7, "anna", nil)
	old := fake.StoredJob(t, c, 7)
	known := old.DeepCopy()
	known.UID = "of-the-object-before"
	c.Jobs.Remove(old, time.Now())
	c.ApplyJob(known)
	if err := c.Client.Update(t.Context(), old); err != nil { // another version
		t.Fatal(err)
	}
	k := New(Config{Cluster: c, Now: func() time.Time { return t0 }, Log: slog.New(slog.DiscardHandler)})
	_, err := k.write(t.Context(), known, func(s *v1alpha1.BatchJobStatus) { s.Reason = "x" })
	if !errors.Is(err, errChanged) {
		t.Fatalf("%v, although the object is another one", err)
	}
	if _, known := c.Jobs.ByUID(known.UID); known {
		t.Error("the store still has the object")
	}
}
