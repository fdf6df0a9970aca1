package backfill

import (
	"cmp"
	"maps"
	"slices"
)

// Queue decides, event by event, who starts now. It keeps what a plan starts
// from (what is free now, and who waits in which order), so that an event costs
// what it changes and one look at those who could start, and decides exactly
// what Snapshot.Plan would decide about the same jobs. Only options of which few
// jobs have reservations are served so (see Snapshot.Queueable). Not safe for concurrent
// use.
type Queue struct {
	base     Snapshot // without jobs; Nodes may be shared with who froze it
	shared   bool
	p        *planner
	stale    bool // the engine has to be made anew
	line     lineup
	waits    map[int64][]*Job
	running  map[int64]*Running
	owners   int         // jobs that share nodes with their own user's only
	sharers  map[int]int // jobs, by how many may share CPUs with them
	out      []Decision
	passed   int        // of out, those that start before others
	deferred []*waiting // by the policy
	skipped  bool       // somebody waits on, as far as the pass has come
	one      []Decision // scratch
}

// Queueable tells whether a Queue decides as a plan of s does.
func (s *Snapshot) Incremental() bool {
	return promisesOne(&s.Policy) && !s.ReservesCores()
}

// NewQueue begins with what s says. The Queue keeps pointers into s.Running and
// s.Pending, which must not change any more, and leaves s as it is.
func NewQueue(s *Snapshot) *Queue {
	q := &Queue{base: *s, shared: true, stale: true, waits: map[int64][]*Job{}, running: map[int64]*Running{}, sharers: map[int]int{}}
	q.base.Running, q.base.Pending = nil, nil
	for i := range s.Running {
		q.Start(&s.Running[i])
	}
	for _, j := range byPriority(s.Pending) {
		q.Submit(j)
	}
	return q
}

// Submit takes a job, or the parts of an array, into the queue; of one ID at
// once. The Queue keeps the pointers.
func (q *Queue) Submit(jobs ...*Job) {
	for _, j := range jobs {
		w, h := q.line.add(j)
		q.waits[j.ID] = append(q.waits[j.ID], j)
		q.count(j.UserExclusive, j.sharers(), 1)
		if !q.stale {
			q.file(w, h)
		}
	}
}

// Withdraw takes a waiting job out, with all its parts.
func (q *Queue) Withdraw(id int64) {
	for _, j := range q.waits[id] {
		q.line.remove(j)
		q.count(j.UserExclusive, j.sharers(), -1)
	}
	delete(q.waits, id)
}

// Run takes in a job that holds resources. The Queue keeps the pointer.
func (q *Queue) Start(r *Running) {
	q.running[r.ID] = r
	q.count(r.UserExclusive, r.sharers(), 1)
	if !q.stale {
		q.p.run(r)
	}
}

// End takes a job out that held resources.
func (q *Queue) End(id int64) {
	r, ok := q.running[id]
	if !ok {
		return
	}
	delete(q.running, id)
	q.count(r.UserExclusive, r.sharers(), -1)
	if !q.stale {
		q.p.end(r)
		q.stale = q.p.tangled // what it had may be another's as well
	}
}

// SetUnavailable notes that no job may start on a node, or that one may again.
func (q *Queue) SetUnavailable(node int, unavailable bool) {
	if q.base.Nodes[node].Unavailable == unavailable {
		return
	}
	if q.shared {
		q.base.Nodes, q.shared = slices.Clone(q.base.Nodes), false
		for i := range q.base.Nodes {
			if !q.stale {
				q.p.nodes[i].Node = &q.base.Nodes[i]
			}
		}
	}
	q.base.Nodes[node].Unavailable = unavailable
	if !q.stale {
		q.p.available(node)
	}
}

// SetLimits sets what jobs may together still start.
func (q *Queue) SetLimits(l []Limit) { q.base.Limits = l }

// count keeps account of what the engine's rows depend on.
func (q *Queue) count(userExclusive bool, sharers, by int) {
	if userExclusive {
		q.owners += by
	}
	if sharers > 1 {
		if q.sharers[sharers] += by; q.sharers[sharers] == 0 {
			delete(q.sharers, sharers)
		}
	}
	if q.stale {
		return
	}
	e := q.p.engine
	least := 0
	for n := range maps.Keys(q.sharers) {
		if least == 0 || n < least {
			least = n
		}
	}
	q.stale = e.owners != (q.owners > 0) || e.shares != (least > 0) || e.shares && e.shareBy != least
}

// mostShapes bounds what is remembered of kinds of jobs that are long gone.
const mostShapes = 4096

// renew makes the engine anew.
func (q *Queue) renew(now int64) {
	q.base.Now, q.stale = now, false
	q.p = newPlanner(&q.base, q.work(), asked)
	q.p.brief, q.p.work = true, work{}
	for _, c := range q.line.chunks {
		for i := range c.jobs {
			q.file(&c.jobs[i], &c.hurdles[i])
		}
	}
}

