package starter

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// lostAnswer makes the first write of a status fail: after the API server has done it, or
// before. Others are answered.
func lostAnswer(done bool, with error) interceptor.Funcs {
	first := true
	return interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object,
		p client.Patch, opts ...client.SubResourcePatchOption) error {
		if !first {
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		}
		first = false
		if done {
			if err := c.SubResource(sub).Patch(ctx, o.DeepCopyObject().(client.Object), p, opts...); err != nil {
				return err
			}
		}
		return with
	}}
}

// TestPlacementWithLostResponseCounts: the CPUs of a job that was placed are not free,
// whatever the answer to the write was.
func TestPlacementWithLostResponseCounts(t *testing.T) {
	for name, with := range map[string]error{
		"timeout":  apierrors.NewTimeoutError("", 0),
		"internal": apierrors.NewInternalError(errors.New("lost")),
		"reset":    errors.New("connection reset by peer"),
	} {
		for _, done := range []bool{true, false} {
			b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "j", UID: "j"},
				Spec: v1alpha1.BatchJobSpec{JobID: 5}}
			c := fake.Cluster(lostAnswer(done, with), b)
			if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
				t.Fatal(err)
			}
			c.ApplyJob(b)
			known, _ := c.Job(5)
			p := Placement{Job: known, Partition: "main",
				Allocation: &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 2}}}}
			if err := New(c, nil, time.Now).Place(t.Context(), p); err != nil {
				t.Errorf("%s, done %v: %v", name, done, err)
			}
			if now, _ := c.Job(5); now.Status.Allocation == nil || now.Status.Attempt != 1 {
				t.Errorf("%s, done %v: the store has %+v", name, done, now.Status)
			}
		}
	}
}

// TestJobThatChangedMeanwhileIsPlannedAgain: not the lost write was done, but another one.
func TestJobThatChangedMeanwhileIsPlannedAgain(t *testing.T) {
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "j", UID: "j"},
		Spec: v1alpha1.BatchJobSpec{JobID: 5}}
	c := fake.Cluster(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, _ string,
		o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
		other := &v1alpha1.BatchJob{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), other); err != nil {
			return err
		}
		other.Spec.Job.Comment = "changed"
		if err := c.Update(ctx, other); err != nil {
			return err
		}
		return apierrors.NewTimeoutError("", 0)
	}}, b)
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		t.Fatal(err)
	}
	c.ApplyJob(b)
	known, _ := c.Job(5)
	p := Placement{Job: known, Partition: "main", Allocation: &v1alpha1.Allocation{}}
	if err := New(c, nil, time.Now).Place(t.Context(), p); !errors.Is(err, ErrChanged) {
		t.Errorf("placed: %v", err)
	}
	if now, _ := c.Job(5); now.Spec.Job.Comment != "changed" {
		t.Error("the store does not have the change")
	}
}
