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

// burst submits 200 jobs at once, of which none is stored before the last was
// decided about, and returns how many were let in.
func burst(t *testing.T, h *house, text string) int {
	t.Helper()
	var let atomic.Int64
	var group sync.WaitGroup
	for n := range 200 {
		group.Go(func() {
			_, refused := h.create(t, anna, named(n, nil), false)
			switch {
			case refused == nil:
				let.Add(1)
			case plain(t, refused) != text:
				t.Errorf("%v", refused)
			}
		})
	}
	group.Wait()
	return int(let.Load())
}

func TestBurst(t *testing.T) {
	h := newHouse(t)
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{MaxJobs: 40}))
	if n := burst(t, h, string(refusal.TryAgain)); n != 40 {
		t.Errorf("%d let in", n)
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
		h := newHouse(t)
		user := fake.User("anna", 1001)
		user.Spec.DefaultAccount = "chem"
		acc := &v1alpha1.Account{}
		acc.Name, acc.Spec.Limits = "chem", tt.limits
		fake.Feed(h.Cluster, user, acc)
		if n := burst(t, h, tt.reason+"\n"+string(refusal.PolicyViolation)); n != 17 {
			t.Errorf("%+v: %d let in", tt.limits, n)
		}
	}
}

// Tasks of an array and components of a heterogeneous job count each.
func TestTasksCount(t *testing.T) {
	h := newHouse(t)
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

// A place is given back when nothing comes of it, and taken once by who sends
// the same object again.
func TestPlaces(t *testing.T) {
	broken := errors.New("no ids")
	var fail atomic.Bool
	h := newHouse(t, func(c *admission.Config) { c.IDs = &brokenIDs{c.IDs, &fail, broken} })
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{MaxJobs: 2}))
	h.create(t, anna, named(1, nil), true)
	fail.Store(true)
	if _, refused := h.create(t, anna, named(1, nil), false); refused == nil || refused.Code != 503 {
		t.Errorf("%v", refused)
	}
	fail.Store(false)
	h.submit(t, anna, named(1, nil))
	h.submit(t, anna, named(1, nil)) // its first answer was lost
	stored := h.submit(t, anna, named(2, nil))
	fake.Feed(h.Cluster, stored)
	h.submit(t, anna, named(2, nil)) // the API server will refuse it: it is there
	if _, refused := h.create(t, anna, named(3, nil), false); plain(t, refused) != string(refusal.TryAgain) {
		t.Errorf("the third: %v", refused)
	}
	h.Jobs.Remove(stored, now)
	fake.Feed(h.Cluster, h.submit(t, anna, named(3, nil)))
	if _, refused := h.create(t, anna, named(2, nil), false); plain(t, refused) != string(refusal.TryAgain) {
		t.Errorf("the name of a job that is gone: %v", refused)
	}
}

// brokenIDs draws no ids while it is told so.
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
