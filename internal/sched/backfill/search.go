package backfill

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// candidate is a node that can run tasks of a job in some interval.
type candidate struct {
	node  int
	offer offer
	tasks int // maximum number of tasks it can run, at least 1
}

// offer is the resources of a node that are free throughout an interval.
type offer struct {
	cpus   int
	memory int64
	gres   []GRES
	whole  bool   // no other job has resources of the node
	taken  CPUSet // CPUs that are not free now, on a node that aligns them
}

// interval is a range of slots, and the time that a job would run in it.
type interval struct {
	from, to   int
	start, end int64
}

// interval returns the interval of a job of the shape that starts at start, in
// slot from.
func (e *engine) interval(s *requestShape, from int, start, duration int64) interval {
	end := min(endOf(start, duration), e.reservationEnd(s.Reservation, start))
	return interval{from, e.slotFrom(end), start, end}
}

func endOf(start, duration int64) int64 {
	if duration >= Forever-start {
		return Forever
	}
	return start + max(1, duration)
}

// findNodes returns nodes for the job throughout the interval, or nil. There must be no obstacle
// in the interval (see lastObstacle).
func (e *engine) findNodes(s *requestShape, j *Job, in interval) []Assignment {
	if !e.licensesFree(j, s.Reservation, in) {
		return nil
	}
	if s.class == nil {
		return e.choose(s, j, in, e.candidatesOfAll(s, j, in))
	}
	enough, simple := math.MaxInt, s.simple && len(e.groupNodes) == 0
	if simple {
		enough = s.leastNodes
	}
	if s.class.servingThroughout(in.from, in.to, e.scratch, enough) < s.leastNodes {
		return nil
	}
	if simple {
		return e.assignFirst(s, in)
	}
	return e.choose(s, j, in, e.candidatesOfClass(s, j, in))
}

// assignFirst assigns the first nodes of e.scratch to a simple job.
func (e *engine) assignFirst(s *requestShape, in interval) []Assignment {
	out := e.assignments(s.leastNodes, in)
	i := 0
	tasks := 1
	if s.ExactPerNode {
		tasks = max(1, s.TasksPerNode)
	}
	differ := e.multithreaded || s.Exclusive || s.AllMemory // what the job gets depends on the node
	for w := skipZeros(e.scratch); i < len(out); w++ {
		for x := e.scratch[w]; x != 0 && i < len(out); x &= x - 1 {
			node := w*64 + bits.TrailingZeros64(x)
			if i == 0 || differ {
				n := &e.nodes[node]
				cpus := s.cpusFor(n, tasks)
				out[i] = Assignment{Tasks: tasks, CPUCount: cpus, Memory: s.memoryFor(n, cpus)}
				if s.Exclusive {
					out[i].GRES = n.wholeGRES()
				}
			} else {
				out[i] = out[0]
			}
			out[i].Node = node
			i++
		}
	}
	if e.hasPositions {
		slices.SortFunc(
			out,
			func(a, b Assignment) int { return cmp.Compare(e.positionOf(a.Node), e.positionOf(b.Node)) },
		)
	}
	return out
}

// candidatesOfClass returns the nodes in e.scratch that can run tasks of the job.
func (e *engine) candidatesOfClass(s *requestShape, j *Job, in interval) []candidate {
	all := e.candidates[:0]
	sum, enough, alone := 0, e.takesFirstFit(s), e.seeksSingleNode(s, in)
	for w, x := range e.scratch {
		for ; x != 0; x &= x - 1 {
			node := w*64 + bits.TrailingZeros64(x)
			if s.Eligible != nil && !s.Eligible.Has(node) {
				continue
			}
			if all = e.appendCandidate(all, s, j, node, in); len(all) > 0 && enough {
				last := &all[len(all)-1]
				if last.node == node {
					sum += last.tasks
				}
				if alone && last.tasks >= s.Tasks || !alone && s.enough(len(all), sum) {
					e.candidates = all
					return all
				}
			}
		}
	}
	e.candidates = all
	return all
}

