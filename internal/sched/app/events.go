package app

import (
	"context"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/events"
)

// A bound pod is one binding and one event that says so. Where many pods come at
// once, their bindings should not wait for the events of others.

const (
	// eventsQuiet is how long no event may have come for those kept back to be
	// written, and eventsLate how long one is kept back at most.
	eventsQuiet = 200 * time.Millisecond
	eventsLate  = 5 * time.Second
	// eventWriters is how many are written at a time.
	eventWriters = 4
)

// lateSink writes events when there are no more urgent writes: when no further
// one comes for a moment, or the oldest has waited for long. Safe for concurrent
// use.
type lateSink struct {
	events.EventSink
	now     func() time.Time
	writers chan struct{}

	mu   sync.Mutex
	last time.Time // when an event came
}

func newLateSink(to events.EventSink) *lateSink {
	return &lateSink{EventSink: to, now: time.Now, writers: make(chan struct{}, eventWriters)}
}

// Create writes a new event, late.
func (s *lateSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.await(ctx)
	select {
	case s.writers <- struct{}{}:
		defer func() { <-s.writers }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.EventSink.Create(ctx, e)
}

// await returns when it is quiet, or the event late.
func (s *lateSink) await(ctx context.Context) {
	came := s.now()
	s.mu.Lock()
	s.last = came
	s.mu.Unlock()
	for {
		wait := s.wait(came)
		if wait <= 0 {
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// wait is how much longer an event waits that came then.
func (s *lateSink) wait(came time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	return min(s.last.Add(eventsQuiet).Sub(now), came.Add(eventsLate).Sub(now))
}
