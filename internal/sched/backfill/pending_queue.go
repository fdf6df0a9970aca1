package backfill

import (
	"iter"
	"slices"
)

// pendingJob is a job in the queue, with values by which the planner quickly finds that it
// cannot start.
type pendingJob struct {
	job         *Job
	shape       *requestShape
	minDuration int64 // see Job.minDuration
	begin       int64
	partition   int32 // see planner.partitionIndex
	bound       uint32
	complex     bool // its shape alone does not decide whether it can start
}

// pendingQueue is the pending jobs in the queue's order. They are kept in
// chunks, so that adding and removing one is cheap.
type pendingQueue struct {
	chunks []chunk
	n      int
}

// chunk is some jobs, and the duration bound of each (see shapeBounds).
type chunk struct {
	jobs   []pendingJob
	bounds []durationBound
}

// maxChunk is the maximum number of jobs in a chunk; a larger one is split.
const maxChunk = 1024

// each yields every job in order. The yielded jobs may be modified.
func (l *pendingQueue) each(yield func(*pendingJob) bool) {
	for _, c := range l.chunks {
		for i := range c.jobs {
			if !yield(&c.jobs[i]) {
				return
			}
		}
	}
}

// chunksFrom yields the jobs from the index first on, in parts.
func (l *pendingQueue) chunksFrom(first int) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		for _, c := range l.chunks {
			if at := max(first, 0); at < len(c.jobs) && !yield(chunk{c.jobs[at:], c.bounds[at:]}) {
				return
			}
			first -= len(c.jobs)
		}
	}
}

// isLast reports whether w is the last job.
func (l *pendingQueue) isLast(w *pendingJob) bool {
	c := l.chunks[len(l.chunks)-1]
	return &c.jobs[len(c.jobs)-1] == w
}

// add inserts j in queue order, after the other parts of the same array.
func (l *pendingQueue) add(j *Job) (*pendingJob, *durationBound) {
	if len(l.chunks) == 0 {
		l.chunks = append(l.chunks, chunk{})
	}
	compare := func(w pendingJob, j *Job) int {
		if compareQueueOrder(w.job, j) <= 0 {
			return -1
		}
		return 1
	}
	c, _ := slices.BinarySearchFunc(l.chunks[1:], j, func(c chunk, j *Job) int { return compare(c.jobs[0], j) })
	in := &l.chunks[c]
	i, _ := slices.BinarySearchFunc(in.jobs, j, compare)
	in.jobs, in.bounds = slices.Insert(in.jobs, i, pendingJob{job: j}), slices.Insert(in.bounds, i, durationBound{})
	l.n++
	if half := len(in.jobs) / 2; len(in.jobs) > maxChunk {
		l.chunks = slices.Insert(l.chunks, c+1, in.split(half))
		if i >= half {
			c, i = c+1, i-half
		}
	}
	in = &l.chunks[c]
	return &in.jobs[i], &in.bounds[i]
}

// split removes the jobs from index at on and returns them.
func (c *chunk) split(at int) chunk {
	rest := chunk{slices.Clone(c.jobs[at:]), slices.Clone(c.bounds[at:])}
	clear(c.jobs[at:])
	c.jobs, c.bounds = c.jobs[:at], c.bounds[:at]
	return rest
}

// remove removes j, which must be in the queue.
func (l *pendingQueue) remove(j *Job) {
	first, _ := slices.BinarySearchFunc(
		l.chunks[1:],
		j,
		func(c chunk, j *Job) int { return compareQueueOrder(c.jobs[0].job, j) },
	)
	for c := first; c < len(l.chunks); c++ {
		in := &l.chunks[c]
		i, _ := slices.BinarySearchFunc(
			in.jobs,
			j,
			func(w pendingJob, j *Job) int { return compareQueueOrder(w.job, j) },
		)
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

// jobs returns all jobs.
func (l *pendingQueue) jobs() []*Job {
	out := make([]*Job, 0, l.n)
	for w := range l.each {
		out = append(out, w.job)
	}
	return out
}
