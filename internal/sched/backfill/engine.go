package backfill

// engine is a plan in the making: what every node has free in every slot of
// time, given what runs and what is booked.
type engine struct {
	series
	s     *Snapshot
	now   int64
	first int // the slot that holds now
	nodes []nodeState

	licenseRow map[string]int
	owners     bool // some job shares its nodes with its own user's only
	shares     bool // some jobs may have the same CPUs
	shareBy    int  // so many of them: the least that any of them says
	threaded   bool // some node has several CPUs in a core
	users      map[int64]int32
	paths      [][]string // of the nodes; nil: there is no topology

	classes  []*class
	shapes   map[shapeKey]*shape
	families map[shapeKey]*family
	last     found
	limits   []int64 // what is left of Snapshot.Limits
	waiting  map[int]bool
	pass     int

	scratch    []uint64
	candidates []candidate
	arena      []Assignment
}

// newEngine books what runs.
func newEngine(s *Snapshot) *engine {
	e := &engine{s: s, now: s.Now, shapes: map[shapeKey]*shape{}, families: map[shapeKey]*family{}, waiting: map[int]bool{}, pass: 1,
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
	at, exact := boundaries(s)
	e.addSeries(s, at, exact)
	e.first = e.holding(e.now)
	for i := range s.Running {
		c := e.claimOf(&s.Running[i])
		e.occupy(&c, 1)
		for _, h := range s.Running[i].Held {
			e.nodes[h.Node].have(h.CPUs, s.Running[i].sharers() > 1, 1)
		}
	}
	return e
}

// survey finds out what the engine has to keep account of.
func (e *engine) survey() {
	for i := range e.s.Nodes {
		n := &e.s.Nodes[i]
		e.threaded = e.threaded || n.ThreadsPerCore > 1
		if len(n.Path) > 0 && e.paths == nil {
			e.paths = make([][]string, len(e.s.Nodes))
		}
	}
	for i := range e.paths {
		e.paths[i] = e.s.Nodes[i].Path
	}
	for i := range e.s.Running {
		r := &e.s.Running[i]
		e.owners = e.owners || r.UserExclusive
		e.sharedBy(r.sharers())
	}
	for i := range e.s.Pending {
		j := &e.s.Pending[i]
		e.owners = e.owners || j.UserExclusive
		e.sharedBy(j.sharers())
	}
}

func (e *engine) sharedBy(n int) {
	if n > 1 && (!e.shares || n < e.shareBy) {
		e.shares, e.shareBy = true, n
	}
}

// claimOf is what the running job holds. One that should have ended is about
// to: it still holds what it holds, for one second more.
func (e *engine) claimOf(r *Running) claim {
	c := claim{start: e.now, end: max(r.End, e.now+1), licenses: r.Licenses, exclusive: r.Exclusive,
		user: r.User, userExclusive: r.UserExclusive, share: r.sharers()}
	c.nodes = make([]Assignment, len(r.Held))
	for i, h := range r.Held {
		n := &e.nodes[h.Node]
		cpus := roundUp(h.CPUs.Len(), n.threads())
		if r.Exclusive {
			cpus = max(cpus, int(n.cpus))
		}
		c.nodes[i] = Assignment{Node: h.Node, Count: cpus, Memory: h.Memory, GRES: h.GRES}
	}
	return c
}

// assignments gives room for n of them.
func (e *engine) assignments(n int) []Assignment {
	const chunk = 4096
	if n > chunk/4 {
		return make([]Assignment, n)
	}
	if len(e.arena) < n {
		e.arena = make([]Assignment, chunk)
	}
	out := e.arena[:n:n]
	e.arena = e.arena[n:]
	return out
}

// released forgets what was known to be impossible.
func (e *engine) released(int64) {
	e.pass++
}
