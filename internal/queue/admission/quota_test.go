package admission_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/admission"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
)

func named(n int, change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	return submission(func(b *v1alpha1.BatchJob) {
		b.Name = fmt.Sprintf("j-%d", n)
		if change != nil {
			change(b)
		}
	})
}

func array(spec string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Spec.Job.Array = &job.Array{Spec: spec} }
}

// burst submits 200 jobs at once, none of which is stored before all are decided, and
// returns how many were accepted.
func burst(t *testing.T, h *harness, text string) int {
	t.Helper()
	var accepted atomic.Int64
	var group sync.WaitGroup
	for n := range 200 {
		group.Go(func() {
			_, refused := h.create(t, anna, named(n, nil), false)
			switch {
			case refused == nil:
				accepted.Add(1)
			case plain(t, refused) != text:
				t.Errorf("%v", refused)
			}
		})
	}
	group.Wait()
	return int(accepted.Load())
}

func TestBurst(t *testing.T) {
	h := newHarness(t)
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{MaxJobs: 40}))
	if n := burst(t, h, string(refusal.TryAgain)); n != 40 {
		t.Errorf("%d accepted", n)
	}
}

func TestBurstOfAUser(t *testing.T) {
	for _, tt := range []struct {
		limits v1alpha1.Limits
		reason string
	}{
		{v1alpha1.Limits{MaxSubmitJobs: 17}, "AssocMaxSubmitJobLimit"},
		{v1alpha1.Limits{GrpSubmitJobs: 17}, "AssocGrpSubmitJobsLimit"},
	} {
		h := newHarness(t)
		user := fake.User("anna", 1001)
		user.Spec.DefaultAccount = "chem"
		acc := &v1alpha1.Account{}
		acc.Name, acc.Spec.Limits = "chem", tt.limits
		fake.Feed(h.Cluster, user, acc)
		if n := burst(t, h, tt.reason+"\n"+string(refusal.PolicyViolation)); n != 17 {
			t.Errorf("%+v: %d accepted", tt.limits, n)
		}
	}
}

// TestTasksCount: each task of an array and each component of a heterogeneous job
// counts.
func TestTasksCount(t *testing.T) {
	h := newHarness(t)
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{MaxJobs: 10}))
	if _, refused := h.create(t, anna, named(1, array("0-10")), false); plain(t, refused) != string(refusal.TryAgain) {
		t.Errorf("eleven tasks: %v", refused)
	}
	stored := h.submit(t, anna, named(2, array("0-6")))
	fake.Feed(h.Cluster, stored)
	three := func(b *v1alpha1.BatchJob) {
		b.Spec.Components = make([]job.Job, 2)
		b.Spec.Components[0] = b.Spec.Job
		b.Spec.Components[1] = b.Spec.Job
	}
	h.submit(t, anna, named(3, three))
	if _, refused := h.create(t, anna, named(4, nil), false); plain(t, refused) != string(refusal.TryAgain) {
		t.Errorf("the eleventh: %v", refused)
	}
}

// TestPlaces: a place is released when the submission fails, and an object that is
// submitted again needs no second place.
func TestPlaces(t *testing.T) {
	broken := errors.New("no ids")
	var fail atomic.Bool
	h := newHarness(t, func(c *admission.Config) { c.IDs = &brokenIDs{c.IDs, &fail, broken} })
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{MaxJobs: 2}))
	h.create(t, anna, named(1, nil), true)
	fail.Store(true)
	if _, refused := h.create(t, anna, named(1, nil), false); refused == nil || refused.Code != 503 {
		t.Errorf("%v", refused)
	}
	fail.Store(false)
	h.submit(t, anna, named(1, nil))
	h.submit(t, anna, named(1, nil)) // the first response was lost
	stored := h.submit(t, anna, named(2, nil))
	fake.Feed(h.Cluster, stored)
	h.submit(t, anna, named(2, nil)) // the API server will refuse the duplicate
	if _, refused := h.create(t, anna, named(3, nil), false); plain(t, refused) != string(refusal.TryAgain) {
		t.Errorf("the third: %v", refused)
	}
	h.Jobs.Remove(stored, now)
	fake.Feed(h.Cluster, h.submit(t, anna, named(3, nil)))
	if _, refused := h.create(t, anna, named(2, nil), false); plain(t, refused) != string(refusal.TryAgain) {
		t.Errorf("the name of a deleted job: %v", refused)
	}
}

// brokenIDs allocates no ids while on is set.
type brokenIDs struct {
	admission.IDs
	on  *atomic.Bool
	err error
}

func (f *brokenIDs) Span(ctx context.Context, n int64) (int64, error) {
	if f.on.Load() {
		return 0, f.err
	}
	return f.IDs.Span(ctx, n)
}