// candidatesOfAll returns the nodes that can run tasks of the job, for an engine without
// classes.
func (e *engine) candidatesOfAll(s *requestShape, j *Job, in interval) []candidate {
	all := e.candidates[:0]
	sum, enough, alone := 0, e.takesFirstFit(s), e.seeksSingleNode(s, in)
	for i := range e.nodes {
		if e.nodes[i].Unavailable || s.Eligible != nil && !s.Eligible.Has(i) {
			continue
		}
		before := len(all)
		if all = e.appendCandidate(all, s, j, i, in); len(all) > before && enough {
			sum += all[before].tasks
			if alone && all[before].tasks >= s.Tasks || !alone && s.enough(len(all), sum) {
				break
			}
		}
	}
	e.candidates = all
	return all
}

// takesFirstFit reports whether the first sufficient nodes are chosen.
func (e *engine) takesFirstFit(s *requestShape) bool {
	return len(s.ConstraintCounts) == 0 && !s.Contiguous && !s.SpreadJob && s.Switches == 0 && s.Segment == 0 &&
		(e.network == nil || s.leastNodes == 1)
}

// seeksSingleNode reports whether the search continues, after enough nodes were found, for
// a single node that can run the whole job. For later starts it does not, because they are
// planned again.
func (e *engine) seeksSingleNode(s *requestShape, in interval) bool {
	return in.start <= e.now+1 && s.prefersOne()
}

// appendCandidate adds node i to the candidates if it can run tasks of the job.
func (e *engine) appendCandidate(all []candidate, s *requestShape, j *Job, i int, in interval) []candidate {
	n := &e.nodes[i]
	if owner, owned := e.groupNodes[i]; owned && owner != j.ID {
		return all
	}
	cpus := e.cpusThrough(n, s.Reservation, in)
	if len(n.reservedCores) > 0 && s.sharers() > 1 {
		return all // it is not known which reservation's jobs have the shared CPUs
	}
	if s.sharers() <= 1 && cpus < s.leastCPUs() {
		return all
	}
	if (len(n.reservationIndexes) > 0 || s.Reservation != "") && e.blocked(i, s.Reservation, in.start, in.end) {
		return all
	}
	nd := nodeDemand{sockets: int16(s.SocketsPerNode), cores: int16(s.CoresPerSocket), threads: int16(s.ThreadsPerCore)}
	if !n.hasGeometry(&nd) || e.tracksOwners && !e.userAllowed(n, j, in) {
		return all
	}
	c := candidate{node: i, offer: e.offer(n, s, int(cpus), in)}
	if c.tasks = s.capacity(n, &c.offer); c.tasks > 0 {
		all = append(all, c)
	}
	return all
}

// offer returns the resources of the node that are free throughout the interval.
func (e *engine) offer(n *nodeState, s *requestShape, cpus int, in interval) offer {
	o := offer{cpus: max(0, cpus), whole: cpus >= int(n.cpus)}
	o.memory = int64(e.minimum(n.first+1, in.from, in.to))
	if e.aligns && in.start == e.now {
		o.taken = n.cores // for later starts it is not known which CPUs will be free
	}
	if s.sharers() > 1 && e.oversubscribes {
		o.cpus = e.sharedOffer(n, e.minSharers, in)
	}
	if len(s.GRES)+len(s.GRESPerTask) > 0 {
		o.gres = make([]GRES, len(n.GRES))
		for k, g := range n.GRES {
			o.gres[k] = GRES{g.Name, g.Type, int64(max(0, e.minimum(n.first+2+k, in.from, in.to)))}
		}
	}
	return o
}

