package backfill

import (
	"math"
	"slices"
)

// nodeState is a node and the rows of its amounts: CPUs in row first, memory in first+1,
// then one row for each GRES and, if the engine accounts for them, the owner and the CPUs
// of sharing jobs.
type nodeState struct {
	*Node          // not read where a claim is booked: it is in another cache line
	first          int
	threadsPerCore int32  // CPUs of a core, at least 1
	cpus           int32  // that jobs may have
	memory         int32  // MiB that jobs may have
	memoryUsed     bool   // some job has, or had, memory of the node
	unavailable    bool   // Node.Unavailable
	plain          bool   // no advance reservation has the node or cores of it
	cores          CPUSet // that running jobs have
	// sharers is the number of jobs that share each CPU.
	sharers []int
	// reservationIndexes are the indexes in Snapshot.AdvanceReservations of those with the
	// whole node.
	reservationIndexes []int
	reservedCores      []reservedCores
}

// threads returns the number of CPUs in a core. It does not read n.Node, for speed.
func (n *nodeState) threads() int { return int(n.threadsPerCore) }

// threads returns the number of CPUs in a core.
func (n *Node) threads() int { return max(1, n.ThreadsPerCore) }

// sockets returns the number of sockets over which the node's cores are spread.
func (n *Node) sockets() int {
	cores := n.CPUs / n.threads()
	if n.Sockets <= 1 || cores%n.Sockets != 0 {
		return 1
	}
	return n.Sockets
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// clampInt32 returns n within the range of a profile's amounts.
func clampInt32(n int64) int32 { return int32(min(max(n, math.MinInt32/2), math.MaxInt32/2)) }

// rowsOf returns how many rows the node has.
func (e *engine) rowsOf(n *nodeState) int {
	rows := 2 + len(n.GRES)
	if e.tracksOwners {
		rows++
	}
	if e.oversubscribes {
		rows++
	}
	return rows
}

func (e *engine) ownerRow(n *nodeState) int { return n.first + 2 + len(n.GRES) }

func (e *engine) shareRow(n *nodeState) int {
	if e.tracksOwners {
		return n.first + 3 + len(n.GRES)
	}
	return n.first + 2 + len(n.GRES)
}

// nodeMemory is the memory of an engine's nodes. Between two uses it is zero.
type nodeMemory struct {
	nodes []nodeState
	words []uint64 // of the nodes' sets of CPUs; one word is enough for most nodes
}

// initNodes sets the properties of the nodes that do not depend on time.
func (e *engine) initNodes(s *Snapshot, m *nodeMemory) {
	if n := len(s.Nodes); cap(m.nodes) < n {
		m.nodes, m.words = make([]nodeState, n), make([]uint64, n)
	}
	m.nodes, m.words = m.nodes[:len(s.Nodes)], m.words[:len(s.Nodes)]
	e.nodes = m.nodes
	words := m.words
	for i := range e.nodes {
		n := &e.nodes[i]
		n.Node = &s.Nodes[i]
		n.cores.words = words[i : i : i+1]
		n.threadsPerCore = int32(n.Node.threads())
		n.cpus = int32(max(0, n.CPUs-roundUp(n.UsedCPUs, n.threads())))
		n.memory = clampInt32(n.Memory - n.UsedMemory)
		n.unavailable = n.Unavailable
	}
	e.initReservedCores(s)
	for b := range s.AdvanceReservations {
		for _, i := range s.AdvanceReservations[b].Nodes.Members() {
			if i < len(e.nodes) {
				e.nodes[i].reservationIndexes = append(e.nodes[i].reservationIndexes, b)
			}
		}
	}
	for i := range e.nodes {
		n := &e.nodes[i]
		n.plain = len(n.reservationIndexes) == 0 && len(n.reservedCores) == 0
	}
}

// initProfile assigns the rows and fills them with the amounts that are free when no job
// runs. It allocates memory for room further slots.
func (e *engine) initProfile(s *Snapshot, at []int64, exact bool, room int) {
	rows := 1 + len(s.Licenses) // row 0: CPUs of all nodes; then the licenses
	e.reservedLicenses = e.reservedLicenses[:0]
	for b := range s.AdvanceReservations {
		for _, l := range s.AdvanceReservations[b].Licenses {
			e.reservedLicenses = append(e.reservedLicenses, reservedLicense{row: rows, index: b, license: l})
			rows++
		}
	}
	for i := range e.nodes {
		e.nodes[i].first = rows
		rows += e.rowsOf(&e.nodes[i])
	}
	for i := range e.nodes {
		for k := range e.nodes[i].reservedCores {
			e.nodes[i].reservedCores[k].row = rows
			rows++
		}
	}
	e.resourceProfile = newResourceProfile(at, rows, exact, room)
	if e.tracksOwners || e.oversubscribes || len(e.reservedLicenses) > 0 {
		clear(e.v) // the rows of owners, sharing jobs and reserved licenses begin with zeros
	}
	for i, l := range s.Licenses {
		fill(e.row(1+i), clampInt32(l.Total))
	}
	e.fillReserved()
	total := int32(0)
	for i := range e.nodes {
		n := &e.nodes[i]
		fill(e.row(n.first), n.cpus)
		fill(e.row(n.first+1), n.memory)
		if len(n.GRES) > 0 {
			for g, have := range subtractGRES(slices.Clone(n.GRES), n.UsedGRES) {
				fill(e.row(n.first+2+g), clampInt32(have.Count))
			}
		}
		if !n.unavailable {
			total += n.cpus
		}
	}
	fill(e.row(0), total)
}

func fill(row []int32, v int32) {
	if len(row) == 0 {
		return
	}
	row[0] = v
	for n := 1; n < len(row); n *= 2 {
		copy(row[n:], row[:n])
	}
}

// claim is the resources of one job from start until end.
type claim struct {
	id            int64
	of            *Running // nil: booked by the plan
	start, end    int64
	nodes         []Assignment
	licenses      []License
	exclusive     bool
	user          int64
	userExclusive bool
	share         int
	reservation   string
}

// occupy books the claim; with sign -1 it removes the claim.
func (e *engine) occupy(c *claim, sign int32) {
	from := e.first
	if c.start > e.now {
		if from = e.splitAt(c.start); from == len(e.at) || e.at[from] > c.start {
			from-- // the claim was planned with other slots
		}
	}
	to := e.splitAtEnd(c, sign)
	if from >= to {
		return
	}
	e.apply(c, from, to, sign)
	if sign < 0 {
		e.invalidateBounds()
	}
}

// needsOnlyCPUs reports whether the claim is for CPUs of plain nodes, and for nothing else.
func (e *engine) needsOnlyCPUs(c *claim) bool {
	if e.oversubscribes || e.hasReservedCores || len(c.licenses) > 0 {
		return false
	}
	for i := range c.nodes {
		if a := &c.nodes[i]; a.Memory != 0 || len(a.GRES) > 0 || !e.nodes[a.Node].plain {
			return false
		}
	}
	return true
}

// bookCPUs is apply for a claim that needs only CPUs.
func (e *engine) bookCPUs(c *claim, from, to int) {
	total := int32(0)
	// The nodes' rows are changed before any class is updated: they are independent of each other,
	// so the processor waits for the memory of several of them at the same time.
	for i := range c.nodes {
		a := &c.nodes[i]
		n, cpus := &e.nodes[a.Node], int32(a.CPUCount)
		e.add(n.first, from, to, -cpus)
		if !n.unavailable {
			total += cpus
		}
	}
	for i := range c.nodes {
		e.updateClassesForCPUs(c.nodes[i].Node, from, to, int32(c.nodes[i].CPUCount))
	}
	e.add(0, from, to, -total)
}

// apply books the claim in the slots from..to-1; with sign -1 it removes it.
func (e *engine) apply(c *claim, from, to int, sign int32) {
	if sign > 0 && !e.tracksOwners && e.needsOnlyCPUs(c) {
		e.bookCPUs(c, from, to)
		return
	}
	total := int32(0)
	for i := range c.nodes {
		a := &c.nodes[i]
		n := &e.nodes[a.Node]
		cpus := sign * int32(a.CPUCount)
		if c.share > 1 && e.oversubscribes {
			e.occupyShared(n, from, to, cpus, int32(e.minSharers))
		} else {
			e.add(n.first, from, to, -cpus)
			if !n.unavailable {
				total += cpus
			}
		}
		if a.Memory != 0 {
			n.memoryUsed = true
			e.add(n.first+1, from, to, -sign*clampInt32(a.Memory))
		}
		e.bookReservedCores(n, c.reservation, cpus, from, to)
		for _, g := range a.GRES {
			e.occupyGRES(n, from, to, g, sign)
		}
		if e.tracksOwners && !e.sparse && !e.amountsOnly {
			e.updateOwner(n, from, to, c, sign)
		}
		e.updateClasses(a.Node, from, to, delta{cpus, sign * clampInt32(a.Memory), c.share <= 1 || !e.oversubscribes})
	}
	if total != 0 {
		e.add(0, from, to, -total)
	}
	for _, l := range c.licenses {
		if r, ok := e.licenseRow[l.Name]; ok {
			e.add(r, from, to, -sign*clampInt32(l.Total))
		}
		e.bookReservedLicense(c.reservation, l, from, to, sign)
	}
	if e.tracksOwners && e.sparse {
		e.recomputeOwners(from, to)
	}
}

// occupyGRES subtracts g from the node's entries, or with sign -1 adds it. If the node does
// not list the type, an entry of that name is used.
func (e *engine) occupyGRES(n *nodeState, from, to int, g GRES, sign int32) {
	at := -1
	for i := range n.GRES {
		if n.GRES[i].Name == g.Name && (n.GRES[i].Type == g.Type || at < 0) {
			at = i
		}
	}
	if at >= 0 {
		e.add(n.first+2+at, from, to, -sign*clampInt32(g.Count))
	}
}

// occupyShared books CPUs that several jobs may use at the same time: the number of free
// CPUs decreases by the number that the sharing jobs need together.
func (e *engine) occupyShared(n *nodeState, from, to int, cpus, share int32) {
	used, free, all := e.row(e.shareRow(n)), e.row(n.first), e.row(0)
	for i := from; i < to; i++ {
		before := (used[i] + share - 1) / share
		used[i] += cpus
		d := (used[i]+share-1)/share - before
		free[i] -= d
		if !n.unavailable {
			all[i] -= d
		}
	}
}

// updateOwner sets the owner of the node in the slots from..to-1: 0 if there are no jobs,
// manyUsers for jobs of several users, else twice the number of the user, plus one if a job
// excludes other users. The number of jobs is not known, so the owner is cleared when all
// CPUs are free.
func (e *engine) updateOwner(n *nodeState, from, to int, c *claim, sign int32) {
	owner, free := e.row(e.ownerRow(n)), e.row(n.first)
	me := e.userNumber(c.user) * 2
	for i := from; i < to; i++ {
		switch {
		case sign < 0 && free[i] >= n.cpus:
			owner[i] = 0
		case sign < 0:
		case c.userExclusive:
			owner[i] = me + 1
		case owner[i] == 0:
			owner[i] = me
		case owner[i]>>1 != me>>1:
			owner[i] = manyUsers
		}
	}
}

// manyUsers marks a node with jobs of several users.
const manyUsers int32 = -2

// userNumber returns a small number for a user, from 1.
func (e *engine) userNumber(user int64) int32 {
	if e.users == nil {
		e.users = map[int64]int32{}
	}
	n, ok := e.users[user]
	if !ok {
		n = int32(len(e.users) + 1)
		e.users[user] = n
	}
	return n
}
