package keeper

import (
	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/keeper/decide"
)

// A thousand jobs may be placed at the same time, and the controllers create the pods of
// about ten JobSets per second. Therefore, jobs wait in a queue, with their nodes, until
// their objects are created: if all objects were created immediately, most jobs would time
// out and be requeued.

// maxStarting is how many placed jobs may have objects and not all of their pods
// bound: enough to keep the controllers busy, few enough for each to be served long
// before its start times out.
const maxStarting = 128

// startThrottle has the jobs whose objects the controllers work on, and the queue of
// those that wait for their turn. The Keeper's mutex guards it; the zero value is
// ready.
type startThrottle struct {
	busy   map[int64]bool
	queue  []int64
	queued map[int64]bool
}

// full reports whether the job has to wait for its turn.
func (s *startThrottle) full(id int64) bool { return len(s.busy) >= maxStarting && !s.busy[id] }

// enter adds the job to the queue.
func (s *startThrottle) enter(id int64) {
	if s.queued[id] {
		return
	}
	if s.queued == nil {
		s.queued = map[int64]bool{}
	}
	s.queued[id] = true
	s.queue = append(s.queue, id)
}

// begin records that the job's objects are being created.
func (s *startThrottle) begin(id int64) {
	if s.busy == nil {
		s.busy = map[int64]bool{}
	}
	s.busy[id] = true
}

// end records that the controllers have finished with the job, and returns the jobs that
// are next.
func (s *startThrottle) end(id int64) (next []int64) {
	if !s.busy[id] {
		return nil
	}
	delete(s.busy, id)
	n := min(len(s.queue), maxStarting-len(s.busy))
	next = s.queue[:max(0, n)]
	s.queue = s.queue[len(next):]
	for _, id := range next {
		delete(s.queued, id)
	}
	return next
}

// awaitStart queues the job for its turn.
func (k *Keeper) awaitStart(b *v1alpha1.BatchJob) {
	k.noteProgress(b, func(m *decide.Progress) { m.Queued = true })
	k.mu.Lock()
	k.throttle.enter(b.Spec.JobID)
	full := k.throttle.full(b.Spec.JobID)
	k.mu.Unlock()
	if !full { // there is room by now
		k.queue.Add(b.Spec.JobID)
	}
}

// startDone queues the jobs whose turn it is when the controllers are done with b:
// it is no longer placed, or has all of its pods bound.
func (k *Keeper) startDone(b *v1alpha1.BatchJob) {
	k.mu.Lock()
	next := k.throttle.end(b.Spec.JobID)
	k.mu.Unlock()
	for _, id := range next {
		k.queue.Add(id)
	}
}
