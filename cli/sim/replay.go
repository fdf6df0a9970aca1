package sim

import (
	"container/heap"
	"slices"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// ran is what became of one job.
type ran struct {
	*traceJob
	place      int64 // among the jobs by submission
	start, end int64
	ended      bool // the planner knows
	nodes      []backfill.Assignment
}

func (r *ran) wait() int64 { return r.start - r.submit }

// slowdown is the bounded slowdown with a bound of ten seconds.
func (r *ran) slowdown() float64 {
	return max(1, float64(r.wait()+r.run)/float64(max(r.run, 10)))
}

// ending orders running jobs by their ends.
type ending []*ran

func (e ending) Len() int { return len(e) }
func (e ending) Less(a, b int) bool {
	return e[a].end < e[b].end || e[a].end == e[b].end && e[a].place < e[b].place
}
func (e ending) Swap(a, b int) { e[a], e[b] = e[b], e[a] }
func (e *ending) Push(x any)   { *e = append(*e, x.(*ran)) }
func (e *ending) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// at lists the jobs that end at now; the heap's order makes them a top.
func (e ending) at(now int64) []*ran {
	var out []*ran
	var visit func(i int)
	visit = func(i int) {
		if i < len(e) && e[i].end <= now {
			out = append(out, e[i])
			visit(2*i + 1)
			visit(2*i + 2)
		}
	}
	visit(0)
	slices.SortFunc(out, func(a, b *ran) int { return int(a.place - b.place) })
	return out
}

// replay runs the jobs through the planner, which plans after every event; of
// the events of one second arrivals come first, then ends. Jobs that can never start are left out of the
// result. w gives priorities; nil: ask does.
func replay(machine []backfill.Node, o backfill.Policy, jobs []traceJob, ask func(*traceJob) backfill.Job, w *weighing) []*ran {
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b traceJob) int { return int(a.submit - b.submit) })
	all := make([]ran, len(jobs))
	asked := make([]backfill.Job, len(jobs))
	first := int64(0)
	if len(jobs) > 0 {
		first = jobs[0].submit
	}
	q := backfill.NewScheduler(&backfill.Snapshot{Now: first, Nodes: machine, Policy: o})
	var done []*ran
	var running ending
	plan := func(now int64) {
		for _, d := range q.Plan() {
			r := &all[d.ID]
			r.start, r.end, r.nodes = now, now+r.run, d.Nodes
			heap.Push(&running, r)
			done = append(done, r)
			if w != nil {
				w.start(r.traceJob)
			}
		}
	}
	for next := 0; next < len(jobs) || len(running) > 0; {
		now := int64(0)
		switch {
		case len(running) == 0, next < len(jobs) && jobs[next].submit <= running[0].end:
			now = jobs[next].submit
		default:
			now = running[0].end
		}
		// A job whose limit is reached is over when the instant begins.
		for _, r := range running.at(now) {
			if r.start+asked[r.place].Duration == now {
				q.End(r.place)
				r.ended = true
			}
		}
		q.Advance(now)
		if w != nil {
			w.advance(now, q)
		}
		for ; next < len(jobs) && jobs[next].submit == now; next++ {
			all[next].traceJob, all[next].place = &jobs[next], int64(next)
			asked[next] = ask(&jobs[next])
			asked[next].ID, asked[next].Submit = int64(next), int64(next)
			if w != nil {
				w.submit(&jobs[next], &asked[next])
			}
			q.Submit(&asked[next])
			plan(now)
		}
		for len(running) > 0 && running[0].end <= now {
			r := heap.Pop(&running).(*ran)
			if !r.ended {
				q.End(r.place)
			}
			if w != nil {
				w.end(r.traceJob)
			}
			plan(now)
		}
	}
	return done
}
