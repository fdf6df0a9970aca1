package planner

import (
	"context"
	"errors"
	"maps"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/sched/starter"
)

// mostPreemptors is for how many waiting jobs one plan looks for victims: the
// most important ones, so that preemption never comes in storms.
const mostPreemptors = 8

// preempt has running jobs make room for the first of the jobs that wait for
// it. Each gets its victims once: while they go, and until it starts, it is
// ahead of all others, and is given no more.
func (p *Planner) preempt(ctx context.Context, v *snapshot.View, decisions []backfill.Decision) {
	p.forgetPreemptors(v)
	id, victims := preemptor(v, decisions, p.preemptors)
	p.makeRoom(ctx, id, victims)
}

// preemptor is the first of the most important jobs that wait for whom others
// may make room, and these; 0: there is none, or others make room for one, and
// what that leaves is known when it runs.
func preemptor(v *snapshot.View, decisions []backfill.Decision, chosen map[int64]bool) (id int64, victims []snapshot.Victim) {
	var started []backfill.Running
	looked := 0
	for i := range decisions {
		d := &decisions[i]
		switch {
		case d.StartNow:
			started = append(started, running(d, v.Now))
			continue
		case d.Reason != backfill.ReasonResources && d.Reason != backfill.ReasonPriority:
			continue
		}
		if looked++; looked > mostPreemptors || chosen[d.ID] {
			return 0, nil
		}
		if victims := v.Victims(d.ID, started); len(victims) > 0 {
			return d.ID, victims
		}
	}
	return 0, nil
}

// makeRoom has the victims go for the job. When one cannot, the next plan
// chooses anew.
func (p *Planner) makeRoom(ctx context.Context, id int64, victims []snapshot.Victim) {
	for _, victim := range victims {
		err := p.starter.Preempt(ctx, victim.Job, id, victim.Mode, victim.Grace)
		if err != nil {
			if !errors.Is(err, starter.ErrChanged) && ctx.Err() == nil {
				p.log.Warn("job not preempted", "job", victim.Job.Spec.JobID, "for", id, "error", err)
			}
			return
		}
		p.log.Info("job preempted", "job", victim.Job.Spec.JobID, "for", id, "mode", victim.Mode, "grace", victim.Grace)
		p.mu.Lock()
		if p.preemptors == nil {
			p.preemptors = map[int64]bool{}
		}
		p.preemptors[id] = true
		p.mu.Unlock()
	}
}

// preemptLive does what preempt does, for the job that the newest plan of
// everything found: its victims are chosen anew, of those who run now.
func (p *Planner) preemptLive(ctx context.Context, decisions []backfill.Decision) {
	p.forgetPreemptors(p.live.View)
	r := p.refreshed.Load()
	if r == nil || r == p.preempted || r.preemptor == 0 {
		return
	}
	p.preempted = r
	var started []backfill.Running
	for i := range decisions {
		started = append(started, running(&decisions[i], p.live.Now))
	}
	p.makeRoom(ctx, r.preemptor, p.live.Victims(r.preemptor, started))
}

// running is what a job that starts now will hold.
func running(d *backfill.Decision, now int64) backfill.Running {
	r := backfill.Running{ID: d.ID, End: now + d.Duration}
	if d.Duration == backfill.Forever {
		r.End = backfill.Forever
	}
	for _, a := range d.Nodes {
		r.Allocation = append(r.Allocation, backfill.NodeAllocation{Node: a.Node, CPUs: a.CPUs, Memory: a.Memory, GRES: a.GRES})
	}
	return r
}

// forgetPreemptors drops those that wait no more.
func (p *Planner) forgetPreemptors(v *snapshot.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.preemptors {
		if b := v.Job(id); b == nil || !b.AwaitsStart() || b.Spec.Job.Hold != "" {
			delete(p.preemptors, id)
		}
	}
}

// placed has a preemptor that starts be one no more: what is left of an array
// has to ask again.
func (p *Planner) placed(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.preemptors, id)
}

// chosen are the preemptors now.
func (p *Planner) chosen() map[int64]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.preemptors)
}
