package backfill

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Scheduler plans event by event: what it knows of the time to come stays
// between the events, so that each costs what it changes. It is what a
// simulation replays a workload through. Not safe for concurrent use.
//
// With every job reserved (Options.Reservations 0) nobody starts later than it
// was first told, unless a job of higher priority comes or a node is lost: when
// something becomes free early, each job in the queue's order is moved to an
// earlier start if there is one, while all others keep theirs.
type Scheduler struct {
	e         *engine
	options   Policy
	queue     []*waiter // by priority
	byID      map[int64]*waiter
	running   map[int64]*runner
	started   []Decision // by the plan in the making, and who that is
	startedOf []*waiter
	dropped   int       // so many of them are out of the queue
	freed     int64     // what became free since the last plan is free until then
	vacated   int64     // the same, of the jobs that were moved in this plan
	held      []*waiter // that have the reservations of easy
	ends      deadlines
	buckets   map[*shape]*bucket
	inOrder   []*bucket
	scratch   []*waiter
	foldAt    int     // slots that are worth the trouble of dropping some
	next      *waiter // that starts next, whoever comes; nil: the first
	settled   settled
}

// waiter is a pending job.
type waiter struct {
	job   *Job
	shape *shape
	told  Decision // Nodes nil: no reservation
	held  bool     // it has one of easy's reservations
	gone  bool     // it was started
}

// runner is a job that was started.
type runner struct {
	claim claim
	share bool
}

// NewScheduler begins with what s says. The jobs of s.Pending are submitted in
// their order; Snapshot itself is not changed, and must not be.
func NewScheduler(s *Snapshot) *Scheduler {
	q := &Scheduler{e: newEngine(s, workOf(s), asQueue), options: s.Policy, byID: map[int64]*waiter{}, running: map[int64]*runner{}, buckets: map[*shape]*bucket{}, foldAt: 128}
	for i := range s.Running {
		r := &s.Running[i]
		run := &runner{claim: q.e.claimOf(r), share: r.sharers() > 1}
		for k := range run.claim.nodes {
			run.claim.nodes[k].CPUs = r.Allocation[k].CPUs
		}
		q.running[r.ID] = run
		heap.Push(&q.ends, deadline{run.claim.end, r.ID})
	}
	for i := range s.Pending {
		q.Submit(&s.Pending[i])
	}
	return q
}

// Advance moves the clock, which never goes back.
func (q *Scheduler) Advance(now int64) {
	e := q.e
	if now <= e.now {
		return
	}
	e.now = now
	e.first = e.holding(now)
	e.pass++
	q.extend()
	if e.exact && len(e.at) > q.foldAt && (e.first > len(e.at)/2 || len(e.at)-e.first > 4*(len(q.running)+len(q.queue))+q.foldAt/2) {
		e.fold(e.first)
		e.first = e.holding(now)
	}
}

// Submit takes a job into the queue. The Scheduler keeps the pointer.
func (q *Scheduler) Submit(j *Job) {
	w := &waiter{job: j, shape: q.e.shapeOf(j, 0)}
	i, _ := slices.BinarySearchFunc(q.queue, j, func(w *waiter, j *Job) int {
		if w == q.next {
			return -1
		}
		return before(w.job, j)
	})
	q.queue = slices.Insert(q.queue, i, w)
	q.byID[j.ID] = w
	q.file(w)
	q.came(w, i)
	if q.options.Reservations == 0 && !q.options.NoBackfill { // those behind it plan anew, around it
		for _, behind := range q.queue[i+1:] {
			q.withdraw(behind)
		}
	}
}

// withdraw takes a reservation back.
func (q *Scheduler) withdraw(w *waiter) {
	if w.told.Nodes == nil {
		return
	}
	c := q.e.claim(w.job, &w.told)
	q.e.occupy(&c, -1)
	q.freed = max(q.freed, c.end)
	w.told = Decision{ID: w.job.ID, Duration: w.job.Duration}
}

// End takes a job out: a running one has ended, a pending one is cancelled.
func (q *Scheduler) End(id int64) {
	q.settled.is = false
	if r, ok := q.running[id]; ok {
		delete(q.running, id)
		for i := range r.claim.nodes {
			a := &r.claim.nodes[i]
			q.e.nodes[a.Node].have(a.CPUs, r.share, -1)
		}
		if r.claim.end > q.e.now {
			q.e.occupy(&r.claim, -1)
			q.freed = max(q.freed, r.claim.end)
		} else {
			q.e.pass++
		}
		return
	}
	if w, ok := q.byID[id]; ok {
		q.withdraw(w)
		delete(q.byID, id)
		q.remove(w)
		if q.next == w {
			q.next = nil
		}
	}
}

// remove takes w out of the queue, whose order finds it.
func (q *Scheduler) remove(w *waiter) {
	q.unfile(w)
	q.held = slices.DeleteFunc(q.held, func(x *waiter) bool { return x == w })
	i, ok := slices.BinarySearchFunc(q.queue, w.job, func(x *waiter, j *Job) int { return before(x.job, j) })
	if !ok || q.queue[i] != w { // it was committed to, and stands before its place
		i = slices.Index(q.queue, w)
	}
	q.queue = slices.Delete(q.queue, i, i+1)
}

// Waiting is the number of pending jobs.
func (q *Scheduler) Waiting() int { return len(q.queue) }

// Told is what the job was last told; ok is false when it does not wait.
func (q *Scheduler) Told(id int64) (d Decision, ok bool) {
	w, ok := q.byID[id]
	if !ok {
		return Decision{}, false
	}
	return w.told, true
}

