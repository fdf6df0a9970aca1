package backfill

import (
	"math/bits"
	"slices"
)

// nodeDemand is the minimum that a job needs on each of its nodes.
type nodeDemand struct {
	eligible       *NodeSet
	reservation    string
	cpus           int32
	memory         int32 // MiB; allMemory
	exclusive      bool
	sockets, cores int16
	threads        int16
	gres           string // key of the list
}

// allMemory as a demand is all memory of the node.
const allMemory int32 = -1

// demandClass holds, for each slot, a bitmap of the nodes that satisfy a demand. Further
// bitmaps, each for 8 or 64 slots, speed up the search for nodes that satisfy it in many
// consecutive slots.
type demandClass struct {
	nodeDemand
	gresList    []GRES
	words       int      // of one bitmap
	member      NodeSet  // nodes that may satisfy the demand at some time
	perSlot     []uint64 // bitmaps, one for each slot
	per8Slots   []uint64 // intersections of 8 bitmaps of perSlot
	per64Slots  []uint64 // intersections of 64 bitmaps of perSlot
	count       []int32  // number of nodes in each slot
	noSummaries bool     // the slots are few and change: only perSlot is kept
	untilCounts []int32  // of servingUntil; empty: not computed
	untilTasks  runnable // see engine.tasksUntil
	plain       bool     // on a plain node, CPUs and memory alone decide whether it satisfies the demand
	capacity    int64    // see engine.capacityNow; unknownCapacity: not computed
}

// maxClasses returns the maximum number of classes, which limits memory and time; it is
// higher if there are few slots. Jobs whose demand has no class share one with a smaller
// demand; see engine.classFor.
func (e *engine) maxClasses() int {
	if e.sparse {
		return 256
	}
	return 32
}

// newClass returns a class that is computed from the current profile.
func (e *engine) newClass(nd nodeDemand, gres []GRES) *demandClass {
	w, slots := (len(e.nodes)+63)/64, len(e.at)
	c := &demandClass{nodeDemand: nd, gresList: gres, words: w, noSummaries: e.sparse, count: make([]int32, slots),
		perSlot: make([]uint64, w*slots), capacity: unknownCapacity}
	c.plain = len(gres) == 0 && nd.reservation == "" && nd.memory >= 0
	if !c.noSummaries {
		c.per8Slots, c.per64Slots = make([]uint64, w*((slots+7)/8)), make([]uint64, w*((slots+63)/64))
	}
	number := e.memberships.addClass(len(e.nodes))
	c.member.words = make([]uint64, w)
	inWord := make([]uint64, slots) // the nodes of one word of the bitmaps, in each slot
	for i := range e.nodes {
		if e.nodes[i].maySatisfy(c, i) {
			c.member.words[i/64] |= 1 << (i % 64)
			e.memberships.set(i, number, true)
			e.addToWord(c, i, inWord)
		}
		if i%64 == 63 || i == len(e.nodes)-1 {
			c.addWord(i/64, inWord)
		}
	}
	if c.noSummaries {
		return c
	}
	for b := 0; b*8 < slots; b++ {
		c.and(c.per8Slots, b, c.perSlot, b*8, min(slots, b*8+8))
	}
	for b := 0; b*64 < slots; b++ {
		c.and(c.per64Slots, b, c.per8Slots, b*8, min((slots+7)/8, b*8+8))
	}
	return c
}

// maySatisfy reports whether n, node i, may satisfy the demand of c at some time.
func (n *nodeState) maySatisfy(c *demandClass, i int) bool {
	if n.unavailable || c.eligible != nil && !c.eligible.Has(i) || !n.hasGeometry(&c.nodeDemand) {
		return false
	}
	for _, g := range c.gresList {
		if countGRES(n.GRES, g) < g.Count {
			return false
		}
	}
	return true
}

func (n *Node) hasGeometry(nd *nodeDemand) bool {
	return n.sockets() >= int(nd.sockets) && n.threads() >= int(nd.threads) &&
		(nd.cores == 0 || n.CPUs/n.threads()/n.sockets() >= int(nd.cores))
}

// and sets bitmap b of to to the intersection of the bitmaps from..until-1 of of.
func (c *demandClass) and(to []uint64, b int, of []uint64, from, until int) {
	for w := range c.words {
		all := ^uint64(0)
		for i := from; i < until; i++ {
			all &= of[i*c.words+w]
		}
		to[b*c.words+w] = all
	}
}

