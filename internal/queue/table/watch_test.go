package table_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
)

// next returns the watcher's next changes; none: there are none.
func next(t *testing.T, w *table.Watcher) table.Changes {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := w.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func expect(t *testing.T, got table.Changes, sync bool, rows, gone []int64) {
	t.Helper()
	if got.Sync != sync || !slices.Equal(numbers(got.Rows), rows) || !slices.Equal(got.Gone, gone) {
		t.Errorf("sync %v, rows %v, gone %v; want %v %v %v", got.Sync, numbers(got.Rows), got.Gone, sync, rows, gone)
	}
}

func state(s string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Status.State = s }
}

func TestWatch(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, batchJob(1, "anna", nil), batchJob(2, "ben", nil), batchJob(3, "anna", state(v1alpha1.StateRunning)))
	w := tab.Watch(table.Query{Users: []string{"anna"}}, "", false)
	first := next(t, w)
	expect(t, first, true, []int64{1, 3}, nil)

	// Several changes of one job are one, changes of other jobs are none, and a row
	// that no longer matches is gone.
	fake.Feed(c, batchJob(2, "ben", state(v1alpha1.StateRunning)), batchJob(1, "anna", state(v1alpha1.StateConfiguring)),
		batchJob(1, "anna", state(v1alpha1.StateRunning)), batchJob(3, "anna", state(v1alpha1.StateCompleted)), batchJob(4, "anna", nil))
	got := next(t, w)
	expect(t, got, false, []int64{1, 4}, []int64{3})
	if got.Rows[0].State != v1alpha1.StateRunning {
		t.Error(got.Rows[0].State)
	}

	// Resuming from a revision returns the same; a revision of another process is not
	// valid.
	expect(t, next(t, tab.Watch(table.Query{Users: []string{"anna"}}, first.Revision, false)), false, []int64{1, 4}, []int64{3})
	expect(t, next(t, tab.Watch(table.Query{Users: []string{"anna"}}, "other-3", false)), true, []int64{1, 4}, nil)

	// No event for a row that has not changed, nor for other jobs.
	fake.Feed(c, batchJob(4, "anna", nil), batchJob(5, "ben", nil))
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := w.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v %v", got, err)
	}
}

// TestWatchWaits: a waiting watcher returns as soon as there is a change.
func TestWatchWaits(t *testing.T) {
	c, tab := newTable(nil)
	w := tab.Watch(table.Query{IDs: []int64{2}}, "", false)
	expect(t, next(t, w), true, []int64{}, nil)
	done := make(chan table.Changes)
	go func() {
		got, _ := w.Next(t.Context())
		done <- got
	}()
	fake.Feed(c, batchJob(1, "anna", nil), batchJob(2, "anna", nil))
	expect(t, <-done, false, []int64{2}, nil)
}

// TestWatchTooSlow: a watcher that was overtaken receives all rows again.
func TestWatchTooSlow(t *testing.T) {
	c, tab := newTable(nil)
	w := tab.Watch(table.Query{}, "", false)
	expect(t, next(t, w), true, []int64{}, nil)
	states := []string{v1alpha1.StateRunning, v1alpha1.StatePending}
	for i := range 20_000 {
		fake.Feed(c, batchJob(7, "anna", state(states[i%2])))
	}
	expect(t, next(t, w), true, []int64{7}, nil)
}

// TestWatchPlan: a new plan is a change for watchers that request it.
func TestWatchPlan(t *testing.T) {
	p := plans{1: {Reason: "Priority", Priority: 10}}
	c, tab := newTable(p)
	fake.Feed(c, batchJob(1, "anna", nil))
	w := tab.Watch(table.Query{}, "", true)
	expect(t, next(t, w), true, []int64{1}, nil)
	if got := next(t, w); len(got.Rows) != 1 { // the first comparison
		t.Errorf("%+v", got)
	}
	p[1] = control.Planned{Reason: "Resources", Priority: 11}
	got := next(t, w)
	expect(t, got, false, []int64{1}, nil)
	if j := tab.Merged(got.Rows[0]); j.Reason != "Resources" {
		t.Error(j.Reason)
	}
}
