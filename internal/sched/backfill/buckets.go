package backfill

import (
	"slices"
	"sort"
)

// bucket holds the waiting jobs of one shape, by priority. Whether any of them
// can start now is asked of the shape once, and of the jobs only how long they
// take.
type bucket struct {
	shape *shape
	jobs  []bucketed
}

// bucketed is a job in a bucket.
type bucketed struct {
	duration int64
	w        *waiter
}

func (b *bucket) find(j *Job) (int, bool) {
	return slices.BinarySearchFunc(b.jobs, j, func(x bucketed, j *Job) int { return before(x.w.job, j) })
}

// file puts w into its bucket, where the engine has classes.
func (q *Scheduler) file(w *waiter) {
	if q.e.exact {
		return
	}
	b := q.buckets[w.shape]
	if b == nil {
		b = &bucket{shape: w.shape}
		q.buckets[w.shape] = b
		q.inOrder = append(q.inOrder, b)
	}
	i, _ := b.find(w.job)
	b.jobs = slices.Insert(b.jobs, i, bucketed{w.job.Duration, w})
}

// unfile takes w out of its bucket.
func (q *Scheduler) unfile(w *waiter) {
	if b := q.buckets[w.shape]; b != nil {
		if i, ok := b.find(w.job); ok {
			b.jobs = slices.Delete(b.jobs, i, i+1)
		}
	}
}

// fits lists the waiting jobs that may fit now, in the queue's order.
func (q *Scheduler) fits() []*waiter {
	e := q.e
	out := q.scratch[:0]
	for _, b := range q.inOrder {
		s := b.shape
		if len(b.jobs) == 0 || e.v[e.first] < s.least || int(s.class.count[e.first]) < s.fewest {
			continue
		}
		longest := Forever
		if s.simple {
			longest = e.longest(s)
		}
		for i := range b.jobs {
			if b.jobs[i].duration > longest {
				continue
			}
			if w := b.jobs[i].w; !w.held && !w.gone {
				out = append(out, w)
			}
		}
	}
	slices.SortFunc(out, func(a, b *waiter) int { return before(a.job, b.job) })
	q.scratch = out
	return out
}

// longest is how long a job of a simple shape could run from now on; 0: it
// cannot start.
func (e *engine) longest(s *shape) int64 {
	if s.class.flat {
		until := s.class.lasting(e.first)
		return e.lastsUntil(e.first + sort.Search(len(until), func(i int) bool { return int(until[i]) < s.fewest }))
	}
	lo, hi := e.first, len(e.at) // it serves until slot lo, and not beyond hi
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if s.class.through(e.first, mid, e.scratch, s.fewest) >= s.fewest {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return e.lastsUntil(lo)
}

// lastsUntil is the time from now until the slot.
func (e *engine) lastsUntil(slot int) int64 {
	switch slot {
	case e.first:
		return 0
	case len(e.at):
		return Forever
	}
	return e.at[slot] - e.now
}