// addToWord sets the bit of node i in every slot in which it satisfies the demand.
func (e *engine) addToWord(c *demandClass, i int, inWord []uint64) {
	n, at := &e.nodes[i], i%64
	free, memory := e.row(n.first), e.row(n.first+1)
	if !c.plain || !n.plain {
		for s := e.first; s < len(inWord); s++ {
			if e.serves(c, i, s) {
				inWord[s] |= 1 << at
			}
		}
		return
	}
	need := int64(c.cpusOn(n))
	switch {
	case n.memoryUsed:
		for s := e.first; s < len(inWord); s++ {
			inWord[s] |= atLeast(free[s], need) & atLeast(memory[s], int64(c.memory)) << at
		}
	case memory[e.first] >= c.memory: // as in all other slots
		for s := e.first; s < len(inWord); s++ {
			inWord[s] |= atLeast(free[s], need) << at
		}
	}
}

// atLeast returns 1 if v is at least need, and else 0. It has no branch, which would often be
// mispredicted.
func atLeast(v int32, need int64) uint64 { return uint64(need-1-int64(v)) >> 63 }

// addWord adds word w of the bitmaps and clears inWord.
func (c *demandClass) addWord(w int, inWord []uint64) {
	for s, x := range inWord {
		c.perSlot[s*c.words+w] = x
		c.count[s] += int32(bits.OnesCount64(x))
	}
	clear(inWord)
}

// simpleOn reports whether CPUs and memory alone decide whether n satisfies the demand.
func (c *demandClass) simpleOn(n *nodeState) bool {
	return len(c.gresList) == 0 && c.reservation == "" && n.plain
}

// cpusOn returns how many CPUs of n the demand needs.
func (nd *nodeDemand) cpusOn(n *nodeState) int32 {
	cpus := nd.cpus
	if threads := n.threadsPerCore; threads > 1 {
		cpus = (cpus + threads - 1) / threads * threads
	}
	if nd.exclusive {
		cpus = max(cpus, n.cpus)
	}
	return cpus
}

// serves reports whether node i satisfies the demand of c in slot s.
func (e *engine) serves(c *demandClass, i, s int) bool {
	return e.offers(c, i, s) &&
		(len(e.nodes[i].reservationIndexes) == 0 && c.reservation == "" ||
			!e.blocked(i, c.reservation, e.at[s], e.slotEnd(s)))
}

// offers reports whether the resources that c demands are free on node i in slot s. It
// ignores advance reservations of whole nodes.
func (e *engine) offers(c *demandClass, i, s int) bool {
	n := &e.nodes[i]
	v := e.v[n.first*e.stride+s:]
	cpus := v[0]
	if len(n.reservedCores) > 0 {
		cpus = e.cpusIn(n, c.reservation, s)
	}
	if cpus < c.cpusOn(n) {
		return false
	}
	switch m := v[e.stride]; {
	case c.memory == allMemory && m < n.memory, c.memory > m:
		return false
	}
	for _, g := range c.gresList {
		if e.gresIn(n, g, s) < g.Count {
			return false
		}
	}
	return true
}

func (e *engine) slotEnd(s int) int64 {
	if s+1 < len(e.at) {
		return e.at[s+1]
	}
	return Forever
}

// gresIn returns how many units of g are free in slot s.
func (e *engine) gresIn(n *nodeState, g GRES, s int) int64 {
	sum := int64(0)
	for k := range n.GRES {
		if h := &n.GRES[k]; h.Name == g.Name && (g.Type == "" || g.Type == h.Type) {
			sum += int64(max(0, e.v[(n.first+2+k)*e.stride+s]))
		}
	}
	return sum
}

// blocked reports whether advance reservations keep jobs of the given reservation ("":
// jobs without one) from node i at some time within [from, until).
func (e *engine) blocked(i int, reservation string, from, until int64) bool {
	inside := reservation == ""
	until = min(until, e.reservationEnd(reservation, max(from, e.now)))
	for _, b := range e.nodes[i].reservationIndexes {
		k := &e.s.AdvanceReservations[b]
		switch {
		case reservation != "" && k.Name == reservation:
			inside = inside || k.Flex || k.active(max(from, e.now))
		case k.Start < until && k.End > max(from, e.now):
			return true
		}
	}
	for _, c := range e.nodes[i].reservedCores {
		k := &e.s.AdvanceReservations[c.index]
		inside = inside || k.Name == reservation && (k.Flex || k.active(max(from, e.now)))
	}
	return !inside && !e.flexible(reservation) && !e.anywhere(reservation, max(from, e.now))
}

// delta is the decrease of a node's free resources. known is false if it differs between
// slots.
type delta struct {
	cpus, memory int32
	known        bool
}

