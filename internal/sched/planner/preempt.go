package planner

import (
	"context"
	"errors"

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
		if looked++; looked > mostPreemptors {
			return
		}
		for _, victim := range v.Victims(d.ID, started) {
			err := p.starter.Preempt(ctx, victim.Job, d.ID, victim.Mode, victim.Grace)
			if err != nil {
				if !errors.Is(err, starter.ErrChanged) && ctx.Err() == nil {
					p.log.Warn("job not preempted", "job", victim.Job.Spec.JobID, "for", d.ID, "error", err)
				}
				return // the next plan chooses anew
			}
			p.log.Info("job preempted", "job", victim.Job.Spec.JobID, "for", d.ID, "mode", victim.Mode, "grace", victim.Grace)
			if p.preemptors == nil {
				p.preemptors = map[int64]bool{}
			}
			p.preemptors[d.ID] = true
		}
		if p.preemptors[d.ID] {
			return // what it leaves is known when it runs
		}
	}
}

// running is what a job that starts now will hold.
func running(d *backfill.Decision, now int64) backfill.Running {
	r := backfill.Running{ID: d.ID, End: now + d.Duration}
	if d.Duration == backfill.Forever {
		r.End = backfill.Forever
	}
	for _, a := range d.Nodes {
		r.Held = append(r.Held, backfill.Held{Node: a.Node, CPUs: a.CPUs, Memory: a.Memory, GRES: a.GRES})
	}
	return r
}

// forgetPreemptors drops those that wait no more.
func (p *Planner) forgetPreemptors(v *snapshot.View) {
	for id := range p.preemptors {
		if b := v.Job(id); b == nil || !snapshot.Waiting(b) || b.Spec.Job.Hold != "" {
			delete(p.preemptors, id)
		}
	}
}
