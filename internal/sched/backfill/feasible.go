package backfill

import "sync"

// NeverRunnable returns why a job like j cannot run on the snapshot's nodes
// even if they are empty: ReasonBadConstraints, ReasonNodeNotAvail if only
// nodes that are down or reserved could run it, or ReasonNone.
func (s *Snapshot) NeverRunnable(j *Job) string {
	e := &engine{
		s:               s,
		workload:        workloadOf(s),
		now:             s.Now,
		verdictEpoch:    1,
		shapes:          map[shapeKey]*requestShape{},
		dominanceGroups: map[shapeKey]*dominanceGroup{},
		resourceProfile: resourceProfile{exact: true},
	}
	e.detectFeatures()
	memory := idleNodeMemory.Get().(*nodeMemory)
	defer memory.release()
	e.initNodes(s, memory)
	return e.neverRunnable(j)
}

// idleNodeMemory has the memory for the nodes of NeverRunnable, which is called for every
// submission: on a cluster of thousands of nodes it is larger than all else that a
// submission allocates.
var idleNodeMemory = sync.Pool{New: func() any { return new(nodeMemory) }}

// release makes m available to the next call. It keeps nothing of the snapshot alive.
func (m *nodeMemory) release() {
	clear(m.nodes)
	clear(m.words)
	idleNodeMemory.Put(m)
}

// neverRunnable returns why the job cannot run on any of its node sets even if
// they are empty, or ReasonNone.
func (e *engine) neverRunnable(j *Job) string {
	why := e.neverRunnableOn(e.shapeOf(j, 0), j)
	for n := 1; n < j.choices() && why != ReasonNone; n++ {
		if other := e.neverRunnableOn(e.shapeOf(j, n), j); other != ReasonBadConstraints {
			why = other
		}
	}
	return why
}

// neverRunnableOn is neverRunnable for one node set. Jobs of one shape share
// the result.
func (e *engine) neverRunnableOn(s *requestShape, j *Job) string {
	if s.verdictEpoch != e.verdictEpoch {
		s.verdictEpoch = e.verdictEpoch
		switch {
		case e.feasibleWhenEmpty(s, j, false, 0):
			s.verdict = ReasonNone
		case e.feasibleWhenEmpty(s, j, true, 0):
			s.verdict = ReasonNodeNotAvail
		default:
			s.verdict = ReasonBadConstraints
		}
	}
	return s.verdict
}

// blockedByReservations reports whether the job could not run now even on empty
// nodes, because advance reservations take too many of them within its time.
// The shape stores the longest feasible and the shortest infeasible duration.
func (e *engine) blockedByReservations(j *Job) bool {
	choices := j.choices()
	if e.longestBoot > 0 {
		choices *= 2
	}
	for n := range choices {
		if n >= j.choices() && !j.mayBoot(n-j.choices()) {
			continue
		}
		s := e.shapeOf(j, n)
		switch d := j.minDuration(); {
		case s.infeasibleFor > 0 && d >= s.infeasibleFor:
		case d <= s.feasibleFor:
			return false
		case e.feasibleWhenEmpty(s, j, false, endOf(e.now, d)):
			s.feasibleFor = d
			return false
		default:
			s.infeasibleFor = d
		}
	}
	return true
}

// feasibleWhenEmpty reports whether the job fits on empty nodes. If ideal is true, nodes
// that are down are included, and the resources of system pods are assumed to be free.
// Nodes that are reserved for others before until are excluded, unless until is 0.
func (e *engine) feasibleWhenEmpty(s *requestShape, j *Job, ideal bool, until int64) bool {
	for _, l := range j.Licenses {
		if !e.licenseExists(l) {
			return false
		}
	}
	var all []candidate
	sum, early := 0, e.takesFirstFit(s)
	for i := range e.nodes {
		n := &e.nodes[i]
		if s.Eligible != nil && !s.Eligible.Has(i) || n.Unavailable && !ideal ||
			!ideal && e.reservedForever(n, s.Reservation) {
			continue
		}
		if until > 0 && e.blocked(i, s.Reservation, e.now, until) {
			continue
		}
		nd := nodeDemand{
			sockets: int16(s.SocketsPerNode),
			cores:   int16(s.CoresPerSocket),
			threads: int16(s.ThreadsPerCore),
		}
		if !n.hasGeometry(&nd) {
			continue
		}
		o := offer{cpus: int(n.cpus), memory: n.Memory - n.UsedMemory, whole: true}
		o.gres = subtractGRES(append([]GRES(nil), n.GRES...), n.UsedGRES)
		if ideal {
			bare := *n.Node
			bare.UsedCPUs, bare.UsedMemory = 0, 0
			n = &nodeState{
				Node:           &bare,
				threadsPerCore: n.threadsPerCore,
				cpus:           int32(n.CPUs),
				memory:         clampInt32(n.Memory),
			}
			o.cpus, o.memory, o.gres = n.CPUs, n.Memory, n.GRES
			if n.AllGRES != nil {
				o.gres = n.AllGRES
			}
		}
		if s.sharers() > 1 {
			o.cpus *= s.sharers()
		}
		if tasks := s.capacity(n, &o); tasks > 0 {
			all = append(all, candidate{node: i, offer: o, tasks: tasks})
			if sum += tasks; early && s.enough(len(all), sum) {
				break
			}
		}
	}
	relaxed := interval{start: Forever}
	return e.choose(s, j, relaxed, all) != nil
}

// licenseExists reports whether the cluster has at least l.Total units of the license.
func (e *engine) licenseExists(l License) bool {
	for i := range e.s.Licenses {
		if e.s.Licenses[i].Name == l.Name {
			return e.s.Licenses[i].Total >= l.Total
		}
	}
	return false
}

// reservedForever reports whether an advance reservation without end keeps the node for
// other jobs.
func (e *engine) reservedForever(n *nodeState, reservation string) bool {
	for _, b := range n.reservationIndexes {
		k := &e.s.AdvanceReservations[b]
		if k.End == Forever && k.Start <= e.now && (k.Name == "" || k.Name != reservation) {
			return true
		}
	}
	return false
}
