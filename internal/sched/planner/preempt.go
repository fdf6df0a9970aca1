package planner

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/preemption"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/sched/starter"
)

// maxPreemptors is the number of pending jobs, the most important ones, for which one
// plan looks for victims, so that few jobs are preempted at a time.
const maxPreemptors = 8

// preemptors are the pending jobs for which running jobs were preempted. The zero value
// is empty. Safe for concurrent use.
type preemptors struct {
	mu  sync.Mutex
	ids map[int64]bool
}

func (p *preemptors) add(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids == nil {
		p.ids = map[int64]bool{}
	}
	p.ids[id] = true
}

func (p *preemptors) remove(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ids, id)
}

// current returns a copy of the set.
func (p *preemptors) current() map[int64]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.ids)
}

// removeInactive removes the jobs that do not wait for their start any more.
func (p *preemptors) removeInactive(s *snapshot.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.ids {
		if b := s.Job(id); b == nil || !b.AwaitsStart() || b.Spec.Job.Hold != "" {
			delete(p.ids, id)
		}
	}
}

// preempt preempts running jobs for the first of the jobs that wait for that. Victims
// are selected once for each: while they end, and until the preemptor starts, it comes
// before all other jobs.
func (p *Planner) preempt(ctx context.Context, o outcome) {
	p.preemptors.removeInactive(o.snapshot)
	id, victims := findPreemptor(o, p.preemptors.current())
	p.evict(ctx, id, victims)
}

// findPreemptor returns the first of the most important jobs waiting for resources for
// which others may be preempted, and these victims. It returns 0 if there is none, or if
// jobs are being preempted for one of them already: what they free is known only when
// that preemptor runs.
func findPreemptor(o outcome, current map[int64]bool) (id int64, victims []preemption.Victim) {
	var started []backfill.Running
	considered := 0
	for i := range o.decisions {
		d := &o.decisions[i]
		if d.StartNow {
			started = append(started, runningJob(d, o.snapshot.Now))
			continue
		}
		if d.Reason != backfill.ReasonResources && d.Reason != backfill.ReasonPriority {
			continue
		}
		if considered++; considered > maxPreemptors || current[d.ID] {
			return 0, nil
		}
		if victims := preemption.Victims(o.snapshot, d.ID, started); len(victims) > 0 {
			return d.ID, victims
		}
	}
	return 0, nil
}

// evict preempts the victims for the job. If that fails for one, the next plan selects
// other victims.
func (p *Planner) evict(ctx context.Context, id int64, victims []preemption.Victim) {
	for _, v := range victims {
		victim := v.Job.Spec.JobID
		err := p.starter.Preempt(ctx, v.Job, id, v.Mode, v.Grace)
		if err != nil {
			if !errors.Is(err, starter.ErrChanged) && ctx.Err() == nil {
				p.log.Warn("job not preempted", "job", victim, "for", id, "error", err)
			}
			return
		}
		p.log.Info("job preempted", "job", victim, "for", id, "mode", v.Mode, "grace", v.Grace)
		p.preemptors.add(id)
	}
}

// preemptIncremental preempts running jobs for the preemptor that the newest background
// plan has found. It selects the victims from the jobs that run now.
func (p *Planner) preemptIncremental(ctx context.Context, decisions []backfill.Decision) {
	p.preemptors.removeInactive(p.incremental.Snapshot)
	plan := p.background.newest.Load()
	if plan == nil || plan == p.background.preempts || plan.preemptor == 0 {
		return
	}
	p.background.preempts = plan
	var started []backfill.Running
	for i := range decisions {
		started = append(started, runningJob(&decisions[i], p.incremental.Now))
	}
	p.evict(ctx, plan.preemptor, preemption.Victims(p.incremental, plan.preemptor, started))
}

// runningJob returns what a job that starts now will hold.
func runningJob(d *backfill.Decision, now int64) backfill.Running {
	r := backfill.Running{ID: d.ID, End: now + d.Duration}
	if d.Duration == backfill.Forever {
		r.End = backfill.Forever
	}
	for _, a := range d.Nodes {
		r.Allocation = append(r.Allocation, backfill.NodeAllocation{
			Node: a.Node, CPUs: a.CPUs, Memory: a.Memory, GRES: a.GRES,
		})
	}
	return r
}
