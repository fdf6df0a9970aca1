package backfill

import "slices"

// engine is a plan in the making: what every node has free in every slot of
// time, given what runs and what is booked.
type engine struct {
	series
	s *Snapshot
	work
	now   int64
	first int // the slot that holds now
	nodes []nodeState

	licenseRow map[string]int
	kept       []kept // licences of reservations
	anyCored   bool   // some block takes CPUs of a node
	owners     bool   // some job shares its nodes with its own user's only
	shares     bool   // some jobs may have the same CPUs
	shareBy    int    // so many of them: the least that any of them says
	threaded   bool   // some node has several CPUs in a core
	placed     bool   // the nodes say their places
	users      map[int64]int32
	paths      [][]string // of the nodes; nil: there is no topology

	classes  []*class
	shapes   map[shapeKey]*shape
	families map[shapeKey]*family
	may      []int64 // by shape: see mayLast
	bars     bars
	last     found
	limits   []int64 // what is left of Snapshot.Limits
	waiting  map[int]bool
	pass     int
	// sparse: boundaries are only where they are asked for, and ends has all
	// that holds anything; judged numbers the verdicts of never that hold.
	sparse  bool
	ends    ends
	filling bool     // ends is not in order yet
	given   []*claim // of ends what the pass gave; some may have been taken back
	judged  int
	probing bool // amounts are all that matters
	tangled bool // two running jobs have the same CPU: one follows the other there

	scratch    []uint64
	probed     []int32
	candidates []candidate
	arena      []Assignment
	arenaChunk int // size of the last chunk of arena
}

// work is who runs and who waits, the latter in the order of the queue.
type work struct {
	running []*Running
	pending []*Job
}

// workOf is that of s.
func workOf(s *Snapshot) work {
	w := work{running: make([]*Running, len(s.Running)), pending: byPriority(s.Pending)}
	for i := range s.Running {
		w.running[i] = &s.Running[i]
	}
	return w
}

// slotting is how an engine divides time.
type slotting int

const (
	asEnds  slotting = iota // exactly, or in fixed slots where that would be too many
	asQueue                 // the same, the fixed slots by the queue's length
	asked                   // only where somebody asks
)

// newEngine books what runs.
func newEngine(s *Snapshot, w work, how slotting) *engine {
	e := &engine{s: s, work: w, now: s.Now, judged: 1, shapes: map[shapeKey]*shape{}, families: map[shapeKey]*family{}, waiting: map[int]bool{}, pass: 1,
		licenseRow: map[string]int{}, scratch: make([]uint64, (len(s.Nodes)+63)/64)}
	for i := range s.Licenses {
		e.licenseRow[s.Licenses[i].Name] = 1 + i
	}
	e.limits = make([]int64, len(s.Limits))
	for i := range s.Limits {
		e.limits[i] = s.Limits[i].Left
	}
	e.survey()
	e.describe(s)
	if how == asked {
		e.sparse = true
		e.addSeries(s, tidy(append(blockTimes(s), s.Now), s.Now), false, sparseRoom)
	} else {
		at, exact := boundaries(s, w, how == asQueue || promisesOne(&s.Policy))
		e.addSeries(s, at, exact, 0)
		e.first = e.holding(e.now)
	}
	e.filling = true
	for _, r := range w.running {
		e.run(r)
	}
	slices.SortFunc(e.ends, byEnd)
	e.filling = false
	return e
}

// run books a running job.
func (e *engine) run(r *Running) {
	c := e.claimOf(r)
	e.occupy(&c, 1)
	for _, h := range r.Allocation {
		e.tangled = e.tangled || r.sharers() <= 1 && e.nodes[h.Node].cores.Intersects(h.CPUs)
		e.nodes[h.Node].have(h.CPUs, r.sharers() > 1, 1)
	}
}

// survey finds out what the engine has to keep account of.
func (e *engine) survey() {
	for i := range e.s.Nodes {
		n := &e.s.Nodes[i]
		e.threaded = e.threaded || n.ThreadsPerCore > 1
		e.placed = e.placed || n.Position != 0
		if len(n.TopologyPath) > 0 && e.paths == nil {
			e.paths = make([][]string, len(e.s.Nodes))
		}
	}
	for i := range e.paths {
		e.paths[i] = e.s.Nodes[i].TopologyPath
	}
	for _, r := range e.running {
		e.owners = e.owners || r.UserExclusive
		e.sharedBy(r.sharers())
	}
	for _, j := range e.pending {
		e.owners = e.owners || j.UserExclusive
		e.sharedBy(j.sharers())
	}
}

func (e *engine) sharedBy(n int) {
	if n > 1 && (!e.shares || n < e.shareBy) {
		e.shares, e.shareBy = true, n
	}
}

// overtime is when a running job that should have ended is expected to end.
func (e *engine) overtime() int64 { return e.now + max(1, e.s.Overtime) }

// claimOf is what the running job holds. One that should have ended is about
// to: it still holds what it holds, for some time more.
func (e *engine) claimOf(r *Running) claim {
	c := claim{id: r.ID, of: r, start: e.now, end: max(r.End, e.overtime()), licenses: r.Licenses, exclusive: r.Exclusive,
		user: r.User, userExclusive: r.UserExclusive, share: r.sharers(), reservation: r.Reservation}
	if e.filling { // what is found here stays together; later ones would keep room for many
		c.nodes = e.assignments(len(r.Allocation))
	} else {
		c.nodes = make([]Assignment, len(r.Allocation))
	}
	for i, h := range r.Allocation {
		n := &e.nodes[h.Node]
		cpus := roundUp(h.CPUs.Len(), n.threads())
		if r.Exclusive {
			cpus = max(cpus, int(n.cpus))
		}
		c.nodes[i] = Assignment{Node: h.Node, CPUCount: cpus, Memory: h.Memory, GRES: h.GRES}
	}
	return c
}

// Sizes of the chunks from which assignments are allocated: each is twice as
// large as the one before it.
const (
	firstArenaChunk = 64
	lastArenaChunk  = 4096
)

// assignments returns a new list of n assignments.
func (e *engine) assignments(n int) []Assignment {
	if n > lastArenaChunk/4 {
		return make([]Assignment, n)
	}
	for len(e.arena) < n {
		e.arenaChunk = min(max(firstArenaChunk, 2*e.arenaChunk), lastArenaChunk)
		e.arena = make([]Assignment, e.arenaChunk)
	}
	out := e.arena[:n:n]
	e.arena = e.arena[n:]
	return out
}

// released forgets what was known to be impossible.
func (e *engine) released() {
	e.pass++
	for i := range e.may {
		e.may[i] = unknown
	}
	e.bars.lift()
}
