// Package planner is the loop that plans: any change of the cluster wakes it,
// it takes a snapshot, has it planned, and starts what is to start now. The
// newest plan answers the queue API's questions.
package planner

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/status"
)

// Planner plans. Safe for concurrent use.
type Planner struct {
	// Hopeless, if set, is told of each job that by the newest plan will never
	// start as it is: the keeper may have to end it. It must not block.
	Hopeless func(jobID int64)

	// Usage, if set, tells what finished runs have used; else only running
	// jobs count for fair share.
	Usage UsageSource

	// Passive: Run is never called, another process plans. What the views say of
	// nodes and partitions is made from the stores when it is asked for.
	Passive bool

	cluster *control.Cluster
	starter *starter.Starter
	now     func() time.Time
	log     *slog.Logger

	// expected is when the jobs without a reservation were last planned too,
	// expecting how long that plan took.
	expected  time.Time
	expecting time.Duration

	wake   chan struct{}
	newest atomic.Pointer[plan]
	took   atomic.Int64 // nanoseconds of the newest plan

	reading sync.Mutex // held while what was used is read
	usage   snapshot.Used
	usageAt time.Time

	explaining sync.Mutex
	observing  sync.Mutex
	forecasts  forecasts

	stats stats

	mu         sync.Mutex
	refusing   map[string]refusal // by the node's Kubernetes name
	preemptors map[int64]bool     // jobs that others make room for

	shaping  sync.Mutex // held while one is told what is feasible
	shapes   *snapshot.View
	reshaped atomic.Bool // shapes, of nodes and partitions only, is out of date

	changing sync.Mutex
	changed  changes

	// Of Run alone: how long the last pass took before it wrote anything; whether
	// changes are followed, on what; that something has changed since everything
	// was planned, and when that was begun.
	worked     time.Duration
	followFrom time.Duration
	follows    bool
	live       *snapshot.Live
	dirty      bool
	planned    time.Time
	preempted  *refreshed // whose preemptor has been seen to

	busy       atomic.Bool // everything is being planned
	refreshed  atomic.Pointer[refreshed]
	refreshing sync.WaitGroup
}

// plan is one finished run.
type plan struct {
	view    *snapshot.View
	planned map[int64]control.Planned
	serial  uint64
	at      time.Time

	await sync.Once
	nodes map[string]time.Time // see awaited
}

func newPlan(view *snapshot.View, decisions int) *plan {
	return &plan{view: view, planned: make(map[int64]control.Planned, decisions)}
}

// add says what is planned for a waiting job. Of an array the first task that
// waits counts, and the limit on its tasks only if nothing else holds them.
func (n *plan) add(id int64, pl control.Planned) {
	if old, known := n.planned[id]; !known || old.Reason == backfill.ReasonArrayTaskLimit {
		n.planned[id] = pl
	}
}

// New makes a Planner, before the stores of c are fed.
func New(c *control.Cluster, s *starter.Starter, now func() time.Time, log *slog.Logger) *Planner {
	p := &Planner{cluster: c, starter: s, now: now, log: log, wake: make(chan struct{}, 1), followFrom: followFrom}
	c.Jobs.Subscribe(func(old, now *v1alpha1.BatchJob) {
		if now == nil {
			now = old
		}
		p.jobChanged(now.Spec.JobID)
	})
	c.Pods.Subscribe(p.podChanged)
	c.Nodes.Subscribe(p.nodeChanged)
	c.Reservations.Subscribe(func(_, _ *v1alpha1.Reservation) { p.Wake() })
	c.Partitions.Subscribe(func(_, _ *v1alpha1.Partition) { p.reshape() })
	c.Accounts.Subscribe(func(_, _ *v1alpha1.Account) { p.Wake() })
	c.QOS.Subscribe(func(_, _ *v1alpha1.QOS) { p.reshape() })
	c.Users.Subscribe(func(_, _ *v1alpha1.User) { p.Wake() })
	c.Settings.Subscribe(func(_, _ *v1alpha1.Cluster) { p.reshape() })
	return p
}

