package backfill

// dominanceGroup is a group of shapes that differ only in the number of nodes and tasks.
// A job that requests at least as many of both, for at least as long, cannot start
// earlier, so its search starts where the search for the smaller one ended.
type dominanceGroup struct {
	epoch  int // the bounds hold in this epoch of the engine
	bounds []bound
}

// bound is a lower bound: a job with at least these nodes, tasks and duration cannot start
// before at.
type bound struct {
	nodes, tasks int
	duration, at int64
}

// dominanceGroupOf returns the group of a shape with key k, or nil if more nodes may be
// easier to find than fewer.
func (e *engine) dominanceGroupOf(s *requestShape, k shapeKey, plain bool) *dominanceGroup {
	if !plain || s.MaxNodes > s.leastNodes || e.s.Policy.noDominance {
		return nil
	}
	if s.MaxNodes == 0 || s.tasksWanted(s.leastNodes) == s.leastNodes {
		k.minNodes = 0
	}
	k.tasks, k.maxNodes = min(k.tasks, 1), min(k.maxNodes, 1)
	if s.MaxNodes > 0 && s.tasksWanted(s.leastNodes) == s.leastNodes {
		k.tasks = 0 // one task per node, whichever options requested it
	}
	f := e.dominanceGroups[k]
	if f == nil {
		f = &dominanceGroup{}
		e.dominanceGroups[k] = f
	}
	return f
}

// earliestKnown returns the latest bound on the start of the shape.
func (e *engine) earliestKnown(s *requestShape, duration int64) int64 {
	at := int64(0)
	if s.dominance == nil || s.dominance.epoch != e.epoch {
		return at
	}
	tasks := s.tasksWanted(s.leastNodes)
	for i := range s.dominance.bounds {
		if b := &s.dominance.bounds[i]; b.at > at && b.nodes <= s.leastNodes && b.tasks <= tasks &&
			b.duration <= duration {
			at = b.at
		}
	}
	return at
}

// maxBounds is the maximum number of bounds of a group, which limits the cost of a lookup.
const maxBounds = 64

// recordBound adds a bound and drops those that it implies.
func (e *engine) recordBound(s *requestShape, duration, at int64) {
	f := s.dominance
	if f.epoch != e.epoch {
		f.epoch, f.bounds = e.epoch, f.bounds[:0]
	}
	n := bound{s.leastNodes, s.tasksWanted(s.leastNodes), duration, at}
	kept := f.bounds[:0]
	for _, b := range f.bounds {
		if b.nodes <= n.nodes && b.tasks <= n.tasks && b.duration <= n.duration && b.at >= n.at {
			return
		}
		if b.nodes < n.nodes || b.tasks < n.tasks || b.duration < n.duration || b.at > n.at {
			kept = append(kept, b)
		}
	}
	if len(kept) == maxBounds {
		kept = append(kept[:0], kept[1:]...)
	}
	f.bounds = append(kept, n)
}
