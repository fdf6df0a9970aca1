package data

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
)

// Feed is a watch for one page. It is open while the page is visible, and is
// reopened after the server refused it.
type Feed[E any] struct {
	env    *Env
	watch  WatchFunc[E]
	stream *Stream[E] // nil: closed
	// Err is why no events arrive; nil: they do.
	Err error
}

// JobFeed returns a feed of the jobs that pass f. It is closed until Start.
func JobFeed(env *Env, f jobs.Filter) Feed[*status.JobEvent] {
	return Feed[*status.JobEvent]{env: env, watch: jobsOf(env.Cluster, f)}
}

// NodeFeed returns a feed of all nodes. It is closed until Start.
func NodeFeed(env *Env) Feed[*status.NodeEvent] {
	watch := func(ctx context.Context, each func(*status.NodeEvent) error, lost func(error)) error {
		return env.Cluster.WatchNodes(ctx, each, lost)
	}
	return Feed[*status.NodeEvent]{env: env, watch: watch}
}

// retry reopens the feed after the server refused a watch.
type retry[E any] struct{ watch *Stream[E] }

// Start opens the feed and returns the command that waits for its first events.
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

// Open reports whether the feed is open.
func (f *Feed[E]) Open() bool { return f.stream != nil }

// Handle handles a message of this feed: it returns the events in it and the
// command that waits for the next ones. handled is false for any other message.
func (f *Feed[E]) Handle(msg tea.Msg) (events []E, next tea.Cmd, handled bool) {
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
