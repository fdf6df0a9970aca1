package backfill

import "container/heap"

// extend lets jobs that are past their end hold what they hold for one second
// more.
func (q *Scheduler) extend() {
	for len(q.ends) > 0 && q.ends[0].end <= q.e.now {
		x := heap.Pop(&q.ends).(deadline)
		if r := q.running[x.id]; r != nil && r.claim.end == x.end {
			r.claim.end = q.e.now + 1
			c := r.claim
			c.start = q.e.now
			q.e.occupy(&c, 1)
			q.settled.is = false
			heap.Push(&q.ends, deadline{r.claim.end, x.id})
		}
	}
}

// deadline is when a running job has to end.
type deadline struct{ end, id int64 }

// deadlines is a heap of them.
type deadlines []deadline

func (d deadlines) Len() int { return len(d) }
func (d deadlines) Less(a, b int) bool {
	return d[a].end < d[b].end || d[a].end == d[b].end && d[a].id < d[b].id
}
func (d deadlines) Swap(a, b int) { d[a], d[b] = d[b], d[a] }
func (d *deadlines) Push(x any)   { *d = append(*d, x.(deadline)) }
func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
