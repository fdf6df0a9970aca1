package backfill

import "slices"

// waiting is a job in the queue's order, and what tells quickly that it cannot
// start: a pass over a long queue looks at nothing else of most jobs.
type waiting struct {
	job   *Job
	shape *shape
	least int64 // the shortest time it takes
	begin int64
	place int32 // of its partition, see planner.partitionAt
	may   int32 // place in engine.may, of the shape
	aside bool  // Job.Blocked
	odd   bool  // there is more to look at than its shape
}

// lineup is the waiting jobs in the queue's order, in chunks, so that one comes
// or goes at small cost.
type lineup struct {
	chunks [][]waiting
	n      int
}

// mostInChunk is how many jobs are in a chunk before it is divided.
const mostInChunk = 1024

// each yields every job in order. What it yields may be changed in place.
func (l *lineup) each(yield func(*waiting) bool) {
	for _, c := range l.chunks {
		for i := range c {
			if !yield(&c[i]) {
				return
			}
		}
	}
}

// add puts j behind those that come before it, and behind other parts of the
// same array.
func (l *lineup) add(j *Job) *waiting {
	if len(l.chunks) == 0 {
		l.chunks = append(l.chunks, nil)
	}
	behind := func(w waiting, j *Job) int {
		if before(w.job, j) <= 0 {
			return -1
		}
		return 1
	}
	c, _ := slices.BinarySearchFunc(l.chunks[1:], j, func(c []waiting, j *Job) int { return behind(c[0], j) })
	i, _ := slices.BinarySearchFunc(l.chunks[c], j, behind)
	l.chunks[c] = slices.Insert(l.chunks[c], i, waiting{job: j})
	l.n++
	if all := l.chunks[c]; len(all) > mostInChunk {
		half := len(all) / 2
		l.chunks = slices.Insert(l.chunks, c+1, slices.Clone(all[half:]))
		clear(all[half:])
		l.chunks[c] = all[:half]
		if i >= half {
			c, i = c+1, i-half
		}
	}
	return &l.chunks[c][i]
}

// remove takes out j, which is there.
func (l *lineup) remove(j *Job) {
	first, _ := slices.BinarySearchFunc(l.chunks[1:], j, func(c []waiting, j *Job) int { return before(c[0].job, j) })
	for c := first; c < len(l.chunks); c++ {
		i, _ := slices.BinarySearchFunc(l.chunks[c], j, func(w waiting, j *Job) int { return before(w.job, j) })
		for ; i < len(l.chunks[c]); i++ {
			if l.chunks[c][i].job != j {
				continue
			}
			l.n--
			if l.chunks[c] = slices.Delete(l.chunks[c], i, i+1); len(l.chunks[c]) == 0 {
				l.chunks = slices.Delete(l.chunks, c, c+1)
			}
			return
		}
	}
}

// jobs lists them all.
func (l *lineup) jobs() []*Job {
	out := make([]*Job, 0, l.n)
	for w := range l.each {
		out = append(out, w.job)
	}
	return out
}
