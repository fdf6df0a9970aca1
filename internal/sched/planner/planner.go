// Package planner runs the planning cycles: a change of the cluster triggers a cycle,
// which takes a snapshot, plans, publishes the plan, and starts the jobs that start
// now. The published plan answers the queue API's queries (see package query).
package planner

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/query"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/sched/starter"
)

// Planner runs the planning cycles and answers queries. Safe for concurrent use.
type Planner struct {
	*query.Service

	// NeverRunnable, if set, is called for each job that can never start according to
	// the newest plan: the keeper may have to end it. It must not block.
	NeverRunnable func(jobID int64)
	// UpdatePower, if set, decides which nodes of pools boot or are removed, given the earliest
	// planned start on each node, and returns when it is due again; zero: never.
	UpdatePower func(ctx context.Context, planned func() map[string]time.Time) time.Time

	// Placed, if set, is called for each job that was started, with the times at which the
	// cycle began and the plan was made. task is that of an array. It must not block, and may
	// be called concurrently.
	Placed func(b *v1alpha1.BatchJob, task *int32, cycle, planned time.Time)

	cluster *control.Cluster
	starter *starter.Starter
	now     func() time.Time
	log     *slog.Logger

	changes    changes
	refusals   refusals
	preemptors preemptors
	stats      stats
	duration   atomic.Int64 // nanoseconds that the newest plan took

	// The following fields are used only by the goroutine of Run.

	// planned is when the jobs without a reservation were last planned, and plannedIn
	// the duration of that plan.
	planned   time.Time
	plannedIn time.Duration
	// worked is the duration of the last cycle without its writes.
	worked time.Duration

	incrementalFrom time.Duration         // see incrementalThreshold
	useIncremental  bool                  // cycles are incremental
	incremental     *snapshot.Incremental // nil: the next incremental cycle makes one
	background      background
}

// New returns a Planner. It subscribes to the stores of c, which must not be filled
// yet.
func New(c *control.Cluster, s *starter.Starter, now func() time.Time, log *slog.Logger) *Planner {
	p := &Planner{
		Service: query.New(c, now), cluster: c, starter: s, now: now, log: log,
		changes: changes{wake: make(chan struct{}, 1)}, incrementalFrom: incrementalThreshold,
	}
	p.RefusingNodes, p.Avoided = p.refusals.current, p.refusals.avoided
	p.Unprepared = p.refusals.currentUnprepared
	p.changes.subscribe(c)
	return p
}

// PlanDuration returns how long the newest plan took.
func (p *Planner) PlanDuration() time.Duration { return time.Duration(p.duration.Load()) }

// Wake requests a new cycle that plans everything from the cluster's objects.
func (p *Planner) Wake() { p.changes.addAll() }

// The pause after a cycle, in which further changes are collected, is pauseFactor
// times as long as the cycle took without its writes, between minPause and maxPause.
// With a long queue that grows by hundreds of jobs a second, the planner must leave
// processor time to those who submit them; an idle planner reacts immediately.
const (
	pauseFactor = 8

	minPause = time.Millisecond
	maxPause = 300 * time.Millisecond
)

// Run runs cycles until ctx is done.
func (p *Planner) Run(ctx context.Context) {
	var ready time.Time // when the next cycle may start
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer p.background.wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changes.wake:
		case <-timer.C:
		}
		if !sleep(ctx, max(minPause, ready.Sub(p.now()))) {
			return
		}
		next := p.cycle(ctx)
		ready = p.now().Add(pauseAfter(p.worked))
		timer.Reset(next)
	}
}

// pauseAfter returns the pause after a cycle of the given duration.
func pauseAfter(took time.Duration) time.Duration {
	return min(max(minPause, pauseFactor*took), maxPause)
}

// sleep waits, and returns false if ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
