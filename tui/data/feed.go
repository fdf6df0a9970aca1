package data

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
)

// Feed is a watch of one page: it is open while the page is on the screen, and
// opened again when it was refused.
type Feed[E any] struct {
	env    *Env
	watch  WatchFunc[E]
	stream *Stream[E] // nil: closed
	// Err says why nothing comes; nil: all is well.
	Err error
}

// JobFeed follows jobs.
func JobFeed(env *Env, f jobs.Filter) Feed[*status.JobEvent] {
	return Feed[*status.JobEvent]{env: env, watch: jobsOf(env.Cluster, f)}
}

// NodeFeed follows the nodes.
func NodeFeed(env *Env) Feed[*status.NodeEvent] {
	return Feed[*status.NodeEvent]{env: env, watch: func(ctx context.Context, each func(*status.NodeEvent) error, lost func(error)) error {
		return env.Cluster.WatchNodes(ctx, each, lost)
	}}
}

// reopen asks to watch anew after a refusal.
type retry[E any] struct{ watch *Stream[E] }

// Start opens the feed; the command has to be run.
func (f *Feed[E]) Start() tea.Cmd {
	f.Stop()
	f.stream = open(f.env.Context, f.watch)
	return f.stream.Next
}

// Stop closes the feed.
func (f *Feed[E]) Stop() {
	if f.stream != nil {
		f.stream.Stop()
		f.stream = nil
	}
}

// Open tells whether the feed is open.
func (f *Feed[E]) Open() bool { return f.stream != nil }

// Take takes a message in, if it is of this feed: the events that it brought,
// and what has to be run next.
func (f *Feed[E]) Handle(msg tea.Msg) (events []E, next tea.Cmd, mine bool) {
	switch msg := msg.(type) {
	case retry[E]:
		if f.stream == nil || msg.watch != f.stream {
			return nil, nil, false
		}
		return nil, f.Start(), true
	case Batch[E]:
		if f.stream == nil || msg.Watch != f.stream {
			return nil, nil, false
		}
		if f.Err = msg.Lost; msg.Err != nil {
			f.Err = msg.Err
			return msg.Events, tea.Tick(RetryDelay, func(time.Time) tea.Msg { return retry[E]{msg.Watch} }), true
		}
		return msg.Events, f.stream.Next, true
	}
	return nil, nil, false
}
