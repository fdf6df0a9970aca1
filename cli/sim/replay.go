package sim

import (
	"container/heap"
	"slices"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// ran is the outcome of one job.
type ran struct {
	*traceJob
	place      int64 // index in the order of submission
	start, end int64
	limit      int64 // when its time limit is reached
	ended      bool  // the planner was notified of the end
	nodes      []backfill.Assignment
	pending    *backfill.Job     // nil: it is not pending
	held       *backfill.Running // nil: it does not run
}

func (r *ran) wait() int64 { return r.start - r.submit }

// slowdown returns the bounded slowdown with a bound of ten seconds.
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

// at returns the jobs that end at now. In a heap, they are connected to the root.
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

// replay simulates the jobs with the scheduler's queue and returns those that ran. The
// queue is planned after every event; in each second, arrivals come before ends. Jobs that
// can never start are not in the result. w computes priorities; if it is nil, they are
// those that ask returns.
func replay(
	machine []backfill.Node,
	pol policy,
	jobs []traceJob,
	ask func(*traceJob) backfill.Job,
	w *weighing,
) []*ran {
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b traceJob) int { return int(a.submit - b.submit) })
	first := int64(0)
	if len(jobs) > 0 {
		first = jobs[0].submit
	}
	q := backfill.NewQueue(&backfill.Snapshot{Now: first, Nodes: machine, Policy: pol.planning})
	return newReplayer(q, pol, jobs, ask, w).replay()
}

// replay returns the jobs that ran, in the order of their starts.
func (r *replayer) replay() []*ran {
	for r.next < len(r.jobs) || len(r.running) > 0 {
		r.step(r.nextEvent())
	}
	return r.done
}

// planner is the part of backfill.Queue that a replay needs.
type planner interface {
	Submit(jobs ...*backfill.Job)
	Withdraw(id int64)
	Start(r *backfill.Running)
	End(id int64)
	Decide(now int64) []backfill.Decision
}

// replayer is the state of a replay.
type replayer struct {
	queue    planner
	head     *pinnedHead // nil: the policy does not pin the head of the queue
	ask      func(*traceJob) backfill.Job
	weighing *weighing // nil: priorities do not change

	jobs    []traceJob // by submission
	next    int        // index of the next job to be submitted
	ran     []ran
	running ending
	done    []*ran

	spareJobs    spare[backfill.Job]
	spareRunning spare[backfill.Running]
}

// spare is a free list, as a trace has many jobs and the queue few at a time.
type spare[T any] []*T

// get returns a free value, or a new one.
func (s *spare[T]) get() *T {
	last := len(*s) - 1
	if last < 0 {
		return new(T)
	}
	v := (*s)[last]
	*s = (*s)[:last]
	return v
}

func (s *spare[T]) put(v *T) { *s = append(*s, v) }

// newReplayer returns a replay of jobs that are sorted by submission.
func newReplayer(q planner, pol policy, jobs []traceJob, ask func(*traceJob) backfill.Job, w *weighing) *replayer {
	r := &replayer{
		queue:    q,
		ask:      ask,
		weighing: w,
		jobs:     jobs,
		ran:      make([]ran, len(jobs)),
	}
	if pol.pinHead {
		r.head = &pinnedHead{queue: q}
	}
	return r
}

// nextEvent returns the time of the next arrival or end.
func (r *replayer) nextEvent() int64 {
	arrives := r.next < len(r.jobs)
	if len(r.running) == 0 || arrives && r.jobs[r.next].submit <= r.running[0].end {
		return r.jobs[r.next].submit
	}
	return r.running[0].end
}

// step replays the events of one second.
func (r *replayer) step(now int64) {
	// A job whose time limit is reached in this second ends before it.
	for _, j := range r.running.at(now) {
		if j.limit == now {
			r.finish(j)
		}
	}
	if r.weighing != nil {
		r.weighing.advance(now, r.queue)
	}
	for ; r.next < len(r.jobs) && r.jobs[r.next].submit == now; r.next++ {
		r.submit(r.next)
		r.plan(now)
	}
	for len(r.running) > 0 && r.running[0].end <= now {
		j := heap.Pop(&r.running).(*ran)
		if !j.ended {
			r.finish(j)
		}
		if r.weighing != nil {
			r.weighing.end(j.traceJob)
		}
		r.plan(now)
	}
}

// finish tells the queue that a job has ended.
func (r *replayer) finish(j *ran) {
	r.queue.End(j.place)
	j.ended = true
	r.spareRunning.put(j.held)
	j.held = nil
}

// submit adds the ith job to the queue.
func (r *replayer) submit(i int) {
	j := r.spareJobs.get()
	r.ran[i].traceJob, r.ran[i].place, r.ran[i].pending = &r.jobs[i], int64(i), j
	*j = r.ask(&r.jobs[i])
	j.ID, j.Submit = int64(i), int64(i)
	if r.weighing != nil {
		r.weighing.submit(&r.jobs[i], j)
	}
	r.queue.Submit(j)
	if r.head != nil {
		r.head.submit(j)
	}
}

// plan starts the jobs that the queue decides to start now.
func (r *replayer) plan(now int64) {
	for _, d := range r.queue.Decide(now) {
		r.start(&d, now)
	}
	if r.head != nil {
		r.head.pin()
	}
}

// start records the resources of a job that starts, and its end.
func (r *replayer) start(d *backfill.Decision, now int64) {
	j := &r.ran[d.ID]
	j.start, j.end, j.nodes = now+d.Boot, now+d.Boot+j.run, d.Nodes
	heap.Push(&r.running, j)
	r.done = append(r.done, j)
	j.limit = now + d.Boot + d.Duration
	j.held = r.spareRunning.get()
	*j.held = j.pending.Started(d)
	r.queue.Withdraw(d.ID)
	r.queue.Start(j.held)
	if r.head != nil {
		r.head.started(d.ID)
	}
	if r.weighing != nil {
		r.weighing.start(j.traceJob)
	}
	r.spareJobs.put(j.pending)
	j.pending = nil
}
