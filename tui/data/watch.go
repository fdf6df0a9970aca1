package data

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
)

// Bounds of following the queue.
const (
	// mostEvents are taken together into one message.
	mostEvents = 64
	// eventPause is the least time between two messages: ten frames a second.
	eventPause = 100 * time.Millisecond
	// Refusal is the pause before a watch that was refused is tried again.
	Refusal = 5 * time.Second
)

// Watch follows the queue. Its Next is a command; after each of its messages
// it has to be run again.
type Watch struct {
	events chan Events
	cancel context.CancelFunc
	last   time.Time
}

// Events is what a watch has to tell.
type Events struct {
	Watch  *Watch
	Events []*status.JobEvent
	// Lost says why nothing comes at the moment; the watch goes on by itself.
	Lost error
	// Err ended the watch.
	Err error
}

// Follow starts to watch.
func Follow(ctx context.Context, c Cluster, f jobs.Filter) *Watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watch{events: make(chan Events), cancel: cancel}
	send := func(e Events) error {
		select {
		case w.events <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	go func() {
		err := c.Watch(ctx, f, func(e *status.JobEvent) error { return send(Events{Events: []*status.JobEvent{e}}) },
			func(lost error) { _ = send(Events{Lost: lost}) })
		if err == nil {
			err = errors.New("the watch has ended")
		}
		_ = send(Events{Err: err})
		close(w.events)
	}()
	return w
}

// Stop ends the watch; Next returns nil from then on.
func (w *Watch) Stop() { w.cancel() }

// Next waits for events.
func (w *Watch) Next() tea.Msg {
	got, ok := <-w.events
	if !ok {
		return nil
	}
	if wait := eventPause - time.Since(w.last); wait > 0 && len(got.Events) > 0 {
		time.Sleep(wait)
	}
	w.last = time.Now()
	for len(got.Events) < mostEvents && got.Lost == nil && got.Err == nil {
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
