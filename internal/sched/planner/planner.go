// Package planner is the loop that plans: any change of the cluster wakes it,
// it takes a snapshot, has it planned, and starts what is to start now. The
// newest plan answers the queue API's questions.
package planner

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/priority"
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

	mu      sync.Mutex
	usage   map[priority.Key]map[string]float64
	usageAt time.Time

	explaining sync.Mutex
	observing  sync.Mutex

	stats stats

	refusing   map[string]refusal // by the node's Kubernetes name
	preemptors map[int64]bool     // jobs that others make room for; of Run alone
	shapes     *snapshot.View     // nodes and partitions only; nil: to be made again
}

// plan is one finished run.
type plan struct {
	view    *snapshot.View
	planned map[int64]control.Planned
	serial  uint64
	at      time.Time
}

// New makes a Planner, before the stores of c are fed.
func New(c *control.Cluster, s *starter.Starter, now func() time.Time, log *slog.Logger) *Planner {
	p := &Planner{cluster: c, starter: s, now: now, log: log, wake: make(chan struct{}, 1)}
	c.Jobs.Subscribe(func(_, _ *v1alpha1.BatchJob) { p.Wake() })
	c.Pods.Subscribe(p.podChanged)
	c.Nodes.Subscribe(p.nodeChanged)
	c.Reservations.Subscribe(func(_, _ *v1alpha1.Reservation) { p.Wake() })
	c.Partitions.Subscribe(func(_, _ *v1alpha1.Partition) { p.reshape() })
	c.Accounts.Subscribe(func(_, _ *v1alpha1.Account) { p.Wake() })
	c.QOS.Subscribe(func(_, _ *v1alpha1.QOS) { p.Wake() })
	c.Users.Subscribe(func(_, _ *v1alpha1.User) { p.Wake() })
	c.Settings.Subscribe(func(_, _ *v1alpha1.Cluster) { p.reshape() })
	return p
}

// Wake asks for a new plan.
func (p *Planner) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// reshape is Wake after a change of what jobs may ask for.
func (p *Planner) reshape() {
	p.mu.Lock()
	p.shapes = nil
	p.mu.Unlock()
	p.Wake()
}

// podChanged wakes for what a plan depends on: where a pod is and whether it
// is over.
func (p *Planner) podChanged(old, now *corev1.Pod) {
	if old != nil && now != nil && old.Spec.NodeName == now.Spec.NodeName && snapshot.Over(old) == snapshot.Over(now) {
		return
	}
	p.Wake()
}

// nodeChanged leaves out the kubelets' regular reports.
func (p *Planner) nodeChanged(old, now *corev1.Node) {
	if old != nil && now != nil &&
		snapshot.Unavailable(old) == snapshot.Unavailable(now) &&
		equality.Semantic.DeepEqual(old.Spec, now.Spec) &&
		equality.Semantic.DeepEqual(old.Labels, now.Labels) &&
		equality.Semantic.DeepEqual(old.Annotations, now.Annotations) &&
		equality.Semantic.DeepEqual(old.Status.Allocatable, now.Status.Allocatable) {
		return
	}
	p.reshape()
}

// Pauses before a plan, in which further changes are gathered: as long as the
// last plan took, within these bounds.
const (
	leastPause = time.Millisecond
	mostPause  = 300 * time.Millisecond
)

// Run plans until ctx ends.
func (p *Planner) Run(ctx context.Context) {
	pause := leastPause
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		if !sleep(ctx, pause) {
			return
		}
		began := time.Now()
		next := p.once(ctx)
		pause = min(max(leastPause, time.Since(began)), mostPause)
		timer.Reset(next)
	}
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
	view := p.view(now)
	next := idle
	if view.Options.PlanAll = p.expectsDue(now); !view.Options.PlanAll {
		next = expectEvery
	}
	began := time.Now()
	decisions := view.Plan().Decisions
	p.took.Store(int64(time.Since(began)))
	if view.Options.PlanAll {
		p.expected, p.expecting = now, time.Since(began)
	}
	p.stats.cycle(now, time.Since(now), decisions)
	done := &plan{view: view, planned: make(map[int64]control.Planned, len(decisions))}
	var starts [][]starter.Placement
	arrays := map[int64]int{} // array -> its place in starts
	for _, d := range decisions {
		w := view.Wanted(d.ID)
		if d.StartNow {
			pl := starter.Placement{
				Job: view.Job(d.ID), Partition: w.In(d.Choice), TimeLimit: w.Limit(d), Priority: w.Priority, Allocation: view.Allocation(d)}
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
			continue
		}
		pl := control.Planned{Reason: d.Reason, Priority: w.Priority, Nodes: view.Names(d)}
		if d.Start == 0 && !view.Options.PlanAll {
			p.keepExpected(d.ID, &pl, now)
		}
		if d.Start > 0 {
			pl.Start = time.Unix(d.Start, 0)
			if wait := pl.Start.Sub(now); wait > 0 {
				next = min(next, wait)
			}
		}
		// Of an array the first task that waits counts, and the limit on its
		// tasks only if nothing else holds them.
		if old, known := done.planned[d.ID]; !known || old.Reason == backfill.ReasonTaskLimit {
			done.planned[d.ID] = pl
		}
	}
	p.publish(done, now)
	p.tellHopeless(decisions)
	p.start(ctx, starts)
	p.preempt(ctx, view, decisions)
	p.starter.Settle(now)
	return max(next, 10*time.Millisecond)
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
		case "DependencyNeverSatisfied", backfill.ReasonDeadline:
			p.Hopeless(decisions[i].ID)
		}
	}
}