// updateClasses updates the classes after the free resources of node i decreased by t in
// the slots from..to-1.
func (e *engine) updateClasses(i, from, to int, t delta) {
	from = max(from, e.first)
	n := &e.nodes[i]
	if from >= to {
		return
	}
	v := e.v[n.first*e.stride+from:]
	cpus, memory := v[0], v[e.stride]
	plain := t.known && n.plain
	for number := range e.memberships.of(i) {
		c := e.classes[number]
		switch {
		case !plain || !c.plain:
			e.updateClass(c, i, from, to, t)
			continue
		case from == 0 && c.capacity != unknownCapacity:
			c.updateCapacity(n, cpus, memory, t)
		}
		if to == from+1 {
			c.updateSlot(n, i, from, cpus, memory, t)
		} else {
			e.updateClass(c, i, from, to, t)
		}
	}
}

// updateClassesForCPUs is updateClasses for a plain node, of which only the number of free CPUs
// decreased.
func (e *engine) updateClassesForCPUs(i, from, to int, cpus int32) {
	n := &e.nodes[i]
	free := e.v[n.first*e.stride+from : n.first*e.stride+to]
	for w, x := range e.memberships.bits[i*e.memberships.words : (i+1)*e.memberships.words] {
		for ; x != 0; x &= x - 1 {
			c := e.classes[w*64+bits.TrailingZeros64(x)]
			if !c.plain {
				e.updateClass(c, i, from, to, delta{cpus, 0, true})
				continue
			}
			if from == 0 && c.capacity != unknownCapacity {
				c.updateCapacity(n, free[0], e.v[(n.first+1)*e.stride], delta{cpus, 0, true})
			}
			c.removeBelow(n, i, from, free, cpus)
		}
	}
}

// removeBelow removes the plain node n, number i, from the class in the slots in which its
// free CPUs, which decreased by cpus, are now too few. The first of them is slot from.
func (c *demandClass) removeBelow(n *nodeState, i, from int, free []int32, cpus int32) {
	need, bit := c.cpusOn(n), uint64(1)<<(i%64)
	for k, now := range free {
		if uint32(need-1-now) >= uint32(cpus) { // unless now < need and now+cpus >= need
			continue
		}
		s := from + k
		if p := &c.perSlot[s*c.words+i/64]; *p&bit != 0 {
			*p &^= bit
			c.count[s]--
			c.untilCounts = c.untilCounts[:0]
			c.clearSummaries(i/64, bit, s)
		}
	}
}

// updateSlot updates the class after the free CPUs and memory of the plain node n, number i,
// became cpus and memory in slot s.
func (c *demandClass) updateSlot(n *nodeState, i, s int, cpus, memory int32, t delta) {
	need := c.cpusOn(n)
	is, was := cpus >= need && memory >= c.memory, cpus+t.cpus >= need && memory+t.memory >= c.memory
	if is == was {
		return
	}
	p, bit := &c.perSlot[s*c.words+i/64], uint64(1)<<(i%64)
	if had := *p&bit != 0; had == is {
		return
	}
	*p ^= bit
	c.untilCounts = c.untilCounts[:0]
	switch {
	case is:
		c.count[s]++
		if !c.noSummaries {
			c.updateSummaries(i/64, bit, s, s+1)
		}
	default:
		c.count[s]--
		c.clearSummaries(i/64, bit, s)
	}
}

func (e *engine) updateClass(c *demandClass, i, from, to int, t delta) {
	w, bit := i/64, uint64(1)<<(i%64)
	n := &e.nodes[i]
	simple := c.simpleOn(n) && c.memory >= 0
	cpus, cpu, mem := c.cpusOn(n), e.row(n.first), e.row(n.first+1)
	set := false
	for s := from; s < to; s++ {
		var ok bool
		switch {
		case !simple:
			ok = e.serves(c, i, s)
		case t.known && t.memory == 0 && (cpu[s] >= cpus) == (cpu[s]+t.cpus >= cpus):
			continue // without reading memory and bitmap, which are in other cache lines
		default:
			ok = cpu[s] >= cpus && mem[s] >= c.memory
			if t.known && ok == (cpu[s]+t.cpus >= cpus && mem[s]+t.memory >= c.memory) {
				continue
			}
		}
		p := &c.perSlot[s*c.words+w]
		if had := *p&bit != 0; had == ok {
			continue
		}
		*p ^= bit
		c.untilCounts = c.untilCounts[:0]
		if ok {
			c.count[s]++
			set = true
		} else {
			c.count[s]--
			c.clearSummaries(w, bit, s)
		}
	}
	if set && !c.noSummaries {
		c.updateSummaries(w, bit, from, to)
	}
}

// clearSummaries removes the bit, which slot s lacks, from the bitmaps that summarize the slot.
func (c *demandClass) clearSummaries(w int, bit uint64, s int) {
	if !c.noSummaries {
		c.per8Slots[s/8*c.words+w] &^= bit
		c.per64Slots[s/64*c.words+w] &^= bit
	}
}

