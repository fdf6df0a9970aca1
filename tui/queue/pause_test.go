package queue

import (
	"context"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
)

// silentCluster is a cluster whose watches deliver no events and report their end.
type silentCluster struct {
	data.Cluster
	finished chan struct{}
}

func (c silentCluster) Watch(ctx context.Context, _ jobs.Filter, _ func(*status.JobEvent) error, _ func(error)) error {
	<-ctx.Done()
	c.finished <- struct{}{}
	return ctx.Err()
}

// A paused page buffers a bounded number of events. Beyond it, it ends its watch and
// starts a new one when it resumes.
func TestPausedPageBuffersABoundedNumberOfEvents(t *testing.T) {
	c := silentCluster{finished: make(chan struct{}, 2)}
	p, err := New(&data.Env{Context: t.Context(), Cluster: c, Now: time.Now}, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Start()
	first := p.watch
	p.togglePause()
	for range 200 {
		event := &status.JobEvent{Type: status.EventDiff, Items: make([]status.Job, 1000)}
		p.events(data.Events{Watch: first, Events: []*status.JobEvent{event}})
		if n := len(p.pausedEvents.batches); n > maxBufferedRows/1000 {
			t.Fatalf("%d batches of 1000 rows are buffered", n)
		}
	}
	select {
	case <-c.finished:
	case <-time.After(eventually.Timeout):
		t.Fatal("the watch did not end")
	}
	if cmd := p.togglePause(); cmd == nil || p.watch == first {
		t.Error("the page resumed without a new watch")
	}
	p.watch.Stop()
}