// Plan starts what can start now and returns it: those jobs run from now on,
// until End. The result is valid until the next call.
func (q *Scheduler) Plan() []Decision {
	q.started, q.startedOf, q.dropped = q.started[:0], q.startedOf[:0], 0
	switch {
	case q.options.NoBackfill:
		q.firstCome()
	case q.options.Reservations > 0:
		q.easy()
	default:
		// What a job leaves behind may serve one before it: again, then.
		for more := true; more; {
			before := q.freed
			q.vacated = 0
			q.conservative()
			q.freed = q.vacated
			more = q.vacated > q.e.now && before > 0
		}
	}
	q.freed = 0
	return q.started
}

// start runs w now if it fits.
func (q *Scheduler) start(w *waiter) bool {
	e, j := q.e, w.job
	if e.v[e.first] < w.shape.least || j.Blocked != "" || j.Begin > e.now {
		return false
	}
	nodes := e.fitsNow(w.shape, j, j.Duration)
	if nodes == nil {
		return false
	}
	d := Decision{ID: j.ID, StartNow: true, Start: e.now, Duration: j.Duration, Nodes: nodes}
	r := &runner{claim: e.claim(j, &d), share: j.sharers() > 1}
	e.occupy(&r.claim, 1)
	q.running[j.ID] = r
	heap.Push(&q.ends, deadline{r.claim.end, j.ID})
	delete(q.byID, j.ID)
	w.gone = true
	q.started, q.startedOf = append(q.started, d), append(q.startedOf, w)
	return true
}

// reserve gives w the earliest start up to until.
func (q *Scheduler) reserve(w *waiter, until int64) bool {
	e, j := q.e, w.job
	at, nodes, ok := e.earliest(w.shape, j, e.now+1, until)
	if !ok {
		return false
	}
	w.told = Decision{ID: j.ID, Start: at, Duration: j.Duration, Nodes: nodes}
	e.book(j, &w.told)
	return true
}

func (q *Scheduler) firstCome() {
	for i := 0; i < len(q.queue) && q.start(q.queue[i]); i++ {
	}
	q.dropStarted()
	if q.next = nil; q.options.Committed && len(q.queue) > 0 {
		q.next = q.queue[0]
	}
}

// easy starts jobs in order as far as they fit, keeps reservations for the
// first that do not, and lets later ones start where they delay none of these.
func (q *Scheduler) easy() {
	if s := &q.settled; s.is && q.e.now < s.until {
		if s.fresh != nil {
			q.startAll([]*waiter{s.fresh})
			q.dropStarted()
		}
		s.fresh = nil
		return
	}
	left := q.options.Reservations
	for _, w := range q.held {
		q.withdraw(w)
		w.held = false
	}
	q.held = q.held[:0]
	i := 0
	for ; i < len(q.queue) && left > 0; i++ {
		w := q.queue[i]
		if !q.start(w) && w.job.Blocked == "" {
			q.reserve(w, math.MaxInt64)
			q.held = append(q.held, w)
			w.held = true
			left--
		}
	}
	switch e := q.e; {
	case q.options.ShortestFirst && e.v[e.first] > 0:
		q.startAll(slices.SortedStableFunc(slices.Values(q.queue[i:]), func(a, b *waiter) int { return cmp.Compare(a.job.Duration, b.job.Duration) }))
	case !e.exact:
		q.startAll(q.fits())
	default:
		q.startAll(q.queue[i:])
	}
	q.dropStarted()
	q.settle(left)
}

// startAll starts those of the jobs that fit, in their order.
func (q *Scheduler) startAll(jobs []*waiter) {
	for _, w := range jobs {
		if q.e.v[q.e.first] <= 0 && !q.e.shares {
			return
		}
		q.start(w)
	}
}

// dropStarted takes the jobs that were started out of the queue.
func (q *Scheduler) dropStarted() {
	if q.e.exact {
		if len(q.started) > 0 {
			q.queue = slices.DeleteFunc(q.queue, func(w *waiter) bool { return w.gone })
		}
		return
	}
	for _, w := range q.startedOf[q.dropped:] {
		q.remove(w)
	}
	q.dropped = len(q.startedOf)
}

// conservative moves every reservation to an earlier start where there is one,
// starts those whose time has come, and gives new jobs theirs.
func (q *Scheduler) conservative() {
	order := q.queue
	if q.options.ShortestFirst {
		order = slices.Clone(order)
		slices.SortStableFunc(order, func(a, b *waiter) int { return cmp.Compare(a.job.Duration, b.job.Duration) })
	}
	for _, w := range order {
		q.improve(w)
	}
	q.dropStarted()
}

// improve gives w the earliest start it can have and reports whether that is
// now.
func (q *Scheduler) improve(w *waiter) bool {
	e, j := q.e, w.job
	old := w.told
	switch {
	case j.Blocked != "":
		return false
	case old.Nodes == nil:
		if q.start(w) {
			return true
		}
		q.reserve(w, math.MaxInt64)
		return false
	case old.Start > e.now && !q.mayImprove(w):
		return false
	}
	c := q.e.claim(j, &old)
	e.occupy(&c, -1)
	w.told.Nodes = nil
	if q.start(w) || q.reserve(w, max(old.Start, e.now+1)-1) {
		q.freed, q.vacated = max(q.freed, c.end), max(q.vacated, c.end)
		return w.gone
	}
	w.told = old
	e.book(j, &w.told)
	return false
}

// mayImprove tells whether there is an instant before the reservation, within
// what became free, at which so many CPUs as the job needs are free.
func (q *Scheduler) mayImprove(w *waiter) bool {
	e := q.e
	until := min(w.told.Start, q.freed)
	row := e.row(0)
	for s := e.first; s < len(e.at) && (s == e.first || e.at[s] < until); s++ {
		if row[s] >= w.shape.least && until > e.now {
			return true
		}
	}
	return false
}
