package keeper

import (
	"context"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// maxDeferredWrites is how many statuses that can wait are written at a time.
// It is less than the number of workers, so that what cannot wait (cancelling,
// time limits) always finds one.
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

// release ends a write and returns the job whose turn is next; ok is false if
// none is queued.
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
// progress it returns at once, and the job is decided about again when one of them
// ends.
func (k *Keeper) writeAssumed(ctx context.Context, b *v1alpha1.BatchJob) (again bool, err error) {
	k.mu.Lock()
	acquired := k.deferred.acquire(b.Spec.JobID)
	k.mu.Unlock()
	if !acquired {
		k.queue.AddAfter(b.Spec.JobID, throttlePause) // in case those before it in the queue need no write any more
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
