package backfill

import "slices"

// waiting is a job in the queue's order, and what tells quickly that it cannot
// start.
type pendingJob struct {
	job         *Job
	shape       *requestShape
	minDuration int64 // the shortest time it takes
	begin       int64
	partition   int32 // of its partition, see planner.partitionAt
	bound       uint32
	complex     bool // there is more to look at than its shape
}

// lineup is the waiting jobs in the queue's order, in chunks, so that one comes
// or goes at small cost.
type pendingQueue struct {
	chunks []chunk
	n      int
}

// chunk is some jobs, and for each what it has to be shorter than (see bars).
type chunk struct {
	jobs   []pendingJob
	bounds []durationBound
}

// mostInChunk is how many jobs are in a chunk before it is divided.
const mostInChunk = 1024

// each yields every job in order. What it yields may be changed in place.
func (l *pendingQueue) each(yield func(*pendingJob) bool) {
	for _, c := range l.chunks {
		for i := range c.jobs {
			if !yield(&c.jobs[i]) {
				return
			}
		}
	}
}

// add puts j behind those that come before it, and behind other parts of the
// same array.
func (l *pendingQueue) add(j *Job) (*pendingJob, *durationBound) {
	if len(l.chunks) == 0 {
		l.chunks = append(l.chunks, chunk{})
	}
	behind := func(w pendingJob, j *Job) int {
		if compareQueueOrder(w.job, j) <= 0 {
			return -1
		}
		return 1
	}
	c, _ := slices.BinarySearchFunc(l.chunks[1:], j, func(c chunk, j *Job) int { return behind(c.jobs[0], j) })
	in := &l.chunks[c]
	i, _ := slices.BinarySearchFunc(in.jobs, j, behind)
	in.jobs, in.bounds = slices.Insert(in.jobs, i, pendingJob{job: j}), slices.Insert(in.bounds, i, durationBound{})
	l.n++
	if half := len(in.jobs) / 2; len(in.jobs) > mostInChunk {
		l.chunks = slices.Insert(l.chunks, c+1, in.split(half))
		if i >= half {
			c, i = c+1, i-half
		}
	}
	in = &l.chunks[c]
	return &in.jobs[i], &in.bounds[i]
}

// split takes those from at on out.
func (c *chunk) split(at int) chunk {
	behind := chunk{slices.Clone(c.jobs[at:]), slices.Clone(c.bounds[at:])}
	clear(c.jobs[at:])
	c.jobs, c.bounds = c.jobs[:at], c.bounds[:at]
	return behind
}

// remove takes out j, which is there.
func (l *pendingQueue) remove(j *Job) {
	first, _ := slices.BinarySearchFunc(l.chunks[1:], j, func(c chunk, j *Job) int { return compareQueueOrder(c.jobs[0].job, j) })
	for c := first; c < len(l.chunks); c++ {
		in := &l.chunks[c]
		i, _ := slices.BinarySearchFunc(in.jobs, j, func(w pendingJob, j *Job) int { return compareQueueOrder(w.job, j) })
		for ; i < len(in.jobs); i++ {
			if in.jobs[i].job != j {
				continue
			}
			l.n--
			in.jobs, in.bounds = slices.Delete(in.jobs, i, i+1), slices.Delete(in.bounds, i, i+1)
			if len(in.jobs) == 0 {
				l.chunks = slices.Delete(l.chunks, c, c+1)
			}
			return
		}
	}
}

// jobs lists them all.
func (l *pendingQueue) jobs() []*Job {
	out := make([]*Job, 0, l.n)
	for w := range l.each {
		out = append(out, w.job)
	}
	return out
}
