package backfill

import "fmt"

// shapeKey identifies a request shape: jobs with equal keys differ only in time.
type shapeKey struct {
	eligible                                          *NodeSet
	reservation                                       string
	minNodes, maxNodes, tasks, perNode, cpus, minCPUs int32
	memPerNode, memPerCPU                             int64
	sockets, cores, threads, perSocket, perCore       int16
	share                                             int16
	switches, segment                                 int32
	segments                                          SegmentLayout
	exact, overcommit, allMemory, exclusive           bool
	noMultithread, contiguous, spreadJob, useMinNodes bool
	coreDistribution                                  CoreDistribution
	user                                              int64 // only if engine.tracksOwners
	userExclusive                                     bool
	lists                                             string // GRES, required nodes and other lists, formatted
}

// requestShape is the part of a request that jobs with equal keys share, with results of
// searches that are valid for all of them.
type requestShape struct {
	Job                  // one of them
	leastNodes     int   // minimum number of nodes
	leastTotalCPUs int32 // minimum number of CPUs on all nodes together
	class          *demandClass
	dominance      *dominanceGroup
	classDecides   bool // every node that satisfies the class can run the job's minimum
	simple         bool // any leastNodes nodes of the class can run the job
	gres           []GRES
	verdict        string        // of neverRunnable
	fullShape      *requestShape // the same shape in the engine with full slots
	verdictEpoch   int           // engine.verdictEpoch of verdict
	// feasibleFor is a duration for which advance reservations do not keep the shape from
	// running now, infeasibleFor one for which they do (0: none is known).
	feasibleFor, infeasibleFor int64

	number int32 // index in engine.maxDurations and engine.refusals
	// leastTasks is the minimum number of tasks, if no node of the class runs more of them than
	// its free CPUs divided by those that the class demands; else 0.
	leastTasks int64
}

// shapeOf returns the shape of the job for one of its choices of nodes. Choices from
// j.choices() on are the same ones, with nodes that have to boot.
func (e *engine) shapeOf(j *Job, choice int) *requestShape {
	if e.lastShape.job != j || e.lastShape.choice != choice {
		e.lastShape.job, e.lastShape.choice, e.lastShape.shape = j, choice, e.findShape(j, choice)
	}
	return e.lastShape.shape
}

// shapeLookup caches the last shape that was looked up, as lookups repeat.
type shapeLookup struct {
	job    *Job
	choice int
	shape  *requestShape
}

func (e *engine) findShape(j *Job, choice int) *requestShape {
	eligible, reservation := j.Eligible, j.reservation(choice)
	if choice >= j.choices() {
		choice -= j.choices()
		reservation = bootReservation
	}
	if choice > 0 {
		eligible = j.Alternatives[choice-1]
	}
	k := shapeKey{
		eligible:         eligible,
		reservation:      reservation,
		minNodes:         int32(j.MinNodes),
		maxNodes:         int32(j.MaxNodes),
		tasks:            int32(j.Tasks),
		perNode:          int32(j.TasksPerNode),
		cpus:             int32(j.CPUsPerTask),
		minCPUs:          int32(j.MinCPUs),
		memPerNode:       j.MemPerNode,
		memPerCPU:        j.MemPerCPU,
		sockets:          int16(j.SocketsPerNode),
		cores:            int16(j.CoresPerSocket),
		threads:          int16(j.ThreadsPerCore),
		perSocket:        int16(j.TasksPerSocket),
		perCore:          int16(j.TasksPerCore),
		share:            int16(j.sharers()),
		switches:         int32(j.Switches),
		segment:          int32(j.Segment),
		segments:         j.SegmentLayout,
		exact:            j.ExactPerNode,
		overcommit:       j.Overcommit,
		allMemory:        j.AllMemory,
		exclusive:        j.Exclusive,
		noMultithread:    j.NoMultithread,
		contiguous:       j.Contiguous,
		spreadJob:        j.SpreadJob,
		useMinNodes:      j.UseMinNodes,
		coreDistribution: j.CoreDistribution,
		userExclusive:    j.UserExclusive,
	}
	if e.tracksOwners {
		k.user = j.User
	}
	if len(j.GRES)+len(j.GRESPerTask)+len(j.Required)+len(j.ConstraintCounts)+len(j.Licenses) > 0 {
		k.lists = fmt.Sprint(j.GRES, j.GRESTotal, j.GRESPerTask, j.Required, j.Licenses, j.ConstraintCounts)
	}
	if s, ok := e.shapes[k]; ok {
		return s
	}
	s := &requestShape{Job: *j}
	s.Eligible, s.Alternatives = eligible, nil
	s.Reservation, s.ChoiceReservations = k.reservation, nil
	s.leastNodes, s.leastTotalCPUs = s.fewestNodes(), s.leastCPUs()*int32(s.fewestNodes())
	if s.Tasks > 0 && !s.Overcommit {
		s.leastTotalCPUs = max(s.leastTotalCPUs, int32(s.Tasks*s.perTask()))
	}
	if s.sharers() > 1 {
		s.leastTotalCPUs = 0
	}
	e.classify(s, k)
	s.number = int32(len(e.maxDurations))
	e.maxDurations = append(e.maxDurations, unknown)
	e.refusals = append(e.refusals, refusal{})
	e.shapes[k] = s
	return s
}

