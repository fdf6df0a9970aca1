package planner

import (
	"slices"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/status"
)

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
func (p *Planner) NodesView() []status.Node {
	view := p.latest()
	rows, now := view.NodeRows(), p.now()
	view.MarkReserved(rows, now.Unix())
	if n := p.newest.Load(); n != nil {
		n.markPlanned(rows, now)
	}
	return rows
}

// markPlanned says which idle nodes wait for a job that is to start on them.
func (n *plan) markPlanned(rows []status.Node, now time.Time) {
	wanted := n.awaited()
	for i := range rows {
		if start, ok := wanted[rows[i].Name]; ok && start.After(now) && rows[i].State == "IDLE" && !slices.Contains(rows[i].Flags, "DRAIN") {
			rows[i].Flags = append(rows[i].Flags, "PLANNED")
		}
	}
}

// awaited are the nodes on which jobs are to start that wait for room, and the
// latest such start.
func (n *plan) awaited() map[string]time.Time {
	n.await.Do(func() {
		n.nodes = map[string]time.Time{}
		for _, pl := range n.planned {
			if pl.Reason != backfill.ReasonResources && pl.Reason != backfill.ReasonPriority {
				continue
			}
			for _, name := range pl.Nodes {
				if pl.Start.After(n.nodes[name]) {
					n.nodes[name] = pl.Start
				}
			}
		}
	})
	return n.nodes
}

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
	p.shaping.Lock()
	defer p.shaping.Unlock()
	if p.reshaped.Swap(false) || p.shapes == nil {
		p.shapes = snapshot.Build(snapshot.Input{Now: p.now(), Nodes: p.cluster.Nodes.List(),
			Partitions: p.cluster.Partitions.List(), Parameters: p.cluster.Parameters(), Policy: snapshot.Policy{QOS: p.cluster.QOS.List()}})
	}
	return p.shapes.Feasible(b)
}
