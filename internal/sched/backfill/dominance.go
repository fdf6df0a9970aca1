package backfill

// family is all shapes that differ in the number of nodes and tasks only. What
// asks for more of both and for longer cannot start earlier: so the search for
// one starts where that for another has ended.
type dominanceGroup struct {
	epoch  int // the bounds hold in this pass
	bounds []bound
}

// bound remembers that nothing of so many nodes and tasks, for duration
// seconds, can start before at.
type bound struct {
	nodes, tasks int
	duration, at int64
}

// familyOf finds or makes the family of a shape with key k; nil where more
// nodes may be easier to find than fewer.
func (e *engine) dominanceGroupOf(s *requestShape, k shapeKey, plain bool) *dominanceGroup {
	if !plain || s.MaxNodes > s.leastNodes || e.s.Policy.noDominance {
		return nil
	}
	if s.MaxNodes == 0 || s.tasksWanted(s.leastNodes) == s.leastNodes {
		k.minNodes = 0
	}
	k.tasks, k.maxNodes = min(k.tasks, 1), min(k.maxNodes, 1)
	if s.MaxNodes > 0 && s.tasksWanted(s.leastNodes) == s.leastNodes {
		k.tasks = 0 // one task a node, however that was said
	}
	f := e.dominanceGroups[k]
	if f == nil {
		f = &dominanceGroup{}
		e.dominanceGroups[k] = f
	}
	return f
}

// known is the earliest start of the shape that is not known to be impossible.
func (e *engine) earliestKnown(s *requestShape, duration int64) int64 {
	at := int64(0)
	if s.dominance == nil || s.dominance.epoch != e.epoch {
		return at
	}
	tasks := s.tasksWanted(s.leastNodes)
	for i := range s.dominance.bounds {
		if b := &s.dominance.bounds[i]; b.at > at && b.nodes <= s.leastNodes && b.tasks <= tasks && b.duration <= duration {
			at = b.at
		}
	}
	return at
}

// mostBounds keeps looking them up cheap.
const mostBounds = 64

// learn adds a bound, and drops those that say no more than it.
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
	if len(kept) == mostBounds {
		kept = append(kept[:0], kept[1:]...)
	}
	f.bounds = append(kept, n)
}
