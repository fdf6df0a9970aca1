package backfill

import (
	"maps"
	"slices"
)

// Queue decides which jobs start now, exactly as Snapshot.Plan would decide about the same
// jobs. It keeps the free resources and the order of the queue between events, so that the
// cost of an event depends on what changes (see Snapshot.Incremental). If every job gets a
// reservation, it keeps only the free resources; if it cannot keep these exactly (see
// Queue.slotting), it makes a full plan. It is not safe for concurrent use.
type Queue struct {
	base          Snapshot // without jobs; Nodes may be shared with a snapshot
	shared        bool
	planner       *planner
	stale         bool // the engine must be replaced
	pending       pendingQueue
	jobsByID      map[int64][]*Job
	running       map[int64]*Running
	userExclusive int         // number of jobs with UserExclusive
	sharers       map[int]int // number of jobs, by how many may have the same CPU
	open          bool        // the last cycle can be resumed
	submitted     int         // jobs added to the end of the queue since the last cycle
	timed         int         // number of jobs for which Job.isTimed is true
	out           []Decision
	backfilled    int           // number of jobs in out that start before jobs ahead of them
	deferred      []*pendingJob // see planner.defers
	skipped       bool          // some job considered so far does not start
	one           []Decision    // scratch
}

// Incremental reports whether a Queue handles changes of s without a plan of the whole
// queue.
func (s *Snapshot) Incremental() bool {
	return plansSparsely(&s.Policy) && !s.ReservesCores()
}

// NewQueue returns a queue with the jobs of s. It keeps pointers into s.Running
// and s.Pending, which must not change any more, and does not change s.
func NewQueue(s *Snapshot) *Queue {
	s = s.withBootReservations()
	q := &Queue{
		base:     *s,
		shared:   true,
		stale:    true,
		jobsByID: map[int64][]*Job{},
		running:  map[int64]*Running{},
		sharers:  map[int]int{},
	}
	q.base.Running, q.base.Pending = nil, nil
	for i := range s.Running {
		q.Start(&s.Running[i])
	}
	for _, j := range byPriority(s.Pending) {
		q.Submit(j)
	}
	return q
}

// Submit adds a job, or all parts of an array, to the queue. It keeps the list
// and its pointers.
func (q *Queue) Submit(jobs ...*Job) {
	for i, j := range jobs {
		w, h := q.pending.add(j)
		if parts := q.jobsByID[j.ID]; parts != nil {
			q.jobsByID[j.ID] = append(parts, j)
		} else {
			q.jobsByID[j.ID] = jobs[i : i+1 : i+1]
		}
		q.countJob(j, 1)
		q.noteSubmitted(w)
		if !q.stale {
			q.setBound(w, h)
		}
	}
}

// Withdraw removes a pending job with all its parts.
func (q *Queue) Withdraw(id int64) {
	for _, j := range q.jobsByID[id] {
		q.closeCycle()
		q.pending.remove(j)
		q.countJob(j, -1)
	}
	delete(q.jobsByID, id)
	if !q.stale { // the caller may change the job
		q.planner.lastShape = shapeLookup{}
	}
}

// Start adds a running job. It keeps the pointer.
func (q *Queue) Start(r *Running) {
	q.closeCycle()
	q.running[r.ID] = r
	q.count(r.UserExclusive, r.sharers(), 1)
	if !q.stale {
		q.planner.addRunning(r)
	}
}

// End removes a running job.
func (q *Queue) End(id int64) {
	r, ok := q.running[id]
	if !ok {
		return
	}
	q.closeCycle()
	delete(q.running, id)
	q.count(r.UserExclusive, r.sharers(), -1)
	if !q.stale {
		q.planner.removeRunning(r)
		q.stale = q.planner.oversubscribed // its CPUs may be in use by another job
	}
}

// SetUnavailable sets whether no job may start on a node.
func (q *Queue) SetUnavailable(node int, unavailable bool) {
	if q.base.Nodes[node].Unavailable == unavailable {
		return
	}
	q.closeCycle()
	if q.shared {
		q.base.Nodes, q.shared = slices.Clone(q.base.Nodes), false
		for i := range q.base.Nodes {
			if !q.stale {
				q.planner.nodes[i].Node = &q.base.Nodes[i]
			}
		}
	}
	q.base.Nodes[node].Unavailable = unavailable
	switch {
	case q.stale:
	case q.planner.cyclic:
		q.stale = true
	default:
		q.planner.updateAvailability(node)
	}
}

// SetLimits sets the limits of the jobs.
func (q *Queue) SetLimits(l []Limit) {
	sameKind := func(a, b Limit) bool { return a.Reason == b.Reason && a.Quantity == b.Quantity && a.GRES == b.GRES }
	if !slices.EqualFunc(q.base.Limits, l, sameKind) {
		q.closeCycle()
	}
	q.base.Limits = l
}

// countJob updates the counts of jobs after j was added (by is 1) or removed (-1).
func (q *Queue) countJob(j *Job, by int) {
	if j.isTimed() {
		q.timed += by
	}
	q.count(j.UserExclusive, j.sharers(), by)
}

// count updates the counts of jobs that determine which properties the engine accounts for.
func (q *Queue) count(userExclusive bool, sharers, by int) {
	if userExclusive {
		q.userExclusive += by
	}
	if sharers > 1 {
		if q.sharers[sharers] += by; q.sharers[sharers] == 0 {
			delete(q.sharers, sharers)
		}
	}
	if q.stale {
		return
	}
	e := q.planner.engine
	least := 0
	for n := range maps.Keys(q.sharers) {
		if least == 0 || n < least {
			least = n
		}
	}
	q.stale = e.tracksOwners != (q.userExclusive > 0) || e.oversubscribes != (least > 0) ||
		e.oversubscribes && e.minSharers != least
}

