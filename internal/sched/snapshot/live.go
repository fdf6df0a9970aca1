package snapshot

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/array"
)

// Live is a View that follows the jobs of the cluster, and the backfill.Queue
// made from it: after a job came, changed or went, who starts now is decided at
// the cost of what changed, and as a new View would be planned. What it does not
// follow (anything else than jobs; workloads; dependencies on jobs of the same
// name) it says, and then a new one has to be made. Priorities are those of the
// instant at which it was made. Not safe for concurrent use.
type Live struct {
	*View
	queue *backfill.Queue
	until int64 // it is to be made anew then

	uses     map[int64]limits.Use      // of running jobs
	waiters  map[int64]map[int64]bool  // jobs that depend on one
	timed    map[int64]bool            // waiting jobs whose form depends on the time
	alone    map[string]bool           // singleton()s that some job waits for
	budgeted bool                      // limits change by Limits alone
	podsOf   func(int64) []*corev1.Pod // by job
	strays   map[int64]bool            // jobs with pods that nobody's allocation counts
	leaving  map[int64]int64           // running jobs that make room, and for whom
	chosen   map[int64]bool            // see Expect
}

// longestLive bounds how long what a Live does not follow, the decay of usage
// above all, may be out of date.
const longestLive = 60

// NewLive makes one; ok is false where the policy cannot be followed. podsOf
// lists the pods that carry the number of a job.
func NewLive(in Input, podsOf func(jobID int64) []*corev1.Pod) (l *Live, ok bool) {
	v := Build(in)
	if !v.Followable() {
		return nil, false
	}
	l = &Live{View: v, until: v.Now + longestLive, podsOf: podsOf, budgeted: v.policy.limits.Budgeted(),
		uses: map[int64]limits.Use{}, waiters: map[int64]map[int64]bool{}, timed: map[int64]bool{}, alone: map[string]bool{}, strays: map[int64]bool{},
		leaving: map[int64]int64{}, chosen: maps.Clone(in.Expected)}
	for i := range v.AdvanceReservations {
		if end := v.AdvanceReservations[i].End; end > v.Now {
			l.until = min(l.until, end)
		}
	}
	for i := range v.Running {
		b := v.jobs[v.Running[i].ID]
		l.uses[v.Running[i].ID] = v.held(b)
		l.leave(b)
	}
	for id, b := range v.jobs {
		l.note(id, b)
	}
	for _, p := range in.Pods {
		if id := JobOf(p); id != 0 && l.stray(p) {
			l.strays[id] = true
		}
	}
	l.queue = backfill.NewQueue(&v.Snapshot)
	v.Pending = nil // they live on in the queue
	return l, true
}

// note remembers on what the job's form depends beside itself.
func (l *Live) note(id int64, b *v1alpha1.BatchJob) {
	delete(l.timed, id)
	if !b.AwaitsStart() {
		return
	}
	if t := &b.Spec.Job.Time; t.Deadline > 0 {
		l.timed[id] = true
	}
	for i := range b.Spec.Job.Dependencies.Items {
		d := &b.Spec.Job.Dependencies.Items[i]
		if isSingleton(*d) {
			l.alone[singleton(b)] = true
			continue
		}
		if l.waiters[d.JobID] == nil {
			l.waiters[d.JobID] = map[int64]bool{}
		}
		l.waiters[d.JobID][id] = true
		l.timed[id] = l.timed[id] || d.Delay > 0
	}
	if o := b.Spec.Origin; o != nil && earliest(b) > l.Now {
		l.timed[o.JobID] = true
	}
	if !l.timed[id] {
		delete(l.timed, id)
	}
}

// follows tells whether a change of the job can be followed; b may be nil.
func (l *Live) follows(b *v1alpha1.BatchJob) bool {
	if b == nil {
		return true
	}
	return b.Spec.Workload == nil && array.HetID(b) == 0 && !l.alone[singleton(b)] &&
		!slices.ContainsFunc(b.Spec.Job.Dependencies.Items, isSingleton)
}

// Follow takes in jobs that came, changed or went (nil), by number. It is false
// when that cannot be followed: the Live is of no use any more.
func (l *Live) Follow(now time.Time, jobs map[int64]*v1alpha1.BatchJob) bool {
	if l.Now, l.View.queue.now = now.Unix(), now.Unix(); l.Now >= l.until {
		return false
	}
	again := map[int64]bool{}
	for id, b := range jobs {
		old := l.jobs[id]
		if old == b {
			continue
		}
		if !l.follows(old) || !l.follows(b) || (Holds(old) != Holds(b) && !l.budgeted) {
			return false
		}
		l.replace(id, old, b)
		l.concerned(again, id, old)
		l.concerned(again, id, b)
	}
	for id := range jobs {
		if l.strays[id] || slices.ContainsFunc(l.podsOf(id), l.stray) {
			return false
		}
	}
	maps.Copy(again, l.timed)
	l.expect(again)
	for _, id := range slices.Sorted(maps.Keys(again)) {
		l.form(id)
	}
	l.queue.SetLimits(l.policy.limits.Limits)
	return true
}

