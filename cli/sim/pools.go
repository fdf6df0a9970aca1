package sim

import (
	"slices"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/slurmconf"
)

// The values of --pools.
const (
	poolsAlways  = "always"  // all nodes run all the time
	poolsPlanned = "planned" // as the scheduler does
	poolsEager   = "eager"   // a node boots for every job that waits, whatever will be free soon
)

// defaultBoot is how many seconds a node takes to boot if --boot-time is not given.
const defaultBoot = 60

// poolOptions describe the nodes in state CLOUD of the slurm.conf.
type poolOptions struct {
	pools string
	boot  int64

	cloud []bool // by node: it runs only while jobs need it
	idle  int64  // after how many seconds an idle node is removed; -1: never
}

// poolFigures are what the nodes have cost.
type poolFigures struct {
	NodeHours float64 `json:"node_hours"` // for which nodes ran
	Boots     int     `json:"boots"`
}

// pooled plans on a machine of which some nodes run only while jobs need them. A node that a
// job gets boots, and is removed when it has been idle for a time.
type pooled struct {
	*poolOptions
	s     backfill.Snapshot
	nodes []pooledNode

	first       int64 // the first event
	boots       int
	nodeSeconds int64 // of nodes that were removed
}

// pooledNode is a node of the pool. idle is 0 if it is not known since when it is idle.
type pooledNode struct {
	runs               bool
	since, ready, idle int64
	jobs               int
}

func newPooled(o *poolOptions, machine []backfill.Node, pol backfill.Policy, first int64) *pooled {
	pol.PlanAll, pol.BootEagerly = false, o.pools == poolsEager
	p := &pooled{poolOptions: o, nodes: make([]pooledNode, len(machine)), first: first}
	p.s.Nodes, p.s.Policy = slices.Clone(machine), pol
	return p
}

func (p *pooled) Submit(jobs ...*backfill.Job) {
	for _, j := range jobs {
		p.s.Pending = append(p.s.Pending, *j)
	}
}

func (p *pooled) Withdraw(id int64) {
	p.s.Pending = slices.DeleteFunc(p.s.Pending, func(j backfill.Job) bool { return j.ID == id })
}

func (p *pooled) Start(r *backfill.Running) {
	p.s.Running = append(p.s.Running, *r)
	p.count(r, 1)
}

func (p *pooled) End(id int64) {
	p.s.Running = slices.DeleteFunc(p.s.Running, func(r backfill.Running) bool {
		if r.ID == id {
			p.count(&r, -1)
		}
		return r.ID == id
	})
}

// count changes the number of jobs on the nodes of r.
func (p *pooled) count(r *backfill.Running, by int) {
	for i := range r.Allocation {
		n := &p.nodes[r.Allocation[i].Node]
		n.jobs, n.idle = n.jobs+by, 0
	}
}

// Decide returns the jobs that start now. The nodes that have to boot for them are requested.
func (p *pooled) Decide(now int64) []backfill.Decision {
	p.removeIdle(now)
	p.s.Now = now
	for i := range p.nodes {
		n := &p.nodes[i]
		switch {
		case !p.cloud[i]:
		case !n.runs:
			p.s.Nodes[i].Boot = p.boot
		default:
			p.s.Nodes[i].Boot = max(0, n.ready-now)
		}
	}
	out := slices.DeleteFunc(p.s.Plan().Decisions, func(d backfill.Decision) bool { return !d.StartNow })
	for i := range out {
		for _, a := range out[i].Nodes {
			if n := &p.nodes[a.Node]; p.cloud[a.Node] && !n.runs {
				p.boots++
				*n = pooledNode{runs: true, since: now, ready: now + p.boot}
			}
		}
	}
	return out
}

// removeIdle removes the nodes that have been idle for too long.
func (p *pooled) removeIdle(now int64) {
	for i := range p.nodes {
		n := &p.nodes[i]
		if !n.runs || n.jobs > 0 {
			continue
		}
		if n.idle == 0 {
			n.idle = now
		}
		if p.idle >= 0 && n.idle+p.idle <= now {
			p.nodeSeconds += n.idle + p.idle - n.since
			*n = pooledNode{}
		}
	}
}

// idleOf returns after how many seconds idle nodes in state CLOUD are removed; -1: never.
func idleOf(conf *slurmconf.Config) int64 {
	for i := range conf.NodePools {
		if t := conf.NodePools[i].Spec.SuspendTime; t != nil {
			return int64(*t)
		}
	}
	return -1
}

// replay simulates the jobs. The cost is nil unless there are nodes in state CLOUD.
func (o *options) replay(
	machine []backfill.Node, pol policy, jobs []traceJob, ask func(*traceJob) backfill.Job, w *weighing,
) ([]*ran, *poolFigures) {
	if !slices.Contains(o.cloud, true) {
		return replay(machine, pol, jobs, ask, w), nil
	}
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b traceJob) int { return int(a.submit - b.submit) })
	if o.pools == poolsAlways {
		done := replay(machine, pol, jobs, ask, w)
		f := figuresOf(done, 1)
		return done, &poolFigures{NodeHours: float64(f.Makespan) * float64(len(machine)) / 3600}
	}
	first := int64(0)
	if len(jobs) > 0 {
		first = jobs[0].submit
	}
	p := newPooled(&o.poolOptions, machine, pol.planning, first)
	done := newReplayer(p, pol, jobs, ask, w).replay()
	last := first
	for _, r := range done {
		last = max(last, r.end)
	}
	return done, p.figures(last)
}

// figures returns what the nodes have cost until last, the end of the last job.
func (p *pooled) figures(last int64) *poolFigures {
	p.removeIdle(last)
	seconds := p.nodeSeconds
	for i := range p.nodes {
		switch n := &p.nodes[i]; {
		case !p.cloud[i]:
			seconds += last - p.first
		case n.runs:
			seconds += last - n.since
		}
	}
	return &poolFigures{NodeHours: float64(seconds) / 3600, Boots: p.boots}
}
