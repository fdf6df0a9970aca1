package backfill

import "slices"

// A Queue uses the same engine in all cycles. Between cycles a sparse engine has one
// slot, with the running jobs. For exact engines see exact_cycle.go.

// startCycle prepares the engine for a cycle at now.
func (p *planner) startCycle(now int64) {
	p.engine.startCycle(now)
	clear(p.reserved)
	clear(p.decidedGroups)
	p.stopped, p.later = false, p.later[:0]
}

func (e *engine) startCycle(now int64) {
	e.now, e.first, e.approximate = now, 0, false
	e.bookings.reset()
	e.invalidateBounds()
	e.limitsLeft = e.limitsLeft[:0]
	for i := range e.s.Limits {
		e.limitsLeft = append(e.limitsLeft, e.s.Limits[i].Left)
	}
	if e.cyclic {
		e.startExactCycle()
		return
	}
	e.at = append(e.at[:0], now)
	for _, c := range e.classes {
		c.keepFirstSlot()
	}
	e.extendOverdue()
	if len(e.s.AdvanceReservations) == 0 {
		return
	}
	e.verdictEpoch++
	for _, t := range sortedTimes(reservationTimes(e.s), now) {
		e.splitAt(t)
	}
	e.recountReserved()
	for _, c := range e.classes {
		for i := range e.nodes {
			if c.member.Has(i) && !c.simpleOn(&e.nodes[i]) {
				e.updateClass(c, i, 0, len(e.at), delta{})
			}
		}
	}
}

// recountReserved recomputes the licenses and cores that advance reservations
// keep free.
func (e *engine) recountReserved() {
	if len(e.reservedLicenses) == 0 && !e.hasReservedCores {
		return
	}
	for _, k := range e.reservedLicenses {
		clear(e.row(k.row))
	}
	e.fillReserved()
	for _, h := range e.releases {
		c := h.claim
		for _, l := range c.licenses {
			e.bookReservedLicense(c.reservation, l, 0, e.slotFrom(c.end), 1)
		}
		for i := range c.nodes {
			if a := &c.nodes[i]; e.hasReservedCores {
				e.bookReservedCores(&e.nodes[a.Node], c.reservation, int32(a.CPUCount), 0, e.slotFrom(c.end))
			}
		}
	}
}

// extendOverdue moves the expected end of jobs that should have ended to overdueEnd.
func (e *engine) extendOverdue() {
	over := e.overdueEnd()
	n := 0
	for ; n < len(e.releases) && e.releases[n].end < over; n++ {
		if c := e.releases[n].claim; e.cyclic {
			e.apply(c, e.splitAt(max(c.end, e.now)), e.splitAt(over), 1)
		}
		e.releases[n].end, e.releases[n].claim.end = over, over
	}
	if n > 0 {
		slices.SortFunc(e.releases[:e.releases.after(over)], byEnd)
	}
}

// undoCycle removes all claims that were booked in the cycle.
func (e *engine) undoCycle() {
	booked := slices.DeleteFunc(e.booked, func(c *claim) bool { return !e.releases.remove(c) }) // already removed
	for _, c := range booked {
		if c.start > e.now {
			continue
		}
		e.releaseCPUs(c.nodes, c.share > 1)
		if !e.cyclic {
			e.apply(c, 0, 1, -1)
		}
	}
	if e.cyclic {
		e.resourceProfile, e.saved = e.saved, e.resourceProfile
	}
	e.drop(booked...)
	clear(booked)
	e.booked = booked[:0]
}

// removeRunning removes a running job.
func (e *engine) removeRunning(r *Running) {
	i := slices.IndexFunc(e.releases, func(h release) bool { return h.id == r.ID && h.claim.of == r })
	c := e.releases[i].claim
	e.releases = slices.Delete(e.releases, i, i+1)
	to := 1
	if e.cyclic {
		to, e.unmerged = e.splitAt(c.end), true
	}
	e.apply(c, 0, to, -1)
	e.drop(c)
	for _, h := range r.Allocation {
		e.nodes[h.Node].updateCPUs(h.CPUs, r.sharers() > 1, -1)
	}
}

// updateAvailability updates the engine after Unavailable of the node changed.
func (e *engine) updateAvailability(node int) {
	e.at, e.first = e.at[:1], 0 // the other slots of the last cycle are not used again
	n := &e.nodes[node]
	n.unavailable = n.Unavailable
	free := e.row(n.first)[0]
	if n.Unavailable {
		free = -free
	}
	e.add(0, 0, 1, free)
	e.verdictEpoch++
	w, bit := node/64, uint64(1)<<(node%64)
	for number, c := range e.classes {
		c.keepFirstSlot()
		c.capacity = unknownCapacity
		if c.perSlot[w]&bit != 0 {
			c.perSlot[w] &^= bit
			c.count[0]--
		}
		c.member.words[w] &^= bit
		may := n.maySatisfy(c, node)
		e.memberships.set(node, number, may)
		if may {
			c.member.words[w] |= bit
			e.updateClass(c, node, 0, 1, delta{})
		}
	}
}