// view is the cluster as it is now, own writes included.
func (p *Planner) view(now time.Time) *snapshot.View {
	return snapshot.Build(snapshot.Input{
		Now: now, Nodes: p.cluster.Nodes.List(), Pods: p.cluster.Pods.List(), Jobs: p.cluster.Jobs.List(),
		Partitions: p.cluster.Partitions.List(), Reservations: p.cluster.Reservations.List(), Parameters: p.cluster.Parameters(),
		Policy: p.policy(now), Expected: p.preemptors, Avoid: p.avoided(now),
	})
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
				time.AfterFunc(time.Second, p.Wake)
			}
		})
	}
	wg.Wait()
}

func (p *Planner) place(ctx context.Context, s []starter.Placement) error {
	if s[0].Task != nil {
		return p.starter.PlaceTasks(ctx, s)
	}
	if len(s) > 1 {
		return p.starter.PlaceTogether(ctx, s)
	}
	return p.starter.Place(ctx, s[0])
}

// Planned is what the newest plan says of a waiting job; ok is false when it
// does not know the job.
func (p *Planner) Planned(jobID int64) (pl control.Planned, ok bool) {
	if n := p.newest.Load(); n != nil {
		pl, ok = n.planned[jobID]
	}
	return pl, ok
}

// Took is how long the newest plan took.
func (p *Planner) Took() time.Duration { return time.Duration(p.took.Load()) }

// NodesView describes every node of the pool, by name.
func (p *Planner) NodesView() []status.Node { return p.latest().NodeRows() }

// PartitionsView describes every partition, by name.
func (p *Planner) PartitionsView() []status.Partition { return p.latest().PartitionRows() }

// Newest is what the newest plan says of every waiting job, and the number of
// that plan; nobody may change the map.
func (p *Planner) Newest() (planned map[int64]control.Planned, serial uint64) {
	n := p.newest.Load()
	if n == nil {
		return nil, 0
	}
	return n.planned, n.serial
}

func (p *Planner) publish(n *plan, now time.Time) {
	n.serial, n.at = 1, now
	if last := p.newest.Load(); last != nil {
		n.serial = last.serial + 1
	}
	p.newest.Store(n)
}

func (p *Planner) latest() *snapshot.View {
	n := p.newest.Load()
	switch {
	case p.Passive:
		return p.observe()
	case n != nil:
		return n.view
	}
	return p.view(p.now())
}

// observed is how long a view without a plan serves when nothing changes.
const observed = time.Second

// observe makes the view of a passive planner, unless nothing has changed
// since the last one.
func (p *Planner) observe() *snapshot.View {
	p.observing.Lock()
	defer p.observing.Unlock()
	now, n := p.now(), p.newest.Load()
	select {
	case <-p.wake:
	default:
		if n != nil && now.Sub(n.at) < observed {
			return n.view
		}
	}
	n = &plan{view: p.view(now)}
	p.publish(n, now)
	return n.view
}

// Feasible says why the job could never run, in Slurm's words; nil if it could.
func (p *Planner) Feasible(b *v1alpha1.BatchJob) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shapes == nil {
		p.shapes = snapshot.Build(snapshot.Input{Now: p.now(), Nodes: p.cluster.Nodes.List(),
			Partitions: p.cluster.Partitions.List(), Parameters: p.cluster.Parameters()})
	}
	return p.shapes.Feasible(b)
}