// file fills in what tells quickly that the job cannot start.
func (q *Queue) file(w *waiting, h *hurdle) {
	j := w.job
	w.shape, w.least, w.begin, w.place = q.p.shapeOf(j, 0), j.shortest(), j.Begin, q.p.partitionAt(j.Partition)
	w.odd, w.bar = len(j.Alternatives) > 0 || j.Group != 0, q.p.bars.of(w.shape.number, w.place)
	switch {
	case w.odd:
		*h = hurdle{0, w.bar}
	case j.Blocked != "":
		*h = hurdle{1, barred}
	default:
		*h = hurdle{clip(w.least), w.bar}
	}
}

// Decide lists who starts at now, in the queue's order. It is as if they had not
// been started until Run says so. The result is valid until the next call.
func (q *Queue) Decide(now int64) []Decision {
	if !q.base.Incremental() {
		return q.decideFully(now)
	}
	if q.stale || len(q.p.shapes) > mostShapes+2*q.line.n {
		q.renew(now)
	}
	p := q.p
	p.restart(now)
	q.out, q.skipped, q.passed, q.deferred = q.out[:0], false, 0, q.deferred[:0]
	q.decideInOrder()
	slices.SortStableFunc(q.deferred, func(a, b *waiting) int { return cmp.Compare(a.job.Duration, b.job.Duration) })
	for _, w := range q.deferred {
		q.decide(w)
	}
	p.undo()
	return q.out
}

// decideInOrder decides about the jobs in the queue's order, except those that
// the policy defers.
func (q *Queue) decideInOrder() {
	p := q.p
	for _, c := range q.line.chunks {
		for i, h := range c.hurdles {
			if h.least > p.bars.at[h.bar] {
				q.skipped = true
				continue
			}
			w := &c.jobs[i]
			if p.defers(w.job) {
				if !p.hopeless(w) {
					q.deferred = append(q.deferred, w)
				}
				continue
			}
			q.decide(w)
			if p.stop {
				return
			}
		}
	}
}

// decideFully lists who starts at now by a plan of the whole queue.
func (q *Queue) decideFully(now int64) []Decision {
	f := q.Snapshot(now)
	q.out, q.passed = q.out[:0], 0
	skipped := false
	for _, d := range f.s.planStarts(f.w) {
		switch {
		case !d.StartNow:
			skipped = true
		default:
			q.out = append(q.out, d)
			if skipped {
				q.passed++
			}
		}
	}
	return q.out
}

// decide decides about one job that may start.
func (q *Queue) decide(w *waiting) {
	p := q.p
	if p.hopeless(w) {
		q.skipped = true
		return
	}
	p.last = found{w.job, 0, w.shape}
	q.one = p.decideJob(q.one[:0], w.job, q.members)
	for _, d := range q.one {
		switch {
		case !d.StartNow:
			q.skipped = true
		case q.skipped:
			q.passed++
			fallthrough
		default:
			q.out = append(q.out, d)
		}
	}
}

// Backfilled is how many of the last Decide's jobs start before others that
// wait on.
func (q *Queue) Backfilled() int { return q.passed }

// members lists the jobs of a group in the queue's order.
func (q *Queue) members(group int64) (jobs []*Job) {
	for w := range q.line.each {
		if w.job.Group == group {
			jobs = append(jobs, w.job)
		}
	}
	return jobs
}

// hopeless tells that the job neither starts now nor gets a reservation, as far
// as that can be told without a search.
func (p *planner) hopeless(w *waiting) bool {
	switch {
	case w.odd:
		return false
	case p.given[w.place] < p.s.Policy.Reservations || p.s.Policy.NoBackfill:
		return false
	}
	may := p.may[w.shape.number]
	if may == unknown {
		may = p.mayLast(w.shape)
	}
	p.bars.at[w.bar] = clip(may)
	return w.begin > p.now || w.least > may
}

// unknown: nobody has asked yet.
const unknown = -1

// mayLast finds how long a job of the shape could run from now on at most; 0: it
// cannot start. In one pass it only becomes less.
func (e *engine) mayLast(s *shape) int64 {
	may := Forever
	switch {
	case e.v[e.first] < s.least || int(s.class.count[e.first]) < s.fewest:
		may = 0
	case s.Reservation == "": // a reservation may end a job early
		may = e.longest(s)
	}
	if s.pass == e.pass {
		may = min(may, s.refused-1)
	}
	e.may[s.number] = may
	return may
}

// Freeze is the whole of the queue at now, for a plan of all of it: Plan of what
// it returns may run beside the Queue.
func (q *Queue) Snapshot(now int64) *QueueSnapshot {
	q.shared = true
	f := &QueueSnapshot{s: q.base, w: q.work()}
	f.s.Now, f.s.Limits = now, slices.Clone(q.base.Limits)
	return f
}

// work is who runs and who waits.
func (q *Queue) work() work {
	w := work{pending: q.line.jobs(), running: make([]*Running, 0, len(q.running))}
	for _, id := range slices.Sorted(maps.Keys(q.running)) {
		w.running = append(w.running, q.running[id])
	}
	return w
}

// Frozen is a queue at one instant. Safe for concurrent use.
type QueueSnapshot struct {
	s Snapshot
	w work
}

// Plan decides about every job, as Snapshot.Plan does.
func (f *QueueSnapshot) Plan() Plan { return Plan{Decisions: f.s.plan(f.w)} }
