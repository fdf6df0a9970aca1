package tasks

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// After a conflict the array is read once, and its tasks are recorded in its newest
// version.
func TestAConflictIsReadOnce(t *testing.T) {
	reads := 0
	c := fake.Cluster(interceptor.Funcs{Get: func(
		ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
	) error {
		reads++
		return w.Get(ctx, key, o, opts...)
	}})
	fake.AddJob(t, c, 7, "anna", nil)
	b := fake.StoredJob(t, c, 7)
	c.ApplyJob(b)
	other := b.DeepCopy()
	other.Spec.Job.Comment = "changed by somebody else"
	if err := c.Client.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	reads = 0
	got, err := record(t.Context(), c, 7, func(a *v1alpha1.ArrayStatus) { a.Pending = "1-3" })
	if err != nil || got.Spec.Job.Comment != other.Spec.Job.Comment || got.Status.Array.Pending != "1-3" {
		t.Fatalf("%+v, %v", got, err)
	}
	if reads != 1 {
		t.Errorf("the object was read %d times", reads)
	}
}
