package backfill

import "slices"

// A sparse engine is used for one pass after the other: between them it has
// what runs, in one slot.

// restart begins a pass at now.
func (p *planner) restart(now int64) {
	p.engine.restart(now)
	clear(p.given)
	clear(p.groups)
	p.stop, p.later = false, p.later[:0]
}

func (e *engine) restart(now int64) {
	e.now, e.first = now, 0
	e.released()
	e.at = append(e.at[:0], now)
	for _, c := range e.classes {
		c.only()
	}
	e.prolong()
	e.limits = e.limits[:0]
	for i := range e.s.Limits {
		e.limits = append(e.limits, e.s.Limits[i].Left)
	}
	if len(e.s.AdvanceReservations) == 0 {
		return
	}
	e.judged++
	for _, t := range tidy(blockTimes(e.s), now) {
		e.cut(t)
	}
	e.rekeep()
	for _, c := range e.classes {
		for i := range e.nodes {
			if c.member.Has(i) && !c.simpleOn(&e.nodes[i]) {
				e.update(c, i, 0, len(e.at), taken{})
			}
		}
	}
}

// rekeep finds out anew what licences reservations keep.
func (e *engine) rekeep() {
	if len(e.kept) == 0 && !e.anyCored {
		return
	}
	for _, k := range e.kept {
		clear(e.row(k.row))
	}
	e.keep()
	for _, h := range e.ends {
		c := h.claim
		for _, l := range c.licenses {
			e.drawKept(c.reservation, l, 0, e.since(c.end), 1)
		}
		for i := range c.nodes {
			if a := &c.nodes[i]; e.anyCored {
				e.drawCores(&e.nodes[a.Node], c.reservation, int32(a.CPUCount), 0, e.since(c.end))
			}
		}
	}
}

// prolong lets jobs that should have ended stay a little longer.
func (e *engine) prolong() {
	over := e.overtime()
	n := 0
	for ; n < len(e.ends) && e.ends[n].end < over; n++ {
		e.ends[n].end, e.ends[n].claim.end = over, over
	}
	if n > 0 {
		slices.SortFunc(e.ends[:e.ends.after(over)], byEnd)
	}
}

// undo takes back all that was given in the pass.
func (e *engine) undo() {
	given := slices.DeleteFunc(e.given, func(c *claim) bool { return !e.ends.remove(c) }) // it was taken back
	for _, c := range given {
		if c.start > e.now {
			continue
		}
		e.unpin(c.nodes, c.share > 1)
		e.apply(c, 0, 1, -1)
	}
	clear(given)
	e.given = given[:0]
}

// end takes a running job out.
func (e *engine) end(r *Running) {
	i := slices.IndexFunc(e.ends, func(h hold) bool { return h.id == r.ID && h.claim.of == r })
	c := e.ends[i].claim
	e.ends = slices.Delete(e.ends, i, i+1)
	e.apply(c, 0, 1, -1)
	for _, h := range r.Allocation {
		e.nodes[h.Node].have(h.CPUs, r.sharers() > 1, -1)
	}
}

// available brings the engine up to date after Unavailable of the node changed.
func (e *engine) available(node int) {
	e.at, e.first = e.at[:1], 0 // what the last pass had beyond is of no use any more
	n := &e.nodes[node]
	free := e.row(n.first)[0]
	if n.Unavailable {
		free = -free
	}
	e.add(0, 0, 1, free)
	e.judged++
	w, bit := node/64, uint64(1)<<(node%64)
	for _, c := range e.classes {
		c.only()
		if c.one[w]&bit != 0 {
			c.one[w] &^= bit
			c.count[0]--
		}
		c.member.words[w] &^= bit
		if !n.Unavailable && (c.eligible == nil || c.eligible.Has(node)) && n.hasGeometry(&c.need) {
			c.member.words[w] |= bit
			e.update(c, node, 0, 1, taken{})
		}
	}
}
