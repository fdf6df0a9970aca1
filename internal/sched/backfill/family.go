package backfill

// family is all shapes that differ in the number of nodes and tasks only. What
// asks for more of both and for longer cannot start earlier: so the search for
// one starts where that for another has ended.
type family struct {
	pass   int // the bounds hold in this pass
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
func (e *engine) familyOf(s *shape, k shapeKey, plain bool) *family {
	if !plain || s.MaxNodes > s.fewest || e.s.Policy.forgetful {
		return nil
	}
	if s.MaxNodes == 0 || s.tasksWanted(s.fewest) == s.fewest {
		k.minNodes = 0
	}
	k.tasks, k.maxNodes = min(k.tasks, 1), min(k.maxNodes, 1)
	if s.MaxNodes > 0 && s.tasksWanted(s.fewest) == s.fewest {
		k.tasks = 0 // one task a node, however that was said
	}
	f := e.families[k]
	if f == nil {
		f = &family{}
		e.families[k] = f
	}
	return f
}

// known is the earliest start of the shape that is not known to be impossible.
func (e *engine) known(s *shape, duration int64) int64 {
	at := int64(0)
	if s.family == nil || s.family.pass != e.pass {
		return at
	}
	tasks := s.tasksWanted(s.fewest)
	for i := range s.family.bounds {
		if b := &s.family.bounds[i]; b.at > at && b.nodes <= s.fewest && b.tasks <= tasks && b.duration <= duration {
			at = b.at
		}
	}
	return at
}

// mostBounds keeps looking them up cheap.
const mostBounds = 64

// learn adds a bound, and drops those that say no more than it.
func (e *engine) learn(s *shape, duration, at int64) {
	f := s.family
	if f.pass != e.pass {
		f.pass, f.bounds = e.pass, f.bounds[:0]
	}
	n := bound{s.fewest, s.tasksWanted(s.fewest), duration, at}
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