// maxShapes limits the memory for request shapes without jobs.
const maxShapes = 4096

// renew replaces the engine.
func (q *Queue) renew(now int64, how slotting) {
	q.base.Now, q.stale, q.open = now, false, false
	q.planner = newPlanner(&q.base, q.work(), how)
	q.planner.startsOnly, q.planner.workload = true, workload{}
	for _, c := range q.pending.chunks {
		for i := range c.jobs {
			q.setBound(&c.jobs[i], &c.bounds[i])
		}
	}
}

// setBound sets the values by which the planner quickly finds that the job cannot start.
func (q *Queue) setBound(w *pendingJob, h *durationBound) {
	j := w.job
	w.shape, w.minDuration, w.begin = q.planner.shapeOf(j, 0), j.minDuration(), j.Begin
	w.partition = q.planner.partitionIndex(j.Partition)
	w.complex = len(j.Alternatives) > 0 || j.Group != 0 || q.planner.longestBoot > 0
	w.bound = q.planner.shapeBounds.indexOf(w.shape, w.partition)
	switch {
	case w.complex:
		*h = durationBound{0, w.bound}
	case j.Blocked != "":
		*h = durationBound{1, neverBound}
	default:
		*h = durationBound{clampUint32(w.minDuration), w.bound}
	}
}

// Decide returns the jobs that start at now, in the order in which they were
// decided. They do not run until Start is called. The result is valid until the
// next call.
func (q *Queue) Decide(now int64) []Decision {
	how, ok := q.slotting()
	if !ok {
		q.closeCycle()
		return q.decideFully(now)
	}
	if q.stale || len(q.planner.shapes) > maxShapes+2*q.pending.n {
		q.renew(now, how)
	}
	first := 0
	if q.resumes(now) {
		q.planner.resumeCycle(now)
		first = q.pending.n - q.submitted
	} else {
		q.closeCycle()
		q.planner.startCycle(now)
		q.skipped = false
	}
	q.out, q.backfilled, q.deferred = q.out[:0], 0, q.deferred[:0]
	q.decideInOrder(first)
	slices.SortStableFunc(q.deferred, func(a, b *pendingJob) int { return q.planner.compareBackfill(a.job, b.job) })
	for _, w := range q.deferred {
		q.decide(w)
	}
	q.open, q.submitted = true, 0
	if len(q.out) > 0 {
		q.closeCycle()
	}
	return q.out
}

// decideInOrder decides about the jobs in the queue's order from the one at index
// first on, except those that the policy defers.
func (q *Queue) decideInOrder(first int) {
	p := q.planner
	for c := range q.pending.chunksFrom(first) {
		for i, h := range c.bounds {
			if p.stopped {
				return
			}
			limit := p.shapeBounds.limits[h.shape]
			if limit == unbounded && h.least > 0 {
				limit = p.computeBound(h.shape)
			}
			if h.least > limit {
				q.skipped = true
				continue
			}
			w := &c.jobs[i]
			switch {
			case !p.defers(w.job):
				q.decide(w)
			case !p.cannotStart(w):
				q.deferred = append(q.deferred, w)
			}
		}
	}
}

// decideFully returns the jobs that start at now by a plan of the whole queue.
func (q *Queue) decideFully(now int64) []Decision {
	f := q.Snapshot(now)
	q.out, q.backfilled = q.out[:0], 0
	skipped := false
	for _, d := range f.s.planStarts(f.w) {
		switch {
		case !d.StartNow:
			skipped = true
		default:
			q.out = append(q.out, d)
			if skipped {
				q.backfilled++
			}
		}
	}
	return q.out
}

// decide decides about one job that may start.
func (q *Queue) decide(w *pendingJob) {
	p := q.planner
	if p.cannotStart(w) {
		q.skipped = true
		return
	}
	p.lastShape = shapeLookup{w.job, 0, w.shape}
	q.one = p.decideJob(q.one[:0], w.job, q.members)
	for _, d := range q.one {
		switch {
		case !d.StartNow:
			q.skipped = true
		case q.skipped:
			q.backfilled++
			fallthrough
		default:
			q.out = append(q.out, d)
		}
	}
	if !w.complex {
		p.computeBound(w.bound) // which a search that failed has lowered
	}
}

// Backfilled returns how many jobs of the last result of Decide start before jobs ahead of
// them.
func (q *Queue) Backfilled() int { return q.backfilled }

// members returns the jobs of a group in queue order.
func (q *Queue) members(group int64) (jobs []*Job) {
	for w := range q.pending.each {
		if w.job.Group == group {
			jobs = append(jobs, w.job)
		}
	}
	return jobs
}

// Snapshot returns the queue at now for a full plan. It remains valid, and may be used
// concurrently, while the Queue changes.
func (q *Queue) Snapshot(now int64) *QueueSnapshot {
	q.shared = true
	f := &QueueSnapshot{s: q.base, w: q.work()}
	f.s.Now, f.s.Limits = now, slices.Clone(q.base.Limits)
	return f
}

// work returns the running and the pending jobs.
func (q *Queue) work() workload {
	w := workload{pending: q.pending.jobs(), running: make([]*Running, 0, len(q.running))}
	for _, id := range slices.Sorted(maps.Keys(q.running)) {
		w.running = append(w.running, q.running[id])
	}
	return w
}

// QueueSnapshot is a Queue at a point in time. It is safe for concurrent use.
type QueueSnapshot struct {
	s Snapshot
	w workload
}

// Plan returns a decision about every job, as Snapshot.Plan does.
func (f *QueueSnapshot) Plan() Plan { return Plan{Decisions: f.s.plan(f.w)} }
