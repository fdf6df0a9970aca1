package backfill

import (
	"cmp"
	"slices"
	"sort"
)

// A sparse profile has boundaries only where they are needed. A job that ends within a
// slot is released when a boundary is added there; a job that begins always adds a
// boundary. The amounts of a slot are thus those at its beginning, which are the lowest in
// it. This is exact, and the profile stays small however many jobs run, because starts now
// and the reservations of EASY need the amounts at few times.

// sparseRoom is the number of boundaries for which memory is allocated initially.
const sparseRoom = 7

// maxSparse is the maximum number of reservations for each partition
// (Policy.Reservations) that is planned on a sparse profile.
const maxSparse = 32

// releaseList is the list of all claims, sorted by their ends.
type releaseList []release

// release is a claim with its sort key, so that a search does not read the
// claims.
type release struct {
	end, id int64 // of the claim
	claim   *claim
}

// after returns the index of the first release after end.
func (l releaseList) after(end int64) int {
	return sort.Search(len(l), func(i int) bool { return l[i].end > end })
}

func byEnd(a, b release) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.id, b.id)) }

// indexOf returns the index of the first release that is not before the given end and id.
func (l releaseList) indexOf(end, id int64) int {
	return sort.Search(len(l), func(i int) bool { return l[i].end > end || l[i].end == end && l[i].id >= id })
}

func (l *releaseList) add(c *claim) {
	*l = slices.Insert(*l, l.indexOf(c.end, c.id), release{c.end, c.id, c})
}

// remove removes c and reports whether it was in the list.
func (l *releaseList) remove(c *claim) bool {
	for i := l.indexOf(c.end, c.id); i < len(*l); i++ {
		if (*l)[i].claim.same(c) {
			*l = slices.Delete(*l, i, i+1)
			return true
		}
	}
	return false
}

// same reports whether c and o are the same claim. Copies of a job differ in
// their nodes.
func (c *claim) same(o *claim) bool {
	return c.id == o.id && len(c.nodes) == len(o.nodes) && (len(c.nodes) == 0 || &c.nodes[0] == &o.nodes[0])
}

// splitAtEnd returns the first slot after the claim. If the engine has a list of
// releases, it also adds the claim to it, or with sign -1 removes it.
func (e *engine) splitAtEnd(c *claim, sign int32) int {
	if e.sparse || e.cyclic && c.start <= e.now {
		e.updateReleases(c, sign)
	}
	if e.sparse {
		return e.slotFrom(c.end)
	}
	return e.resourceProfile.splitAt(c.end)
}

// updateReleases adds the claim to the releases, or with sign -1 removes it.
func (e *engine) updateReleases(c *claim, sign int32) {
	if sign < 0 {
		e.releases.remove(c)
		return
	}
	kept := e.keep(c)
	if e.loading {
		e.releases = append(e.releases, release{c.end, c.id, kept})
	} else {
		e.releases.add(kept)
	}
	if c.of == nil {
		e.booked = append(e.booked, kept)
	}
}

// keep returns a copy of c. It reuses the memory of a dropped claim if there is one.
func (e *engine) keep(c *claim) *claim {
	var kept *claim
	if n := len(e.dropped) - 1; n >= 0 {
		kept, e.dropped = e.dropped[n], e.dropped[:n]
	} else {
		kept = new(claim)
	}
	*kept = *c
	return kept
}

// drop makes the memory of claims that are no longer in the releases available to keep.
func (e *engine) drop(claims ...*claim) {
	for _, c := range claims {
		*c = claim{}
	}
	e.dropped = append(e.dropped, claims...)
}

// splitAt returns the first slot that begins at or after t. It first adds a boundary at t
// if possible.
func (e *engine) splitAt(t int64) int {
	if !e.sparse {
		return e.resourceProfile.splitAt(t)
	}
	i := e.slotFrom(t)
	if t == Forever || i == 0 || i < len(e.at) && e.at[i] == t {
		return i
	}
	e.insert(i, t)
	for _, c := range e.classes {
		c.insert(i)
	}
	for _, h := range e.releasesBetween(e.at[i-1], t) {
		e.apply(h.claim, i, i+1, -1)
	}
	return i
}