// classify sets the demand class of the shape.
func (e *engine) classify(s *requestShape, k shapeKey) {
	plain := len(s.Required)+len(s.ConstraintCounts) == 0 && !s.Contiguous && !s.SpreadJob && s.Switches == 0 &&
		s.Segment == 0 &&
		s.MaxNodes <= s.leastNodes &&
		(e.network == nil || s.leastNodes == 1)
	each := 1
	if s.ExactPerNode {
		each = max(1, s.TasksPerNode)
	}
	exactly := s.sharers() <= 1 && !e.tracksOwners && !e.aligns && len(s.GRES)+len(s.GRESPerTask) == 0 &&
		s.TasksPerSocket == 0 && (!s.Overcommit || s.TasksPerNode == 0)
	nd := nodeDemand{eligible: s.Eligible, reservation: s.Reservation, exclusive: s.Exclusive,
		sockets: int16(s.SocketsPerNode), cores: int16(s.CoresPerSocket), threads: int16(s.ThreadsPerCore)}
	nd.cpus, nd.memory = s.leastCPUs(), clampInt32(max(s.MemPerNode, s.MemPerCPU*int64(s.leastCPUs())))
	switch {
	case s.AllMemory:
		nd.memory = allMemory
	case s.MemPerCPU > 0 && (s.Exclusive || e.multithreaded):
		exactly = false // with more CPUs than the minimum the job gets more memory
	}
	if s.sharers() > 1 {
		nd.cpus = 0
	}
	s.gres = append(append([]GRES(nil), s.GRES...), s.GRESPerTask...)
	if len(s.gres) > 0 {
		nd.gres = fmt.Sprint(s.gres)
	}
	var same bool
	s.class, same = e.classFor(nd, s.gres)
	s.classDecides = exactly && same
	s.dominance = e.dominanceGroupOf(s, k, plain)
	s.simple = s.classDecides && plain && !e.aligns && s.tasksWanted(s.leastNodes) == s.leastNodes*each
	if s.class != nil && !s.Overcommit && s.sharers() <= 1 && s.perTask() >= int(s.class.cpus) {
		s.leastTasks = int64(s.tasksWanted(s.leastNodes))
	}
}

// classFor returns the class of a demand; same is false if the demand of the class is
// smaller. It returns nil if the engine has no classes.
func (e *engine) classFor(nd nodeDemand, gres []GRES) (c *demandClass, same bool) {
	if e.exact {
		return nil, true
	}
	full := nd
	for less := 0; ; less++ {
		for _, c := range e.classes {
			if c.nodeDemand == nd {
				return c, nd == full
			}
		}
		if len(e.classes) < e.maxClasses()*(less+1)/2 || less == 3 {
			break
		}
		switch less {
		case 0:
			nd.memory = 0
		case 1:
			nd.gres, gres, nd.sockets, nd.cores, nd.threads = "", nil, 0, 0, 0
		case 2:
			nd.eligible, nd.exclusive, nd.cpus = nil, false, powerOfTwo(nd.cpus)
		}
	}
	c = e.newClass(nd, gres)
	e.classes = append(e.classes, c)
	return c, nd == full
}

// powerOfTwo returns the largest power of two that is at most n, or n if n is less than 1.
func powerOfTwo(n int32) int32 {
	p := int32(1)
	for p <= n/2 {
		p *= 2
	}
	return min(p, n)
}
