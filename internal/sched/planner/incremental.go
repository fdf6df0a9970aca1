package planner

import (
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
)

// incrementalThreshold is the duration of a full cycle from which on cycles are
// incremental.
const incrementalThreshold = 40 * time.Millisecond

// follow applies the changes to the incremental snapshot, and reports whether that was
// possible.
func (p *Planner) follow(now time.Time, changed changeSet) bool {
	if p.incremental == nil || changed.all {
		return false
	}
	jobs := make(map[int64]*v1alpha1.BatchJob, len(changed.jobs))
	for id := range changed.jobs {
		jobs[id], _ = p.cluster.Job(id)
	}
	nodes := make(map[string]*corev1.Node, len(changed.nodes))
	for name := range changed.nodes {
		nodes[name], _ = p.cluster.Nodes.Get(name)
	}
	return p.incremental.FollowNodes(nodes) && p.incremental.Follow(now, jobs)
}

// newIncremental creates a new incremental snapshot. If that is not possible, it makes the
// next cycle a full one and returns false.
func (p *Planner) newIncremental(now time.Time) bool {
	p.incremental, p.useIncremental = snapshot.NewIncremental(p.input(now), p.cluster.JobPods)
	if !p.useIncremental {
		p.leaveIncremental()
	}
	return p.useIncremental
}

// leaveIncremental makes the next cycle a full one.
func (p *Planner) leaveIncremental() {
	p.background.wg.Wait()
	p.useIncremental, p.incremental = false, nil
	p.Wake()
}

// planIncremental decides which jobs start now.
func (p *Planner) planIncremental(start time.Time, changed changeSet) []backfill.Decision {
	decisions := p.incremental.Decide()
	p.worked = p.now().Sub(start)
	p.duration.Store(int64(p.worked))
	p.stats.addStarts(len(decisions), p.incremental.Backfilled())
	p.background.dirty = p.background.dirty || !changed.isEmpty() || len(decisions) > 0
	return decisions
}

// background plans all jobs while cycles are incremental.
type background struct {
	wg     sync.WaitGroup
	busy   atomic.Bool // a plan is in progress
	newest atomic.Pointer[backgroundPlan]

	// The following fields are used only by the goroutine of Run.
	dirty    bool            // something has changed since the last plan began
	started  time.Time       // when the last plan began
	preempts *backgroundPlan // the plan whose preemptor has been handled
}

// backgroundPlan has the results of a background plan that cycles use.
type backgroundPlan struct {
	took      time.Duration
	fast      bool      // cycles may plan all jobs again
	due       time.Time // of the first planned start
	preemptor int64     // a job for which others may be preempted; 0: none
}

// backgroundShare is the inverse of the maximum share of time that background plans take.
const backgroundShare = 3

// refreshPlan starts planning all jobs in the background if that is due, and returns when
// the next cycle is due.
func (p *Planner) refreshPlan(now time.Time) time.Duration {
	newest := p.background.newest.Load()
	if newest != nil && newest.fast {
		p.leaveIncremental()
		p.background.newest.Store(nil)
		return maxInterval
	}
	next := maxInterval
	if newest != nil && newest.due.After(now) {
		next = min(next, newest.due.Sub(now))
	}
	if p.background.busy.Load() {
		return next // its end requests a cycle
	}
	every := planAllInterval
	if newest != nil {
		every = max(every, backgroundShare*newest.took)
	}
	if wait := p.background.started.Add(every).Sub(now); wait > 0 && p.background.dirty {
		return min(next, wait)
	}
	if p.background.dirty || now.Sub(p.background.started) >= maxInterval {
		p.background.dirty, p.background.started = false, now
		p.background.busy.Store(true)
		in := p.input(now)
		p.background.wg.Go(func() { p.planBackground(in, now) })
	}
	return next
}

// planBackground plans all jobs and publishes the plan.
func (p *Planner) planBackground(in snapshot.Input, now time.Time) {
	start := p.now()
	s := snapshot.New(in)
	planned := outcome{snapshot: s, decisions: s.Plan().Decisions}
	plan := &backgroundPlan{took: p.now().Sub(start)}
	plan.fast = plan.took < p.incrementalFrom/2 || !s.CanFollow()
	p.stats.addCycle(now, plan.took, planned.decisions, false)
	plan.due = p.publish(planned, now)
	plan.preemptor, _ = findPreemptor(planned, in.Preemptors)
	plan.took = p.now().Sub(start)
	p.background.newest.Store(plan)
	p.background.busy.Store(false)
	p.changes.requestCycle()
}
