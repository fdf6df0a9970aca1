package keeper

import (
	"context"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/keeper/decide"
)

// maxDeferredWrites is the maximum number of concurrent writes of statuses that can wait.
// It is less than the number of workers, so that one is always free for urgent actions
// (cancellation, time limits).
const maxDeferredWrites = 3

// deferredWrites admits at most maxDeferredWrites writers and queues the jobs
// that are refused. The Keeper's mutex guards it; the zero value is ready.
type deferredWrites struct {
	writing int
	queue   []int64
	queued  map[int64]bool
}

// acquire reports whether the job may write now. If not, the job is queued.
func (d *deferredWrites) acquire(id int64) bool {
	if d.writing < maxDeferredWrites {
		d.writing++
		return true
	}
	if !d.queued[id] {
		if d.queued == nil {
			d.queued = map[int64]bool{}
		}
		d.queued[id] = true
		d.queue = append(d.queue, id)
	}
	return false
}

// release ends a write and returns the next queued job; ok is false if there is none.
func (d *deferredWrites) release() (next int64, ok bool) {
	d.writing--
	if len(d.queue) == 0 {
		return 0, false
	}
	next, d.queue = d.queue[0], d.queue[1:]
	delete(d.queued, next)
	return next, true
}

// writeAssumed writes the assumed status of b. If too many of these writes are in
// progress, it returns immediately, and the job is reconciled again when one of them ends.
func (k *Keeper) writeAssumed(ctx context.Context, b *v1alpha1.BatchJob) (again bool, err error) {
	k.mu.Lock()
	acquired := k.deferred.acquire(b.Spec.JobID)
	k.mu.Unlock()
	if !acquired {
		// In case those before it in the queue need no write any more.
		k.queue.AddAfter(b.Spec.JobID, decide.ThrottlePause)
		return false, nil
	}
	defer func() {
		k.mu.Lock()
		next, ok := k.deferred.release()
		k.mu.Unlock()
		if ok {
			k.queue.Add(next)
		}
	}()
	_, err = k.write(ctx, b, func(*v1alpha1.BatchJobStatus) {})
	return true, err
}