// releasesBetween returns the claims that end after from and at or before until.
func (e *engine) releasesBetween(from, until int64) []release {
	return e.releases[e.releases.after(from):e.releases.after(until)]
}

// removeBoundary removes the boundary before slot i.
func (e *engine) removeBoundary(i int) {
	n := len(e.at)
	for r := range e.rows {
		row := e.v[r*e.stride : r*e.stride+n]
		for k := i + 1; k < n; k++ { // see resourceProfile.insert
			row[k-1] = row[k]
		}
	}
	e.at = slices.Delete(e.at, i, i+1)
	for _, c := range e.classes {
		c.drop(i)
	}
}

// recomputeOwners sets the owners of the nodes in the slots from..to-1.
func (e *engine) recomputeOwners(from, to int) {
	for s := from; s < to; s++ {
		for i := range e.nodes {
			e.row(e.ownerRow(&e.nodes[i]))[s] = 0
		}
		for _, h := range e.releases {
			c := h.claim
			if c.start > e.at[s] || c.end <= e.at[s] {
				continue
			}
			for i := range c.nodes {
				e.updateOwner(&e.nodes[c.nodes[i].Node], s, s+1, c, 1)
			}
		}
	}
}

// nextChange returns the first time after t at which resources become free, or an advance
// reservation begins or ends.
func (e *engine) nextChange(t int64) int64 {
	at := Forever
	if i := e.releases.after(t); i < len(e.releases) {
		at = e.releases[i].end
	}
	if i := e.slotFrom(t + 1); i < len(e.at) {
		at = min(at, e.at[i])
	}
	return at
}

// fineTries is the number of times at which resources become free that are tried for a job
// before the search continues with increasingly wide slots.
const fineTries = 64

// earliestSparse is earliest on a sparse profile.
func (e *engine) earliestSparse(s *requestShape, j *Job, from, until int64) (at int64, nodes []Assignment, ok bool) {
	later := tries{}
	slot, made := 0, false // slot of the last try, and whether its boundary was added only for it
	defer func() { e.dropBoundary(slot, made && !ok) }()
	for t := e.earliestPossible(s, j, from); t != Forever && t <= until; {
		if opens := e.reservationOpens(s.Reservation, t); opens > t {
			t = opens
			continue
		}
		slot, made = e.moveBoundary(slot, made, t)
		in := e.interval(s, slot, t, j.Duration)
		if j.Deadline > 0 && in.end > j.Deadline {
			return 0, nil, false
		}
		last := e.lastObstacle(s, j, in)
		if last < 0 {
			if nodes = e.findNodes(s, j, in); nodes != nil {
				return t, nodes, true
			}
			last = slot
		}
		t = later.after(e, max(t, e.at[last]))
	}
	return 0, nil, false
}

// moveBoundary adds a boundary at t for a search. It moves the search's last boundary, at
// the beginning of slot, if that was added for the search.
func (e *engine) moveBoundary(slot int, made bool, t int64) (int, bool) {
	if to := e.slotAt(t); made && to >= slot && e.at[to] < t {
		from := e.at[to]
		e.shiftBoundary(slot, to)
		e.at[to] = t
		for _, h := range e.releasesBetween(from, t) {
			e.apply(h.claim, to, to+1, -1)
		}
		return to, true
	}
	e.dropBoundary(slot, made)
	had := len(e.at)
	slot = e.splitAt(t)
	return slot, len(e.at) > had
}

// shiftBoundary replaces slot i by a copy of the later slot to, after that one. It does the same as
// removing one boundary and adding another, in half the time.
func (e *engine) shiftBoundary(i, to int) {
	if i == to {
		return
	}
	for r := range e.rows {
		row := e.v[r*e.stride : r*e.stride+len(e.at)]
		for k := i; k < to; k++ {
			row[k] = row[k+1]
		}
	}
	copy(e.at[i:to], e.at[i+1:to+1])
	for _, c := range e.classes {
		c.shift(i, to)
	}
}

func (e *engine) dropBoundary(slot int, made bool) {
	if made {
		e.removeBoundary(slot)
	}
}

// tries counts the times that a search has tried.
type tries struct {
	n    int
	wide []int64
}

