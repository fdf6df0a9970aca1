package app

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/events"
)

// counted counts the written events.
type counted struct {
	events.EventSink
	n atomic.Int32
}

func (c *counted) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	c.n.Add(1)
	return e, nil
}

// Events are written when no more arrive, none later than the limit, and none is lost.
func TestEventsWaitUntilItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &counted{}
		s := newLateSink(to)
		event := func() { go func() { _, _ = s.Create(t.Context(), &eventsv1.Event{}) }() }
		event()
		time.Sleep(eventsQuiet - time.Millisecond)
		if synctest.Wait(); to.n.Load() != 0 {
			t.Error("an event is written at once")
		}
		event()
		time.Sleep(eventsQuiet - time.Millisecond)
		if synctest.Wait(); to.n.Load() != 0 {
			t.Error("an event is written while others arrive")
		}
		time.Sleep(time.Millisecond)
		if synctest.Wait(); to.n.Load() != 2 {
			t.Errorf("%d of 2 events are written when it is quiet", to.n.Load())
		}
		for range 100 {
			event()
			time.Sleep(eventsQuiet / 2)
		}
		if synctest.Wait(); to.n.Load() < 2+40 {
			t.Errorf("%d events were written in ten seconds", to.n.Load())
		}
		time.Sleep(eventsLate)
		if synctest.Wait(); to.n.Load() != 102 {
			t.Errorf("%d of 102 events were written", to.n.Load())
		}
	})
}

// The writers of a process that ends do not stay.
func TestEventWritersEndWithTheirProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		to := &counted{}
		s := newLateSink(to)
		for range 10 {
			go func() { _, _ = s.Create(ctx, &eventsv1.Event{}) }()
		}
		cancel()
		if synctest.Wait(); len(s.writers) != 0 {
			t.Errorf("%d writers are left, %d events were written", len(s.writers), to.n.Load())
		}
	})
}