// Pauses after a plan, in which further changes are gathered: so many times as
// long as the plan took and what it was made from, within these bounds. A long
// queue that grows by hundreds of jobs a second must leave the processors to
// those who submit them; a planner that had nothing to do answers at once.
const (
	pauseFactor = 8

	leastPause = time.Millisecond
	mostPause  = 300 * time.Millisecond
)

// Run plans until ctx ends.
func (p *Planner) Run(ctx context.Context) {
	var ready time.Time // when the next pass may be
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer p.refreshing.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		if !sleep(ctx, max(leastPause, time.Until(ready))) {
			return
		}
		next := p.once(ctx)
		ready = time.Now().Add(pauseAfter(p.worked))
		timer.Reset(next)
	}
}

// pauseAfter is the pause after a plan that took so long. Writing what it says
// does not count: who is started there is waited for.
func pauseAfter(took time.Duration) time.Duration {
	return min(max(leastPause, pauseFactor*took), mostPause)
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// idle is how long a plan is kept when nothing changes: expected starts are
// measured from the end of jobs that are over time.
const idle = time.Minute

// once makes one plan, starts what is to start now, and says when to plan
// again if nothing changes.
func (p *Planner) once(ctx context.Context) time.Duration {
	select { // changes from here on need another plan
	case <-p.wake:
	default:
	}
	now := p.now()
	if p.follows {
		return p.follow(ctx, now)
	}
	all := time.Now()
	p.take()
	view := p.view(now)
	next := idle
	if view.Policy.PlanAll = p.expectsDue(now); !view.Policy.PlanAll {
		next = expectEvery
	}
	began := time.Now()
	decisions := view.Plan().Decisions
	p.took.Store(int64(time.Since(began)))
	if view.Policy.PlanAll {
		p.expected, p.expecting = now, time.Since(began)
	}
	p.worked = time.Since(all)
	p.follows = p.following(view, p.worked)
	p.stats.cycle(now, p.worked, decisions, true)
	done := newPlan(view, len(decisions))
	for _, d := range decisions {
		if d.StartNow {
			continue
		}
		pl := p.plannedOf(view, d, now)
		if wait := pl.Start.Sub(now); d.Start > 0 && wait > 0 {
			next = min(next, wait)
		}
		if at := delayed(view, d); at.After(now) {
			next = min(next, at.Sub(now))
		}
		done.add(d.ID, pl)
	}
	p.publish(done, now)
	p.tellHopeless(decisions)
	p.start(ctx, p.placements(view, decisions))
	p.preempt(ctx, view, decisions)
	p.starter.Settle(now)
	return max(next, 10*time.Millisecond)
}

// delayed is when a dependency's delay is over that holds a job up: nothing else
// happens then. Zero: none does.
func delayed(view *snapshot.View, d backfill.Decision) time.Time {
	if !strings.HasPrefix(d.Reason, "Dependency") {
		return time.Time{}
	}
	if at := view.DelayEnds(d.ID); at > 0 {
		return time.Unix(at, 0)
	}
	return time.Time{}
}

// plannedOf is what is said of a job that waits.
func (p *Planner) plannedOf(view *snapshot.View, d backfill.Decision, now time.Time) control.Planned {
	w := view.Wanted(d.ID)
	pl := control.Planned{Reason: view.Why(d), Priority: w.Priority, Nodes: view.Names(d), NodeCPUs: view.LargestNode(w.Partition)}
	if strings.HasPrefix(d.Reason, "Dependency") {
		pl.Outcomes = view.Outcomes(d.ID)
	}
	if d.Start > 0 {
		pl.Start = time.Unix(d.Start, 0)
	} else if !view.Policy.PlanAll {
		p.keepExpected(d.ID, &pl, now)
	}
	return pl
}

// placements are what is to start, the tasks of one array and the parts of one
// heterogeneous job together.
func (p *Planner) placements(view *snapshot.View, decisions []backfill.Decision) [][]starter.Placement {
	var starts [][]starter.Placement
	arrays := map[int64]int{} // array -> its place in starts
	for _, d := range decisions {
		w := view.Wanted(d.ID)
		if d.StartNow {
			pl := starter.Placement{
				Job: view.Job(d.ID), Partition: w.In(d.Choice), TimeLimit: w.Limit(d), Priority: w.Priority, Allocation: view.Allocation(d),
				Reservation: view.Attracted(d)}
			key := d.ID
			if het := array.HetID(pl.Job); het != 0 {
				key = het
			}
			at, known := arrays[key]
			if !known {
				at = len(starts)
				starts = append(starts, nil)
			}
			if arrays[key] = at; len(w.Tasks) > 0 {
				pl.Task = &w.Tasks[len(starts[at])]
			}
			starts[at] = append(starts[at], pl)
		}
	}
	return starts
}

// Expected starts of jobs that have no reservation are worked out with every
// plan as long as that is quick, and else every so often: who starts now does
// not depend on them.
const (
	expectEvery = time.Second
	expectQuick = 50 * time.Millisecond
)

func (p *Planner) expectsDue(now time.Time) bool {
	return p.expecting <= expectQuick || now.Sub(p.expected) >= expectEvery
}

// keepExpected takes over what the last plan expected of a job, as far as it
// is still to come.
func (p *Planner) keepExpected(id int64, pl *control.Planned, now time.Time) {
	last := p.newest.Load()
	if last == nil {
		return
	}
	if old, known := last.planned[id]; known && old.Start.After(now) {
		pl.Start, pl.Nodes = old.Start, old.Nodes
	}
}

// tellHopeless passes on the jobs that only the keeper can do something about.
func (p *Planner) tellHopeless(decisions []backfill.Decision) {
	if p.Hopeless == nil {
		return
	}
	for i := range decisions {
		switch decisions[i].Reason {
		case status.ReasonDependencyNeverSatisfied, backfill.ReasonDeadline:
			p.Hopeless(decisions[i].ID)
		}
	}
}

// view is the cluster as it is now, own writes included.
func (p *Planner) view(now time.Time) *snapshot.View {
	return snapshot.Build(p.input(now, p.chosen()))
}

// input is what a view is made of; expected are the preemptors, where Run asks.
func (p *Planner) input(now time.Time, expected map[int64]bool) snapshot.Input {
	return snapshot.Input{
		Now: now, Nodes: p.cluster.Nodes.List(), Pods: p.cluster.Pods.List(), Jobs: p.cluster.Jobs.List(),
		Partitions: p.cluster.Partitions.List(), Reservations: p.cluster.Reservations.List(), Parameters: p.cluster.Parameters(),
		Policy: p.policy(now), Expected: expected, Avoid: p.avoided(now),
	}
}

// startsAtOnce bounds the placements written at the same time.
const startsAtOnce = 16

// start writes every placement, those of one array together; the next plan
// sees those that succeeded, and plans the others again.
func (p *Planner) start(ctx context.Context, starts [][]starter.Placement) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, startsAtOnce)
	for _, s := range starts {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := p.place(ctx, s)
			if err != nil && !errors.Is(err, starter.ErrChanged) && ctx.Err() == nil {
				p.log.Warn("job not started", "job", s[0].Job.Spec.JobID, "error", err)
				time.AfterFunc(time.Second, p.wakeUp)
			}
		})
	}
	wg.Wait()
}

func (p *Planner) place(ctx context.Context, s []starter.Placement) (err error) {
	switch {
	case s[0].Task != nil:
		err = p.starter.PlaceTasks(ctx, s)
	case len(s) > 1:
		err = p.starter.PlaceTogether(ctx, s)
	default:
		err = p.starter.Place(ctx, s[0])
	}
	if err == nil {
		p.placed(s[0].Job.Spec.JobID)
	}
	return err
}
