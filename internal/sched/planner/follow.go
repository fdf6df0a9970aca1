package planner

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
)

// Where a plan of everything takes long, the planner does two things that do
// not wait for each other: after each change it decides who starts now, on a
// view that follows the jobs, and every so often it makes a plan of everything,
// beside that, which says when the others will start and why they wait. See
// docs/decisions/0025-who-starts-now-and-when-the-others-will.md.

// followFrom is how long a plan of everything takes at least where that is done.
const followFrom = 40 * time.Millisecond

// changes are what happened since the last pass.
type changes struct {
	all   bool // more than jobs and nodes changed
	jobs  map[int64]bool
	nodes map[string]bool // by their Kubernetes names
}

func (c *changes) any() bool { return c.all || len(c.jobs)+len(c.nodes) > 0 }

// jobChanged notes a change of a job, or of one of its pods.
func (p *Planner) jobChanged(id int64) {
	p.changing.Lock()
	if p.changed.jobs == nil {
		p.changed.jobs = map[int64]bool{}
	}
	p.changed.jobs[id] = true
	p.changing.Unlock()
	p.wakeUp()
}

// take hands over the changes.
func (p *Planner) take() changes {
	p.changing.Lock()
	defer p.changing.Unlock()
	c := p.changed
	p.changed = changes{}
	return c
}

// following tells whether from now on changes are followed, after a plan of
// everything took so long.
func (p *Planner) following(v *snapshot.View, took time.Duration) bool {
	return took >= p.followFrom && v.Followable()
}

// follow decides who starts now, and says when to do so again if nothing
// changes.
func (p *Planner) follow(ctx context.Context, now time.Time) time.Duration {
	began := time.Now()
	c := p.take()
	if !p.followed(now, c) {
		in := p.input(now, p.chosen())
		if p.live, p.follows = snapshot.NewLive(in, p.cluster.JobPods); !p.follows {
			p.live = nil
			p.refreshing.Wait()
			p.Wake()
			return idle
		}
	}
	decisions := p.live.Decide()
	p.worked = time.Since(began)
	p.took.Store(int64(p.worked))
	p.stats.started(len(decisions), p.live.Backfilled())
	p.dirty = p.dirty || c.any() || len(decisions) > 0
	p.start(ctx, p.placements(p.live.View, decisions))
	p.preemptLive(ctx, decisions)
	p.live.Expect(p.chosen())
	p.starter.Settle(now)
	return p.refresh(now)
}

// followed tells whether the view could take in the changes.
func (p *Planner) followed(now time.Time, c changes) bool {
	if p.live == nil || c.all {
		return false
	}
	jobs := make(map[int64]*v1alpha1.BatchJob, len(c.jobs))
	for id := range c.jobs {
		jobs[id], _ = p.cluster.Job(id)
	}
	nodes := make(map[string]*corev1.Node, len(c.nodes))
	for name := range c.nodes {
		nodes[name], _ = p.cluster.Nodes.Get(name)
	}
	return p.live.FollowNodes(nodes) && p.live.Follow(now, jobs)
}

// refreshShare is the part of the time in which everything is planned at most.
const refreshShare = 3

// refresh has everything planned in the background, where that is due, and says
// when the next pass is.
func (p *Planner) refresh(now time.Time) time.Duration {
	done := p.refreshed.Load()
	if done != nil && done.quick {
		p.refreshing.Wait()
		p.follows, p.live = false, nil
		p.refreshed.Store(nil)
		p.Wake()
		return idle
	}
	next := idle
	if done != nil && done.due.After(now) {
		next = min(next, done.due.Sub(now))
	}
	if p.busy.Load() {
		return next // it wakes
	}
	every := expectEvery
	if done != nil {
		every = max(every, refreshShare*done.took)
	}
	if wait := p.planned.Add(every).Sub(now); wait > 0 && p.dirty {
		return min(next, wait)
	}
	if p.dirty || now.Sub(p.planned) >= idle {
		p.dirty, p.planned = false, now
		p.busy.Store(true)
		in := p.input(now, p.chosen())
		p.refreshing.Go(func() { p.planAll(in, now) })
	}
	return next
}

// refreshed is what the loop has to know of a plan that was made beside it.
type refreshed struct {
	took  time.Duration
	quick bool      // everything could be planned at each change
	due   time.Time // of the first start to come

	preemptor int64 // a job that waits for whom others may make room; 0: none
}

// planAll plans everything and publishes it.
func (p *Planner) planAll(in snapshot.Input, now time.Time) {
	began := time.Now()
	view := snapshot.Build(in)
	decisions := view.Plan().Decisions
	r := &refreshed{took: time.Since(began)}
	r.quick = r.took < p.followFrom/2 || !view.Followable()
	p.stats.cycle(now, r.took, decisions, false)
	r.due = p.announce(view, decisions, now)
	p.tellHopeless(decisions)
	r.preemptor, _ = preemptor(view, decisions, in.Expected)
	r.took = time.Since(began)
	p.refreshed.Store(r)
	p.busy.Store(false)
	p.wakeUp()
}

// announce publishes what a plan says of those who wait, and returns when the
// first of them is to start.
func (p *Planner) announce(view *snapshot.View, decisions []backfill.Decision, now time.Time) (due time.Time) {
	done := newPlan(view, len(decisions))
	due = now.Add(idle)
	for _, d := range decisions {
		if d.StartNow {
			continue
		}
		pl := p.plannedOf(view, d, now)
		if pl.Start.After(now) && pl.Start.Before(due) {
			due = pl.Start
		}
		if at := delayed(view, d); at.After(now) && at.Before(due) {
			due = at
		}
		done.add(d.ID, pl)
	}
	p.publish(done, now)
	return due
}
