package planner

import (
	"slices"
	"time"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/query"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// publish publishes what is planned, in a cycle that began at now, for the jobs that do not start
// now, reports those
// that never start, and returns when the next cycle is due: when the first of them
// starts, or a delay of its dependencies ends.
func (p *Planner) publish(o outcome, now time.Time) (due time.Time) {
	interval := maxInterval
	if !o.snapshot.Policy.PlanAll {
		interval = planAllInterval
	}
	due = now.Add(interval)
	plan := query.NewPlan(o.snapshot, now, len(o.decisions))
	for i := range o.decisions {
		d := &o.decisions[i]
		if d.StartNow {
			continue
		}
		planned := p.plannedFor(o.snapshot, *d, now)
		if d.Start > 0 {
			due = earlier(due, planned.Start, now)
		}
		due = earlier(due, delayEnd(o.snapshot, *d), now)
		plan.Add(d.ID, planned)
	}
	p.Publish(plan)
	p.reportNeverRunnable(o.decisions)
	return due
}

// earlier returns the earlier one of two instants, unless t has passed.
func earlier(due, t, now time.Time) time.Time {
	if t.After(now) && t.Before(due) {
		return t
	}
	return due
}

// delayEnd returns when a delay ends that a job's dependencies wait for, because
// nothing else triggers a cycle then; zero if there is none.
func delayEnd(s *snapshot.Snapshot, d backfill.Decision) time.Time {
	if !status.Reason(d.Reason).IsDependency() {
		return time.Time{}
	}
	if at := s.DelayEnd(d.ID); at > 0 {
		return time.Unix(at, 0)
	}
	return time.Time{}
}

// plannedFor returns what is published about a job that does not start now.
func (p *Planner) plannedFor(s *snapshot.Snapshot, d backfill.Decision, now time.Time) control.Planned {
	info := s.Info(d.ID)
	planned := control.Planned{Reason: reasonFor(s, d), Priority: info.Priority, Nodes: s.NodeNames(d)}
	if part := s.Partition(info.Partition); part != nil && info.Partition != "" {
		planned.NodeCPUs = part.LargestNode
	}
	if status.Reason(d.Reason).IsDependency() {
		planned.Outcomes = s.Outcomes(d.ID)
	}
	switch {
	case d.Start > 0:
		planned.Start = time.Unix(d.Start, 0)
	case !s.Policy.PlanAll: // keep the expected start of the last plan if it is in the future
		if last, known := p.Planned(d.ID); known && last.Start.After(now) {
			planned.Start, planned.Nodes = last.Start, last.Nodes
		}
	}
	return planned
}

// reasonNodesDown is the reason of a job that requests no particular nodes and needs
// nodes that are unavailable.
const reasonNodesDown = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"

// reasonFor returns the decision's reason as users see it. The reason of a job that needs
// unavailable nodes lists those that the job requests.
func reasonFor(s *snapshot.Snapshot, d backfill.Decision) string {
	b := s.Job(d.ID)
	if d.Reason != backfill.ReasonNodeNotAvail || b == nil {
		return d.Reason
	}
	requested := b.Spec.Job.Placement.NodeList
	if len(requested) == 0 {
		return reasonNodesDown
	}
	var unavailable []string
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Unavailable && slices.Contains(requested, n.Name) {
			unavailable = append(unavailable, n.Name)
		}
	}
	if len(unavailable) == 0 {
		return d.Reason
	}
	return d.Reason + ", UnavailableNodes:" + hostlist.Fold(unavailable)
}

// reportNeverRunnable reports the jobs that can never start, which the keeper may have to
// end.
func (p *Planner) reportNeverRunnable(decisions []backfill.Decision) {
	if p.NeverRunnable == nil {
		return
	}
	for i := range decisions {
		r := decisions[i].Reason
		if status.Reason(r).IsNeverSatisfied() || r == backfill.ReasonDeadline {
			p.NeverRunnable(decisions[i].ID)
		}
	}
}
