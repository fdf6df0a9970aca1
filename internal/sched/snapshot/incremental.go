package snapshot

import (
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/dependency"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/array"
)

// Incremental is a Snapshot that follows changes of jobs and nodes, with the
// backfill.Queue made from it. After a job was submitted, changed or ended, it
// decides which jobs start now at the cost of what changed, with the result that a new
// Snapshot would give. It reports changes that it cannot follow (those of other
// objects, of workloads, of jobs with the same name where one has a singleton
// dependency); then it must be replaced. Priorities are those of the instant at
// which it was made. Not safe for concurrent use.
type Incremental struct {
	*Snapshot
	queue   *backfill.Queue
	expires int64 // when it must be replaced

	podsOf         func(jobID int64) []*corev1.Pod
	runningUsage   map[int64]limits.Usage
	dependents     map[int64]map[int64]bool // jobs that depend on a job
	timeDependent  map[int64]bool           // pending jobs whose request depends on the time
	singletons     map[string]bool          // dependency.SingletonKeys that some job waits for
	limitsFollow   bool                     // starts and ends change nothing but Limits
	unaccounted    map[int64]bool           // jobs with pods that no allocation accounts for
	preemptedFor   map[int64]int64          // the preemptor of each running job that is preempted
	otherPreemptor map[int64]bool           // see SetPreemptors
}

// maxAge is how many seconds an Incremental is used at most, because it does not
// follow the decay of usage, among other things.
const maxAge = 60

// NewIncremental returns an Incremental; ok is false if the cluster's policy does
// not allow one. podsOf returns the pods that carry the number of a job.
func NewIncremental(in Input, podsOf func(jobID int64) []*corev1.Pod) (x *Incremental, ok bool) {
	s := New(in)
	if !s.CanFollow() {
		return nil, false
	}
	x = &Incremental{
		Snapshot: s, expires: s.Now + maxAge, podsOf: podsOf,
		limitsFollow:   s.policy.limits.OnlyBudgetsChange(),
		runningUsage:   map[int64]limits.Usage{},
		dependents:     map[int64]map[int64]bool{},
		timeDependent:  map[int64]bool{},
		singletons:     map[string]bool{},
		unaccounted:    map[int64]bool{},
		preemptedFor:   map[int64]int64{},
		otherPreemptor: maps.Clone(in.Preemptors),
	}
	for i := range s.AdvanceReservations {
		if end := s.AdvanceReservations[i].End; end > s.Now {
			x.expires = min(x.expires, end)
		}
	}
	for i := range s.Nodes {
		if boot := s.Nodes[i].Boot; boot > 0 { // it is planned on as if it were requested at s.Now
			x.expires = min(x.expires, s.Now+boot)
		}
	}
	for i := range s.Running {
		b := s.jobs[s.Running[i].ID]
		x.runningUsage[s.Running[i].ID] = s.heldUsage(b)
		x.notePreemptor(b)
	}
	for id, b := range s.jobs {
		x.noteDependencies(id, b)
	}
	for _, p := range in.Pods {
		if id := PodJobID(p); id != 0 && x.isUnaccounted(p) {
			x.unaccounted[id] = true
		}
	}
	x.queue = backfill.NewQueue(&s.Snapshot)
	s.Pending = nil // the queue holds them from here on
	return x, true
}

// noteDependencies records what the request of a job depends on beside the job
// itself: other jobs and the time.
func (x *Incremental) noteDependencies(id int64, b *v1alpha1.BatchJob) {
	delete(x.timeDependent, id)
	if !b.AwaitsStart() {
		return
	}
	timeDependent := b.Spec.Job.Time.Deadline > 0
	for i := range b.Spec.Job.Dependencies.Items {
		d := &b.Spec.Job.Dependencies.Items[i]
		if dependency.IsSingleton(*d) {
			x.singletons[dependency.SingletonKey(b)] = true
			continue
		}
		if x.dependents[d.JobID] == nil {
			x.dependents[d.JobID] = map[int64]bool{}
		}
		x.dependents[d.JobID][id] = true
		timeDependent = timeDependent || d.Delay > 0
	}
	if o := b.Spec.Origin; o != nil && earliestStart(b) > x.Now {
		x.timeDependent[o.JobID] = true // once this task is ready, fewer others may start
	}
	if timeDependent {
		x.timeDependent[id] = true
	}
}

// canFollow reports whether a change of the job can be followed; b may be nil.
func (x *Incremental) canFollow(b *v1alpha1.BatchJob) bool {
	if b == nil {
		return true
	}
	return b.Spec.Workload == nil && array.HetID(b) == 0 &&
		!x.singletons[dependency.SingletonKey(b)] && !dependency.HasSingleton(b)
}

