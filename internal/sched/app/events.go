package app

import (
	"context"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/events"
)

// A bound pod causes one binding and one event. When many pods arrive at once, their
// bindings should not wait for the events of others.

const (
	// eventsQuiet is how long no event must have arrived before delayed ones are
	// written, and eventsLate how long one is delayed at most.
	eventsQuiet = 200 * time.Millisecond
	eventsLate  = 5 * time.Second
	// eventWriters is how many events are written at a time.
	eventWriters = 4
)

// lateSink delays events until more urgent writes are done: until no further event has
// arrived for a moment, or the oldest has waited long enough. Safe for concurrent use.
type lateSink struct {
	events.EventSink
	now     func() time.Time
	writers chan struct{}

	mu   sync.Mutex
	last time.Time // when the last event arrived
}

func newLateSink(to events.EventSink) *lateSink {
	return &lateSink{EventSink: to, now: time.Now, writers: make(chan struct{}, eventWriters)}
}

// Create writes a new event, with a delay.
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

// await returns when no further events arrive, when the event has waited for eventsLate,
// or when ctx ends.
func (s *lateSink) await(ctx context.Context) {
	arrived := s.now()
	s.mu.Lock()
	s.last = arrived
	s.mu.Unlock()
	for {
		wait := s.wait(arrived)
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

// wait returns how much longer an event that arrived then has to wait.
func (s *lateSink) wait(arrived time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	return min(s.last.Add(eventsQuiet).Sub(now), arrived.Add(eventsLate).Sub(now))
}
