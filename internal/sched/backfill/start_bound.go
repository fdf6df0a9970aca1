package backfill

import (
	"math"
	"math/bits"
	"slices"
	"sort"
)

// Most jobs of a long queue can be skipped in a cycle because no job of their shape can start
// now, or none that runs as long. This file has what is known about that.

// refusal is the shortest duration with which a job of a shape is known not to start now. It
// is valid in one epoch of the engine.
type refusal struct {
	epoch    int
	duration int64
}

// isRefused reports whether a job of the shape is known not to start now with this duration.
func (e *engine) isRefused(s *requestShape, duration int64) bool {
	r := &e.refusals[s.number]
	return r.epoch == e.epoch && duration >= r.duration
}

// refuse records that a job of the shape does not start now with this duration.
func (e *engine) refuse(s *requestShape, duration int64) {
	r := &e.refusals[s.number]
	if r.epoch == e.epoch {
		duration = min(duration, r.duration)
	}
	*r = refusal{e.epoch, duration}
}

// unknownCapacity marks a class whose capacity has not been computed since the last change
// of a node's availability.
const unknownCapacity = -1

// tasksOf returns the maximum number of tasks that a node with these free CPUs can run, if
// each needs the CPUs that the class demands.
func (c *demandClass) tasksOf(cpus int32) int64 { return int64(cpus / max(1, c.cpus)) }

// updateCapacity updates the capacity after what is free now on the plain node n became cpus and
// memory.
func (c *demandClass) updateCapacity(n *nodeState, cpus, memory int32, t delta) {
	need := c.cpusOn(n)
	if cpus >= need && memory >= c.memory {
		c.capacity += c.tasksOf(cpus)
	}
	if cpus+t.cpus >= need && memory+t.memory >= c.memory {
		c.capacity -= c.tasksOf(cpus + t.cpus)
	}
}

// countsTasks reports whether the engine computes how many tasks the nodes of the class can run. It
// does for sparse profiles, whose first slot begins now.
func (e *engine) countsTasks(c *demandClass) bool {
	return c.plain && e.sparse && !e.oversubscribes && len(e.s.AdvanceReservations) == 0
}

// capacityNow returns an upper bound for the number of tasks that all nodes of the class can
// run together now, if each task needs the CPUs that the class demands of a node. It is
// MaxInt64 if tasks are not counted.
func (e *engine) capacityNow(c *demandClass) int64 {
	if !e.countsTasks(c) {
		return math.MaxInt64
	}
	if c.capacity == unknownCapacity {
		c.capacity = 0
		for w, x := range c.perSlot[:c.words] {
			for ; x != 0; x &= x - 1 {
				c.capacity += c.tasksOf(e.v[e.nodes[w*64+bits.TrailingZeros64(x)].first*e.stride])
			}
		}
	}
	return c.capacity
}

// runnable is, for each slot, an upper bound for the number of tasks of a class that run from now
// until the end of the slot. It is valid in one epoch of the engine, in which free amounts only
// decrease.
type runnable struct {
	epoch int
	tasks []int64
}

// tasksUntil returns, for each slot from the first on, an upper bound for the number of tasks that
// the nodes of the class can run together from now until the end of the slot, if each task needs the
// CPUs that the class demands of a node.
func (e *engine) tasksUntil(c *demandClass) []int64 {
	u := &c.untilTasks
	if u.epoch == e.epoch {
		return u.tasks
	}
	u.epoch = e.epoch
	u.tasks = slices.Grow(u.tasks[:0], len(e.at)-e.first)[:len(e.at)-e.first]
	clear(u.tasks)
	for w, x := range c.perSlot[e.first*c.words : (e.first+1)*c.words] {
		for ; x != 0; x &= x - 1 {
			least := int32(math.MaxInt32)
			for i, free := range e.row(e.nodes[w*64+bits.TrailingZeros64(x)].first)[e.first:] {
				if least = min(least, free); least < c.cpus {
					break
				}
				u.tasks[i] += c.tasksOf(least)
			}
		}
	}
	return u.tasks
}

// longestWithTasks returns an upper bound for the duration of a job that starts now and runs at
// least that many tasks of the class.
func (e *engine) longestWithTasks(c *demandClass, leastTasks int64) int64 {
	if !e.countsTasks(c) {
		return Forever
	}
	until := e.tasksUntil(c)
	return e.lastsUntil(e.first + sort.Search(len(until), func(i int) bool { return until[i] < leastTasks }))
}

// cannotStart reports whether it is known, without a search, that the job neither starts
// now nor gets a reservation.
func (p *planner) cannotStart(w *pendingJob) bool {
	if w.complex || !p.isBounded(w.partition) {
		return false
	}
	p.computeBound(w.bound)
	return w.begin > p.now || w.minDuration > p.maxDurations[w.shape.number]
}

// isBounded reports whether jobs of the partition can be skipped if they cannot start now: none
// of them gets a reservation any more.
func (p *planner) isBounded(partition int32) bool {
	return p.sparse && p.reserved[partition] >= p.s.Policy.Reservations && !p.s.Policy.NoBackfill
}

// computeBound computes the bound with this index and returns it. It is unbounded while jobs
// of the partition may get reservations.
func (p *planner) computeBound(index uint32) uint32 {
	s := &p.shapeBounds.shapes[index]
	if !p.isBounded(s.partition) {
		return unbounded
	}
	if p.maxDurations[s.number] == unknown {
		p.maxDurations[s.number] = p.boundDuration(s)
	}
	limit := clampUint32(p.maxDurations[s.number])
	p.shapeBounds.limits[index] = limit
	return limit
}

// unknown marks a shape whose longest duration has not been computed.
const unknown = -1

// boundDuration returns an upper bound for the duration of a job of the shape that starts
// now, or 0 if it cannot start. The bound only decreases within a cycle.
func (e *engine) boundDuration(s *boundedShape) int64 {
	may := Forever
	switch {
	case e.v[e.first] < s.leastTotalCPUs || s.class.count[e.first] < s.leastNodes ||
		e.capacityNow(s.class) < s.leastTasks:
		may = 0
	case !s.reserved: // a reservation may end a job early
		may = e.longestSimple(s.class, int(s.leastNodes))
		if s.leastTasks > int64(s.leastNodes) {
			may = min(may, e.longestWithTasks(s.class, s.leastTasks))
		}
	}
	if r := &e.refusals[s.number]; r.epoch == e.epoch {
		may = min(may, r.duration-1)
	}
	return may
}
