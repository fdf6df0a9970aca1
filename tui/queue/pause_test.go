package queue

import (
	"context"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
)

// silentCluster is a cluster whose watches say nothing and report their end.
type silentCluster struct {
	data.Cluster
	finishedBy chan struct{}
}

func (c silentCluster) Watch(ctx context.Context, _ jobs.Filter, _ func(*status.JobEvent) error, _ func(error)) error {
	<-ctx.Done()
	c.finishedBy <- struct{}{}
	return ctx.Err()
}

// A page that is paused for long keeps a bounded number of events, ends its
// watch beyond it, and watches anew when it goes on.
func TestAPausedPageKeepsABoundedNumberOfEvents(t *testing.T) {
	c := silentCluster{finishedBy: make(chan struct{}, 2)}
	p, err := New(&data.Env{Context: t.Context(), Cluster: c, Now: time.Now}, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Start()
	first := p.watch
	p.togglePause()
	for range 200 {
		p.events(data.Events{Watch: first, Events: []*status.JobEvent{{Type: status.EventDiff, Items: make([]status.Job, 1000)}}})
		if n := len(p.pausedEvents.batches); n > maxBufferedRows/1000 {
			t.Fatalf("%d batches of 1000 rows are kept", n)
		}
	}
	select {
	case <-c.finishedBy:
	case <-time.After(30 * time.Second):
		t.Fatal("the watch goes on")
	}
	if cmd := p.togglePause(); cmd == nil || p.watch == first {
		t.Error("the page goes on without a new watch")
	}
	p.watch.Stop()
}