// Holds is Holding of a job that may be nil.
func Holds(b *v1alpha1.BatchJob) bool { return b != nil && b.HoldsAllocation() }

// replace has the view and the queue hold b instead of old; waiting jobs have
// no form then.
func (l *Live) replace(id int64, old, b *v1alpha1.BatchJob) {
	if Holds(old) {
		l.queue.End(id)
		u := l.uses[id]
		l.policy.limits.Hold(&u, -1)
		delete(l.uses, id)
		delete(l.leaving, id)
	}
	delete(l.jobs, id)
	if old != nil {
		l.View.queue.remove(old)
	}
	if b == nil {
		return
	}
	l.jobs[id] = b
	l.View.queue.add(b)
	l.note(id, b)
	if b.HoldsAllocation() {
		r := l.running(b)
		l.queue.Start(&r)
		u := l.held(b)
		l.uses[id] = u
		l.policy.limits.Hold(&u, 1)
		l.leave(b)
	}
}

// leave notes for whom a running job makes room.
func (l *Live) leave(b *v1alpha1.BatchJob) {
	if p := b.Status.Preempt; p != nil {
		l.leaving[b.Spec.JobID] = p.By
	}
}

// concerned adds the jobs whose forms may be others after that change.
func (l *Live) concerned(to map[int64]bool, id int64, b *v1alpha1.BatchJob) {
	to[id] = true
	maps.Copy(to, l.waiters[id])
	if b == nil {
		return
	}
	whole := id
	if o := b.Spec.Origin; o != nil {
		whole = o.JobID
		to[whole] = true
		maps.Copy(to, l.waiters[whole])
	}
	for _, t := range l.View.queue.split[whole] {
		if t.AwaitsStart() {
			to[t.Spec.JobID] = true
		}
	}
}

// form gives a job, if it waits, the form in which it is planned.
func (l *Live) form(id int64) {
	l.queue.Withdraw(id)
	delete(l.wanted, id)
	b := l.jobs[id]
	if b == nil || !b.AwaitsStart() {
		return
	}
	forms := l.pending(nil, b)
	for i := range forms {
		l.queue.Submit(&forms[i])
	}
}

// stray tells whether the pod takes something on a node that no job's
// allocation counts.
func (l *Live) stray(p *corev1.Pod) bool {
	_, on := l.byObject[p.Spec.NodeName]
	return on && !l.counted(p)
}

// Followable tells whether a Live can be made of the same cluster.
func (v *View) Followable() bool { return v.Incremental() }

// Backfilled is how many of the last Decide's jobs start before others that
// wait on.
func (l *Live) Backfilled() int { return l.queue.Backfilled() }

// Decide lists who starts now; see backfill.Queue.Decide.
func (l *Live) Decide() []backfill.Decision {
	l.devices = nil
	return l.queue.Decide(l.Now)
}

// add takes in a job split off another.
func (q *queue) add(b *v1alpha1.BatchJob) {
	o, t := b.Spec.Origin, b.Spec.Task
	delete(q.rest, b.Spec.JobID)
	if o == nil {
		return
	}
	delete(q.rest, o.JobID)
	list := q.split[o.JobID]
	i, _ := slices.BinarySearchFunc(list, b.Spec.JobID, func(x *v1alpha1.BatchJob, id int64) int { return int(x.Spec.JobID - id) })
	q.split[o.JobID] = slices.Insert(slices.Clone(list), i, b)
	if t != nil {
		if q.tasks[o.JobID] == nil {
			q.tasks[o.JobID] = map[int32]*v1alpha1.BatchJob{}
		}
		q.tasks[o.JobID][t.Index] = b
	}
}

// remove takes out a job that was split off another.
func (q *queue) remove(b *v1alpha1.BatchJob) {
	o, t := b.Spec.Origin, b.Spec.Task
	delete(q.rest, b.Spec.JobID)
	if o == nil {
		return
	}
	delete(q.rest, o.JobID)
	q.split[o.JobID] = slices.DeleteFunc(slices.Clone(q.split[o.JobID]), func(x *v1alpha1.BatchJob) bool { return x == b })
	if t != nil && q.tasks[o.JobID][t.Index] == b {
		delete(q.tasks[o.JobID], t.Index)
	}
}