// after returns the next time to try after t.
func (l *tries) after(e *engine, t int64) int64 {
	next := e.nextChange(t)
	if l.n++; l.n <= fineTries || next == Forever {
		return next
	}
	e.approximate = true
	if l.wide == nil {
		l.wide = geometricSlots(e.now)
	}
	if i, _ := slices.BinarySearch(l.wide, next); i < len(l.wide) {
		return l.wide[i]
	}
	return next
}

// earliestPossible returns the earliest time, not before from, at which the job's minimum
// is free, ignoring bookings that begin after from.
func (e *engine) earliestPossible(s *requestShape, j *Job, from int64) int64 {
	if from <= e.now {
		return from
	}
	slot := e.slotAt(from)
	probe := e.probe(from, slot)
	count := e.countOffering(s.class, slot)
	release := func(c *claim) {
		probe.load(c, e, slot)
		count -= probe.counts(s.class, c)
		probe.apply(c, 0, 1, -1)
		count += probe.counts(s.class, c)
	}
	for _, h := range e.releasesBetween(e.at[slot], from) {
		release(h.claim)
	}
	enough := func() bool {
		return count >= s.leastNodes && probe.v[0] >= s.leastTotalCPUs &&
			probe.licensesFree(j, s.Reservation, interval{from: 0, to: 1})
	}
	if enough() {
		return from
	}
	list := e.releasesBetween(from, Forever-1)
	for i, h := range list {
		if h.claim.start <= from {
			release(h.claim)
		}
		if t := h.end; (i+1 == len(list) || list[i+1].end > t) && enough() {
			return t
		}
	}
	// Only the end of a booking that begins after from can help.
	return e.nextChange(from)
}

// probe is an engine with a single slot, for claims that are released one after the other. It
// has no owners and no reserved licenses, and the amounts of a node only once load was called
// for a claim on it.
type probe struct {
	*engine
	loaded []int // by node: the use of the probe in which its amounts were loaded
	use    int
}

// probe returns a probe whose slot begins at t and has the amounts of slot. It is reused by
// the next call.
func (e *engine) probe(t int64, slot int) *probe {
	if e.prober == nil {
		e.prober = e.newProbe()
	}
	p := e.prober
	p.use++
	p.now, p.at[0] = e.now, t
	for r := range 1 + len(e.s.Licenses) {
		p.v[r] = e.v[r*e.stride+slot]
	}
	return p
}

// newProbe returns a probe, which shares the nodes of e.
func (e *engine) newProbe() *probe {
	p := *e
	p.classes, p.memberships = nil, memberships{}
	p.reservedLicenses, p.sparse, p.amountsOnly = nil, false, true
	p.resourceProfile = resourceProfile{at: []int64{0}, rows: e.rows, stride: 1, v: make([]int32, e.rows)}
	return &probe{engine: &p, loaded: make([]int, len(e.nodes))}
}

// load copies the amounts of the claim's nodes in the slot of e, unless they were loaded.
func (p *probe) load(c *claim, e *engine, slot int) {
	for i := range c.nodes {
		node := c.nodes[i].Node
		if p.loaded[node] == p.use {
			continue
		}
		p.loaded[node] = p.use
		n := &e.nodes[node]
		for r := n.first; r < n.first+e.rowsOf(n); r++ {
			p.v[r] = e.v[r*e.stride+slot]
		}
		for _, k := range n.reservedCores {
			p.v[k.row] = e.v[k.row*e.stride+slot]
		}
	}
}

// countOffering returns how many nodes satisfy the demand of the class in the slot,
// including nodes in advance reservations.
func (e *engine) countOffering(c *demandClass, slot int) (n int) {
	if len(e.s.AdvanceReservations) == 0 {
		return int(c.count[slot])
	}
	for _, i := range c.member.Members() {
		if e.offers(c, i, slot) {
			n++
		}
	}
	return n
}

// counts returns how many of the claim's nodes satisfy the demand of the class.
func (e *engine) counts(c *demandClass, held *claim) (n int) {
	for i := range held.nodes {
		if node := held.nodes[i].Node; c.member.Has(node) && e.offers(c, node, 0) {
			n++
		}
	}
	return n
}