// sharedOffer returns how many CPUs another sharing job can have.
func (e *engine) sharedOffer(n *nodeState, share int, in interval) int {
	used, free := e.row(e.shareRow(n)), e.row(n.first)
	least := int(n.cpus)
	for i := in.from; i < in.to; i++ {
		rows := (int(used[i]) + share - 1) / share
		least = min(least, (rows+int(max(0, free[i])))*share-int(used[i]))
	}
	return max(0, min(least, int(n.cpus)))
}

// userAllowed reports whether the job may run beside the other jobs of the node, given
// their users.
func (e *engine) userAllowed(n *nodeState, j *Job, in interval) bool {
	me := e.userNumber(j.User)
	for _, o := range e.row(e.ownerRow(n))[in.from:in.to] {
		if o != 0 && o>>1 != me && (j.UserExclusive || o > 0 && o&1 == 1) {
			return false
		}
	}
	return true
}

// licensesFree reports whether the licenses are free for jobs of the
// reservation throughout the interval.
func (e *engine) licensesFree(j *Job, reservation string, in interval) bool {
	for _, l := range j.Licenses {
		r, ok := e.licenseRow[l.Name]
		if !ok || int64(e.minimum(r, in.from, in.to)) < l.Total || !e.unreservedLicense(l, r, reservation, in) {
			return false
		}
	}
	return true
}

// earliest returns the earliest start at or after from at which the job fits, and its
// nodes. ok is false if there is none up to until.
func (e *engine) earliest(s *requestShape, j *Job, from, until int64) (at int64, nodes []Assignment, ok bool) {
	from = max(from, j.Begin, e.now)
	// A bound is recorded only if the search covers every start from now on, on all nodes.
	recordsBound := s.dominance != nil && from <= e.now+1 && len(e.groupNodes) == 0
	known := e.earliestKnown(s, j.Duration)
	from = max(from, known)
	if s.Switches > 0 && j.SwitchesUntil > from {
		e.splitAt(j.SwitchesUntil)
	}
	if e.sparse {
		if at, nodes, ok = e.earliestSparse(s, j, from, until); ok && recordsBound && at > known {
			e.recordBound(s, j.Duration, at)
		}
		return at, nodes, ok
	}
	slot := e.first
	switch {
	case from <= e.now:
	case e.exact:
		slot = e.slotAt(from) // whose amounts are those at from
	default:
		slot = e.splitAt(from)
	}
	for slot < len(e.at) {
		if opens := e.reservationOpens(s.Reservation, max(e.at[slot], from)); opens > max(e.at[slot], from) {
			if opens == Forever {
				break
			}
			from, slot = opens, e.splitAt(opens)
			continue
		}
		in := e.interval(s, slot, max(e.at[slot], from), j.Duration)
		if in.start > until || j.Deadline > 0 && in.end > j.Deadline {
			break
		}
		if last := e.lastObstacle(s, j, in); last >= 0 {
			slot = last + 1
			continue
		}
		if nodes = e.findNodes(s, j, in); nodes != nil {
			if recordsBound && in.start > known { // else a known bound implies it
				e.recordBound(s, j.Duration, in.start)
			}
			return in.start, nodes, true
		}
		slot++
	}
	return 0, nil, false
}

// lastObstacle returns the last slot of the interval in which the whole cluster has less
// free than the job needs, or -1.
func (e *engine) lastObstacle(s *requestShape, j *Job, in interval) int {
	last := lastBelow(e.row(0), in.from, in.to, s.leastTotalCPUs)
	if s.class != nil {
		last = max(last, lastBelow(s.class.count, max(in.from, last+1), in.to, int32(s.leastNodes)))
	}
	for _, l := range j.Licenses {
		if r, ok := e.licenseRow[l.Name]; ok {
			last = max(last, lastBelow(e.row(r), in.from, in.to, clampInt32(l.Total)))
		}
	}
	if len(e.nodes) == 1 && s.class == nil && s.sharers() <= 1 {
		last = max(last, lastBelow(e.row(e.nodes[0].first), in.from, in.to, s.leastCPUs()))
	}
	return last
}
