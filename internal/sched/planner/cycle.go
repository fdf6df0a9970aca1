package planner

import (
	"context"
	"time"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
)

// A cycle is full or incremental. A full cycle plans all jobs on a new snapshot. Where
// that takes long, cycles are incremental: each decides only which jobs start now, on a
// snapshot that is updated with the changes, while all jobs are planned periodically in the
// background. See docs/decisions/0025-who-starts-now-and-when-the-others-will.md.

// maxInterval is the longest interval between cycles when nothing changes. Expected
// starts depend on the time, because they are measured from the end of jobs that exceed
// their time limit.
const maxInterval = time.Minute

// minInterval is the minimum interval until a cycle that is due at a given time.
const minInterval = 10 * time.Millisecond

// outcome is the result of a cycle.
type outcome struct {
	snapshot  *snapshot.Snapshot
	decisions []backfill.Decision
}

// cycle runs one planning cycle and returns when the next one is due if nothing
// changes.
func (p *Planner) cycle(ctx context.Context) time.Duration {
	start := p.now()

	// 1. Drain the changes since the last cycle.
	changed := p.changes.drain()

	// 2. Take a snapshot: a new one, or the incremental one after these changes.
	incremental := p.useIncremental
	s := p.takeSnapshot(start, changed)
	if s == nil {
		return maxInterval // another cycle is requested
	}

	// 3. Plan.
	planned := outcome{snapshot: s}
	if incremental {
		planned.decisions = p.planIncremental(start, changed)
	} else {
		planned.decisions = p.planFull(s, start)
	}

	// 4. Publish the plan. For incremental cycles the background does that.
	due := start.Add(maxInterval)
	if !incremental {
		due = p.publish(planned, start)
	}

	// 5. Start the jobs that start now: each is assumed to run from here on.
	p.start(ctx, start, p.placements(planned))

	// 6. Preempt running jobs for the first of the jobs that wait for that.
	if incremental {
		p.preemptIncremental(ctx, planned.decisions)
		p.incremental.SetPreemptors(p.preemptors.current())
	} else {
		p.preempt(ctx, planned)
	}

	p.starter.ReleaseUnused(start)

	// 7. Boot the nodes of pools that jobs have got or will get, and remove those that are idle.
	due = earlier(due, p.updatePower(ctx), start)
	if incremental {
		return min(p.refreshPlan(start), max(minInterval, due.Sub(start)))
	}
	return max(minInterval, due.Sub(start))
}

// updatePower decides about the nodes of pools, and returns when that is due again. No job is
// placed meanwhile, because this goroutine places them.
func (p *Planner) updatePower(ctx context.Context) time.Time {
	if p.UpdatePower == nil {
		return time.Time{}
	}
	return p.UpdatePower(ctx, p.EarliestStarts)
}

// takeSnapshot returns the snapshot to plan on. It returns nil if an incremental
// snapshot is not possible any more; then the next cycle is full.
func (p *Planner) takeSnapshot(now time.Time, changed changeSet) *snapshot.Snapshot {
	if !p.useIncremental {
		s := snapshot.New(p.input(now))
		s.Policy.PlanAll = p.isPlanAllDue(now)
		return s
	}
	if !p.follow(now, changed) && !p.newIncremental(now) {
		return nil
	}
	return p.incremental.Snapshot
}

// input returns the input of a snapshot, with the preemptors.
func (p *Planner) input(now time.Time) snapshot.Input {
	in := p.Input(now)
	in.Preemptors = p.preemptors.current()
	return in
}

// planFull plans all jobs on the new snapshot of a cycle that began at start.
func (p *Planner) planFull(s *snapshot.Snapshot, start time.Time) []backfill.Decision {
	planStart := p.now()
	decisions := s.Plan().Decisions
	end := p.now()
	p.duration.Store(int64(end.Sub(planStart)))
	if s.Policy.PlanAll {
		p.planned, p.plannedIn = start, end.Sub(planStart)
	}
	p.worked = end.Sub(start)
	p.useIncremental = p.worked >= p.incrementalFrom && s.CanFollow()
	p.stats.addCycle(start, p.worked, decisions, true)
	return decisions
}

// Expected starts of jobs without a reservation are planned in every full cycle while
// that takes at most planAllFast, and else every planAllInterval, because they do not
// affect which jobs start now.
const (
	planAllInterval = time.Second
	planAllFast     = 50 * time.Millisecond
)

func (p *Planner) isPlanAllDue(now time.Time) bool {
	return p.plannedIn <= planAllFast || now.Sub(p.planned) >= planAllInterval
}
