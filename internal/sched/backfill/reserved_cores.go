package backfill

import (
	"maps"
	"slices"
)

// Some advance reservations have only some CPUs of a node. For other jobs these CPUs are
// not free; the reservation's own jobs may use those that none of them has yet.

// reservedCores is the CPUs that an advance reservation has of a node. The row is the
// number of them that the reservation's own jobs leave free, in each slot of the
// reservation.
type reservedCores struct {
	index int // in Snapshot.AdvanceReservations
	row   int
	set   CPUSet
}

// ReservesCores reports whether some advance reservation has only some CPUs of a node.
// Such a snapshot is planned on an exact profile, and a Queue makes a full plan of it.
func (s *Snapshot) ReservesCores() bool {
	return slices.ContainsFunc(s.AdvanceReservations, func(b AdvanceReservation) bool { return len(b.Cores) > 0 })
}

// initReservedCores sets which CPUs of which nodes are reserved.
func (e *engine) initReservedCores(s *Snapshot) {
	for b := range s.AdvanceReservations {
		for _, i := range slices.Sorted(maps.Keys(s.AdvanceReservations[b].Cores)) {
			if i < len(e.nodes) {
				e.nodes[i].reservedCores = append(
					e.nodes[i].reservedCores,
					reservedCores{index: b, set: s.AdvanceReservations[b].Cores[i]},
				)
				e.hasReservedCores = true
			}
		}
	}
}

// fillReservedCores fills the rows of reserved CPUs.
func (e *engine) fillReservedCores() {
	if !e.hasReservedCores {
		return
	}
	for i := range e.nodes {
		for _, k := range e.nodes[i].reservedCores {
			b, row := &e.s.AdvanceReservations[k.index], e.row(k.row)
			for s := range e.at {
				row[s] = 0
				if b.Start < e.slotEnd(s) && b.End > e.at[s] {
					row[s] = int32(k.set.Len())
				}
			}
		}
	}
}

// bookReservedCores books CPUs of the node for a job of the reservation.
func (e *engine) bookReservedCores(n *nodeState, reservation string, cpus int32, from, to int) {
	if reservation == "" {
		return
	}
	for _, k := range n.reservedCores {
		if e.s.AdvanceReservations[k.index].Name == reservation {
			e.add(k.row, from, to, -cpus)
		}
	}
}

// cpusIn returns how many CPUs of the node jobs of the reservation may have in
// the slot.
func (e *engine) cpusIn(n *nodeState, reservation string, s int) int32 {
	free := e.v[n.first*e.stride+s]
	own, bound := int32(0), false
	for _, k := range n.reservedCores {
		b, left := &e.s.AdvanceReservations[k.index], max(0, e.v[k.row*e.stride+s])
		switch {
		case b.Start >= e.slotEnd(s) || b.End <= e.at[s]:
		case reservation != "" && b.Name == reservation:
			own, bound = own+left, true
		default:
			free -= left
		}
	}
	if bound {
		free = min(free, own)
	}
	return free
}

// cpusThrough returns the minimum of cpusIn in the interval.
func (e *engine) cpusThrough(n *nodeState, reservation string, in interval) int32 {
	if len(n.reservedCores) == 0 {
		return e.minimum(n.first, in.from, in.to)
	}
	least := e.cpusIn(n, reservation, in.from)
	for s := in.from + 1; s < in.to; s++ {
		least = min(least, e.cpusIn(n, reservation, s))
	}
	return least
}

// forbidden returns the CPUs of the node that a job of the reservation must not have
// between now and end.
func (e *engine) forbidden(n *nodeState, reservation string, end int64) (set CPUSet) {
	own, bound := CPUSet{}, false
	for _, k := range n.reservedCores {
		switch b := &e.s.AdvanceReservations[k.index]; {
		case b.Start >= end || b.End <= e.now:
		case reservation != "" && b.Name == reservation:
			if b.Start <= e.now {
				own.Union(k.set)
				bound = true
			}
		default:
			set.Union(k.set)
		}
	}
	if bound {
		all := CPUSet{}
		all.AddRange(0, n.CPUs)
		all.Subtract(own)
		set.Union(all)
	}
	return set
}