// Follow applies jobs that were submitted, changed or deleted (nil), by number. It
// returns false if that is not possible; then the Incremental must be replaced.
func (x *Incremental) Follow(now time.Time, jobs map[int64]*v1alpha1.BatchJob) bool {
	x.Now, x.dependencies.Now = now.Unix(), now.Unix()
	if x.Now >= x.expires {
		return false
	}
	affected := map[int64]bool{}
	for id, b := range jobs {
		old := x.jobs[id]
		if old == b {
			continue
		}
		if !x.canFollow(old) || !x.canFollow(b) || holdsAllocation(old) != holdsAllocation(b) && !x.limitsFollow {
			return false
		}
		x.replaceJob(id, old, b)
		x.addAffected(affected, id, old)
		x.addAffected(affected, id, b)
	}
	for id := range jobs {
		if x.unaccounted[id] || slices.ContainsFunc(x.podsOf(id), x.isUnaccounted) {
			return false
		}
	}
	maps.Copy(affected, x.timeDependent)
	x.updatePreemptors(affected)
	for _, id := range slices.Sorted(maps.Keys(affected)) {
		x.resubmit(id)
	}
	x.queue.SetLimits(x.policy.limits.Limits)
	return true
}

func holdsAllocation(b *v1alpha1.BatchJob) bool { return b != nil && b.HoldsAllocation() }

// replaceJob replaces the job old by b; either may be nil. A pending job is not
// submitted to the queue yet.
func (x *Incremental) replaceJob(id int64, old, b *v1alpha1.BatchJob) {
	if holdsAllocation(old) {
		x.queue.End(id)
		u := x.runningUsage[id]
		x.policy.limits.Remove(&u)
		delete(x.runningUsage, id)
		delete(x.preemptedFor, id)
	}
	delete(x.jobs, id)
	if old != nil {
		x.dependencies.Remove(old)
	}
	if b == nil {
		return
	}
	x.jobs[id] = b
	x.dependencies.Add(b)
	x.noteDependencies(id, b)
	if b.HoldsAllocation() {
		r := x.buildRunning(b)
		x.queue.Start(&r)
		u := x.heldUsage(b)
		x.runningUsage[id] = u
		x.policy.limits.Add(&u)
		x.notePreemptor(b)
	}
}

// addAffected adds the jobs whose requests may differ after a change of b.
func (x *Incremental) addAffected(affected map[int64]bool, id int64, b *v1alpha1.BatchJob) {
	affected[id] = true
	maps.Copy(affected, x.dependents[id])
	if b == nil {
		return
	}
	whole := id
	if o := b.Spec.Origin; o != nil {
		whole = o.JobID
		affected[whole] = true
		maps.Copy(affected, x.dependents[whole])
	}
	for _, t := range x.dependencies.SplitOff(whole) {
		if t.AwaitsStart() {
			affected[t.Spec.JobID] = true
		}
	}
}

// resubmit submits the current request of a pending job to the queue, and withdraws
// the previous one.
func (x *Incremental) resubmit(id int64) {
	x.queue.Withdraw(id)
	delete(x.infos, id)
	b := x.jobs[id]
	if b == nil || !b.AwaitsStart() {
		return
	}
	requests := x.appendPending(nil, b)
	for i := range requests {
		x.queue.Submit(&requests[i])
	}
}

// isUnaccounted reports whether the pod uses resources of a node that no job's
// allocation accounts for.
func (x *Incremental) isUnaccounted(p *corev1.Pod) bool {
	_, inPool := x.byObject[p.Spec.NodeName]
	return inPool && !x.isAccounted(p)
}

// Decide returns the jobs that start now; see backfill.Queue.Decide.
func (x *Incremental) Decide() []backfill.Decision { return x.queue.Decide(x.Now) }

// Backfilled returns how many jobs of the last Decide start before others that
// still wait.
func (x *Incremental) Backfilled() int { return x.queue.Backfilled() }

// RunningJobs iterates over the numbers of the running jobs, in ascending order.
func (x *Incremental) RunningJobs() iter.Seq[int64] {
	return slices.Values(slices.Sorted(maps.Keys(x.runningUsage)))
}

// SelectVictims is Snapshot.SelectVictims of the jobs that run now.
func (x *Incremental) SelectVictims(
	id int64, candidates func() []int64, started []backfill.Running,
) []int64 {
	if b := x.jobs[id]; b == nil || !b.AwaitsStart() {
		return nil
	}
	return x.queue.Victims(x.Now, id, candidates(), started)
}
