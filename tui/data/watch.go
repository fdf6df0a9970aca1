package data

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
)

const (
	// maxEvents bounds the events that one message carries.
	maxEvents = 64
	// eventPause is the minimum time between two messages: ten frames a second.
	eventPause = 100 * time.Millisecond
	// RetryDelay is the pause before a watch that the server refused is tried again.
	RetryDelay = 5 * time.Second
)

// Stream is a running watch. Next is a command that waits for events; run it again
// after each of its messages.
type Stream[E any] struct {
	events chan Batch[E]
	cancel context.CancelFunc
	last   time.Time
}

// Batch is a message with the events that a watch has received.
type Batch[E any] struct {
	Watch  *Stream[E]
	Events []E
	// Lost is why the watch is interrupted; it resumes by itself.
	Lost error
	// Err is the error that ended the watch.
	Err error
}

// Watch is a watch of jobs.
type Watch = Stream[*status.JobEvent]

// Events is a message with the events of a watch of jobs.
type Events = Batch[*status.JobEvent]

// WatchJobs starts a watch of the jobs that pass f.
func WatchJobs(ctx context.Context, c Cluster, f jobs.Filter) *Watch { return open(ctx, jobsOf(c, f)) }

// WatchFunc calls each with every event until ctx is done, each returns an error
// or the server refuses the watch. It calls lost when the watch is interrupted.
type WatchFunc[E any] func(ctx context.Context, each func(E) error, lost func(error)) error

func jobsOf(c Cluster, f jobs.Filter) WatchFunc[*status.JobEvent] {
	return func(ctx context.Context, each func(*status.JobEvent) error, lost func(error)) error {
		return c.Watch(ctx, f, each, lost)
	}
}

// open starts a watch.
func open[E any](ctx context.Context, watch WatchFunc[E]) *Stream[E] {
	ctx, cancel := context.WithCancel(ctx)
	w := &Stream[E]{events: make(chan Batch[E]), cancel: cancel}
	send := func(e Batch[E]) error {
		select {
		case w.events <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	go func() {
		err := watch(ctx,
			func(e E) error { return send(Batch[E]{Events: []E{e}}) },
			func(lost error) { _ = send(Batch[E]{Lost: lost}) })
		if err == nil {
			err = errors.New("the watch has ended")
		}
		_ = send(Batch[E]{Err: err})
		close(w.events)
	}()
	return w
}

// Stop ends the watch. Next returns nil from then on.
func (w *Stream[E]) Stop() { w.cancel() }

// Next waits for events and returns a Batch of them.
func (w *Stream[E]) Next() tea.Msg {
	got, ok := <-w.events
	if !ok {
		return nil
	}
	if wait := eventPause - time.Since(w.last); wait > 0 && len(got.Events) > 0 {
		time.Sleep(wait)
	}
	w.last = time.Now()
	for len(got.Events) < maxEvents && got.Lost == nil && got.Err == nil {
		select {
		case more, ok := <-w.events:
			if !ok {
				got.Watch = w
				return got
			}
			got.Events = append(got.Events, more.Events...)
			got.Lost, got.Err = more.Lost, more.Err
			continue
		default:
		}
		break
	}
	got.Watch = w
	return got
}
