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
	env   *Env
	watch Opener[E]
	live  *Stream[E] // nil: closed
	// Err says why nothing comes; nil: all is well.
	Err error
}

// JobFeed follows jobs.
func JobFeed(env *Env, f jobs.Filter) Feed[*status.JobEvent] {
	return Feed[*status.JobEvent]{env: env, watch: ofJobs(env.Cluster, f)}
}

// NodeFeed follows the nodes.
func NodeFeed(env *Env) Feed[*status.NodeEvent] {
	return Feed[*status.NodeEvent]{env: env, watch: func(ctx context.Context, each func(*status.NodeEvent) error, lost func(error)) error {
		return env.Cluster.WatchNodes(ctx, each, lost)
	}}
}

// reopen asks to watch anew after a refusal.
type reopen[E any] struct{ watch *Stream[E] }

// Start opens the feed; the command has to be run.
func (f *Feed[E]) Start() tea.Cmd {
	f.Stop()
	f.live = open(f.env.Context, f.watch)
	return f.live.Next
}

// Stop closes the feed.
func (f *Feed[E]) Stop() {
	if f.live != nil {
		f.live.Stop()
		f.live = nil
	}
}

// Open tells whether the feed is open.
func (f *Feed[E]) Open() bool { return f.live != nil }

// Take takes a message in, if it is of this feed: the events that it brought,
// and what has to be run next.
func (f *Feed[E]) Take(msg tea.Msg) (events []E, next tea.Cmd, mine bool) {
	switch msg := msg.(type) {
	case reopen[E]:
		if f.live == nil || msg.watch != f.live {
			return nil, nil, false
		}
		return nil, f.Start(), true
	case Batch[E]:
		if f.live == nil || msg.Watch != f.live {
			return nil, nil, false
		}
		if f.Err = msg.Lost; msg.Err != nil {
			f.Err = msg.Err
			return msg.Events, tea.Tick(Refusal, func(time.Time) tea.Msg { return reopen[E]{msg.Watch} }), true
		}
		return msg.Events, f.live.Next, true
	}
	return nil, nil, false
}
