package backfill

import "slices"

// engine is the state of one plan: the free resources of every node in every time slot,
// given the running jobs and the bookings.
type engine struct {
	resourceProfile
	s *Snapshot
	workload
	now   int64
	first int // the slot that holds now
	nodes []nodeState

	licenseRow       map[string]int
	reservedLicenses []reservedLicense // licenses that advance reservations keep
	hasReservedCores bool              // some advance reservation takes CPUs of a node
	tracksOwners     bool              // some job shares its nodes with its own user's only
	oversubscribes   bool              // some jobs may have the same CPUs
	minSharers       int               // the smallest number of jobs on a CPU that a job allows
	multithreaded    bool              // some node has several CPUs in a core
	aligns           bool              // some node aligns CPUs
	hasPositions     bool              // the nodes have positions
	longestBoot      int64             // of all nodes; 0: all nodes run
	users            map[int64]int32
	network          *network // nil: there is none

	classes           []*demandClass
	shapes            map[shapeKey]*requestShape
	dominanceGroups   map[shapeKey]*dominanceGroup
	memberships       memberships
	maxDurations      []int64   // by shape: see boundDuration
	refusals          []refusal // by shape
	shapeBounds       shapeBounds
	lastShape         shapeLookup
	limitsLeft        []int64 // remaining amounts of Snapshot.Limits
	waitingPartitions map[int]bool
	epoch             int
	// cyclic: the profile is exact and is kept from cycle to cycle.
	cyclic   bool
	saved    resourceProfile // of cyclic: the profile before the cycle, or memory for it
	unmerged bool            // of cyclic: a job that ended may have left equal slots
	// sparse: there are boundaries only where they are needed, and releases has all
	// claims. verdictEpoch is the epoch in which verdicts of neverRunnable are valid.
	sparse         bool
	releases       releaseList
	loading        bool     // releases is not sorted yet
	booked         []*claim // in this cycle; some may have been removed again
	dropped        []*claim // claims whose memory can be reused
	verdictEpoch   int
	amountsOnly    bool // only amounts are computed, not owners
	approximate    bool // a search in this cycle tried wide slots, which depend on now
	oversubscribed bool // two running jobs have the same CPU, because one follows the other there

	startsOnly bool // only the jobs that start now are needed, not the reasons of others
	// groupNodes maps the nodes that a member of the current group requires or has been
	// assigned to the member's id. No other member gets them. It is empty unless a
	// decision about a group is being made.
	groupNodes map[int]int64

	scratch    []uint64
	prober     *probe // of engine.probe
	candidates []candidate
	arena      arena
	bookings   arena // of the reservations that are not needed after the cycle
}

// workload is the running jobs, and the pending jobs in queue order.
type workload struct {
	running []*Running
	pending []*Job
}

// workloadOf returns the jobs of s.
func workloadOf(s *Snapshot) workload {
	w := workload{running: make([]*Running, len(s.Running)), pending: byPriority(s.Pending)}
	for i := range s.Running {
		w.running[i] = &s.Running[i]
	}
	return w
}

// slotting is how an engine divides time.
type slotting int

const (
	fullSlots   slotting = iota // exactly, or in fixed slots if there would be too many
	sparseSlots                 // only where a boundary is needed
	exactSlots                  // exactly, in an engine that is kept between cycles
)

// newEngine returns an engine in which the running jobs of w are booked.
func newEngine(s *Snapshot, w workload, how slotting) *engine {
	e := &engine{
		s:                 s,
		workload:          w,
		now:               s.Now,
		verdictEpoch:      1,
		shapes:            map[shapeKey]*requestShape{},
		dominanceGroups:   map[shapeKey]*dominanceGroup{},
		waitingPartitions: map[int]bool{},
		epoch:             1,
		licenseRow:        map[string]int{},
		scratch:           make([]uint64, (len(s.Nodes)+63)/64),
		cyclic:            how == exactSlots,
	}
	for i := range s.Licenses {
		e.licenseRow[s.Licenses[i].Name] = 1 + i
	}
	e.limitsLeft = make([]int64, len(s.Limits))
	for i := range s.Limits {
		e.limitsLeft[i] = s.Limits[i].Left
	}
	e.detectFeatures()
	e.initNodes(s, new(nodeMemory))
	if how == sparseSlots {
		e.sparse = true
		e.initProfile(s, sortedTimes(append(reservationTimes(s), s.Now), s.Now), false, sparseRoom)
	} else {
		at, exact := boundaries(s, w, plansSparsely(&s.Policy))
		e.initProfile(s, at, exact, 0)
		e.first = e.slotAt(e.now)
	}
	e.loading = true
	for _, r := range w.running {
		e.addRunning(r)
	}
	slices.SortFunc(e.releases, byEnd)
	e.loading = false
	return e
}