// updateSummaries updates the bit in the bitmaps that summarize the slots
// from..to-1.
func (c *demandClass) updateSummaries(w int, bit uint64, from, to int) {
	slots := len(c.count)
	for b := from / 8; b*8 < to; b++ {
		all := bit
		for s := b * 8; s < min(slots, b*8+8); s++ {
			all &= c.perSlot[s*c.words+w]
		}
		c.per8Slots[b*c.words+w] = c.per8Slots[b*c.words+w]&^bit | all
	}
	for b := from / 64; b*64 < to; b++ {
		all := bit
		for k := b * 8; k < min((slots+7)/8, b*8+8); k++ {
			all &= c.per8Slots[k*c.words+w]
		}
		c.per64Slots[b*c.words+w] = c.per64Slots[b*c.words+w]&^bit | all
	}
}

// servingThroughout writes to out the nodes that satisfy the demand in all slots
// from..to-1, and returns their number. It stops when enough are found and does not set
// the remaining words of out. The interval must not be empty.
func (c *demandClass) servingThroughout(from, to int, out []uint64, enough int) (n int) {
	inFirst := c.perSlot[from*c.words : (from+1)*c.words]
	k := skipZeros(inFirst)
	clear(out[:k])
	for ; k < len(inFirst); k++ {
		x := inFirst[k]
		if x != 0 {
			x = c.andThrough(k, from+1, to, x)
			n += bits.OnesCount64(x)
		}
		out[k] = x
		if n >= enough {
			return n
		}
	}
	return n
}

// skipZeros returns a number of words at the beginning that are zero: most of those before the
// first node that is free, which for later jobs of a long queue is far from the beginning.
func skipZeros(words []uint64) int {
	k := 0
	for k+8 <= len(words) {
		if w := words[k : k+8]; w[0]|w[1]|w[2]|w[3]|w[4]|w[5]|w[6]|w[7] != 0 {
			break
		}
		k += 8
	}
	return k
}

// andThrough returns the nodes of x, word k of a bitmap, that satisfy the demand in all
// slots from..to-1. In a busy cluster none are left after a few slots.
func (c *demandClass) andThrough(k, from, to int, x uint64) uint64 {
	for i := from; x != 0 && i < to; {
		switch {
		case c.noSummaries || i%8 != 0 || i+8 > to:
			x &= c.perSlot[i*c.words+k]
			i++
		case i%64 == 0 && i+64 <= to:
			x &= c.per64Slots[i/64*c.words+k]
			i += 64
		default:
			x &= c.per8Slots[i/8*c.words+k]
			i += 8
		}
	}
	return x
}

// servingUntil returns, for each slot from first on, how many nodes satisfy the demand
// from first up to and including it.
func (c *demandClass) servingUntil(first int) []int32 {
	if len(c.untilCounts) > 0 {
		return c.untilCounts
	}
	c.untilCounts = slices.Grow(c.untilCounts, len(c.count)-first)[:len(c.count)-first]
	clear(c.untilCounts)
	for k, x := range c.perSlot[first*c.words : (first+1)*c.words] {
		for i := 0; x != 0 && i < len(c.untilCounts); i++ {
			x &= c.perSlot[(first+i)*c.words+k]
			c.untilCounts[i] += int32(bits.OnesCount64(x))
		}
	}
	return c.untilCounts
}

// insert adds slot i as a copy of the one before it.
func (c *demandClass) insert(i int) {
	c.untilCounts, c.untilTasks.epoch = c.untilCounts[:0], 0
	c.count = slices.Insert(c.count, i, c.count[i-1])
	c.perSlot = slices.Insert(c.perSlot, i*c.words, c.perSlot[(i-1)*c.words:i*c.words]...)
}

// drop removes slot i.
func (c *demandClass) drop(i int) {
	c.untilCounts, c.untilTasks.epoch = c.untilCounts[:0], 0
	c.count = slices.Delete(c.count, i, i+1)
	c.perSlot = slices.Delete(c.perSlot, i*c.words, (i+1)*c.words)
}

// shift replaces slot i by a copy of the later slot to, after that one.
func (c *demandClass) shift(i, to int) {
	c.untilCounts, c.untilTasks.epoch = c.untilCounts[:0], 0
	copy(c.count[i:to], c.count[i+1:to+1])
	copy(c.perSlot[i*c.words:to*c.words], c.perSlot[(i+1)*c.words:(to+1)*c.words])
}

// keepFirstSlot removes all slots but the first.
func (c *demandClass) keepFirstSlot() {
	c.count, c.perSlot, c.untilCounts = c.count[:1], c.perSlot[:c.words], c.untilCounts[:0]
}