// addRunning books a running job.
func (e *engine) addRunning(r *Running) {
	c := e.claimOfRunning(r)
	e.occupy(&c, 1)
	for _, h := range r.Allocation {
		e.oversubscribed = e.oversubscribed || r.sharers() <= 1 && e.nodes[h.Node].cores.Intersects(h.CPUs)
		e.nodes[h.Node].updateCPUs(h.CPUs, r.sharers() > 1, 1)
	}
}

// detectFeatures sets which properties of nodes and jobs the engine must account for.
func (e *engine) detectFeatures() {
	for i := range e.s.Nodes {
		n := &e.s.Nodes[i]
		e.multithreaded = e.multithreaded || n.ThreadsPerCore > 1
		e.aligns = e.aligns || n.Alignment != AlignNone
		e.hasPositions = e.hasPositions || n.Position != 0
		if !n.Unavailable {
			e.longestBoot = max(e.longestBoot, n.Boot)
		}
	}
	e.network = newNetwork(e.s.Nodes, func(node int) int {
		if e.hasPositions {
			return e.s.Nodes[node].Position
		}
		return node
	})
	for _, r := range e.running {
		e.tracksOwners = e.tracksOwners || r.UserExclusive
		e.noteSharers(r.sharers())
	}
	for _, j := range e.pending {
		e.tracksOwners = e.tracksOwners || j.UserExclusive
		e.noteSharers(j.sharers())
	}
}

func (e *engine) noteSharers(n int) {
	if n > 1 && (!e.oversubscribes || n < e.minSharers) {
		e.oversubscribes, e.minSharers = true, n
	}
}

// overdueEnd returns the expected end of a running job that should have ended.
func (e *engine) overdueEnd() int64 { return e.now + max(1, e.s.Overtime) }

// claimOfRunning returns the claim of a running job. A job that should have
// ended holds its resources until overdueEnd.
func (e *engine) claimOfRunning(r *Running) claim {
	c := claim{
		id:            r.ID,
		of:            r,
		start:         e.now,
		end:           max(r.End, e.overdueEnd()),
		licenses:      r.Licenses,
		exclusive:     r.Exclusive,
		user:          r.User,
		userExclusive: r.UserExclusive,
		share:         r.sharers(),
		reservation:   r.Reservation,
	}
	if e.loading { // later, a single claim would keep a whole chunk of the arena alive
		c.nodes = e.arena.assignments(len(r.Allocation))
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

// arena allocates assignments.
type arena struct {
	chunk []Assignment
	used  int // of chunk
}

// assignments returns a list of n assignments, which may have any contents.
func (a *arena) assignments(n int) []Assignment {
	if n > lastArenaChunk/4 {
		return make([]Assignment, n)
	}
	if len(a.chunk)-a.used < n {
		size := max(firstArenaChunk, 2*len(a.chunk))
		for size < n {
			size *= 2
		}
		a.chunk, a.used = make([]Assignment, min(size, lastArenaChunk)), 0
	}
	out := a.chunk[a.used : a.used+n : a.used+n]
	a.used += n
	return out
}

// reset allows the allocated assignments to be overwritten.
func (a *arena) reset() { a.used = 0 }

// assignments returns a list of n assignments for a job that runs in the
// interval.
func (e *engine) assignments(n int, in interval) []Assignment {
	if e.startsOnly && in.start > e.now {
		return e.bookings.assignments(n)
	}
	return e.arena.assignments(n)
}

// invalidateBounds drops all bounds on starts and durations, because resources became free.
func (e *engine) invalidateBounds() {
	e.epoch++
	for i := range e.maxDurations {
		e.maxDurations[i] = unknown
	}
	e.shapeBounds.reset()
}
