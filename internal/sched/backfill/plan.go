package backfill

import (
	"math"
	"slices"
)

// Plan returns a decision about every pending job of s, in order of priority:
//
//  1. Jobs that are blocked, or can never run on these nodes, are skipped.
//  2. A job starts if it fits now without delaying an earlier reservation. If it fits only on
//     nodes of which some have to boot, it gets them now, unless nodes that run will be free
//     before those have booted.
//  3. Any other job gets a reservation at the earliest time at which it fits, as
//     long as the policy allows more reservations. Later jobs do not delay it.
//  4. After all decisions about now, a start is planned for the jobs without a
//     reservation, after those that have one, if Policy.PlanAll is set.
//
// A job gets its resources for its whole time limit. CPU ids are chosen when a
// job starts; for later starts CPUs are only counted.
func (s *Snapshot) Plan() Plan {
	s = s.withBootReservations()
	return Plan{Decisions: s.plan(workloadOf(s))}
}

// planStarts returns decisions of which only those that start a job now are complete.
func (s *Snapshot) planStarts(w workload) []Decision {
	p := newPlanner(s, w, s.slotting())
	p.startsOnly = true
	return p.decideAll(nil, w.pending)
}

// plan returns the decisions about the jobs of w on the nodes of s.
func (s *Snapshot) plan(w workload) []Decision {
	p := newPlanner(s, w, s.slotting())
	if s.Policy.PlanAll {
		p.later = make([]later, 0, len(w.pending))
	}
	out := make([]Decision, 0, len(w.pending))
	out = p.decideAll(out, w.pending)
	if len(p.later) > 0 {
		p.switchToFullSlots(out)
	}
	for _, l := range p.later {
		p.planLater(l, out)
	}
	p.releaseMemory()
	return out
}

// decideAll appends the decisions about jobs, which are in queue order.
func (p *planner) decideAll(out []Decision, jobs []*Job) []Decision {
	members := p.membersOf // one method value for all jobs
	var deferred []*Job
	for _, j := range jobs {
		if p.defers(j) {
			deferred = append(deferred, j)
			continue
		}
		out = p.decideJob(out, j, members)
	}
	slices.SortStableFunc(deferred, p.compareBackfill)
	for _, j := range deferred {
		out = p.decideJob(out, j, members)
	}
	return out
}

// slotting returns how a plan of s divides time for the decisions about now.
func (s *Snapshot) slotting() slotting {
	if plansSparsely(&s.Policy) && !s.Policy.forceExact && !s.ReservesCores() {
		return sparseSlots
	}
	return fullSlots
}

// switchToFullSlots replaces the sparse profile, which was used for the decisions about
// now, by one whose slots cover all planned starts.
func (p *planner) switchToFullSlots(out []Decision) {
	if !p.sparse {
		return
	}
	jobs := make(map[int64]*Job)
	for i := range out {
		if out[i].Nodes != nil {
			jobs[out[i].ID] = nil
		}
	}
	for _, j := range p.pending {
		if _, given := jobs[j.ID]; given {
			jobs[j.ID] = j
		}
	}
	p.releaseMemory()
	p.engine = newEngine(p.s, p.workload, fullSlots)
	for i := range out {
		if d := &out[i]; d.Nodes != nil {
			p.book(jobs[d.ID], d)
		}
	}
}

// planLater plans the start of a job or group without a reservation, after all others.
func (p *planner) planLater(l later, out []Decision) {
	if l.group != nil {
		p.reserveTogether(l.group, out[l.at:l.at+len(l.group)])
		return
	}
	j, d := l.job, &out[l.at]
	if l.shape.fullShape == nil {
		l.shape.fullShape = p.findShape(&l.shape.Job, 0)
	}
	if j == nil {
		j = &p.plainJob // its other fields are always zero
		j.ID, j.Begin, j.Duration, j.Exclusive, j.Share = d.ID, l.begin, d.Duration, l.shape.Exclusive, l.shape.Share
	}
	p.lastShape = shapeLookup{j, 0, l.shape.fullShape}
	if p.reserve(j, d); d.Nodes == nil {
		if why := p.neverRunnable(j); why != "" {
			d.Reason = why
		}
	}
}

// planner is the state of one planning run.
type planner struct {
	*engine
	reserved         []int          // number of reservations, by partition index
	partitionIndexes map[int]int32  // by Job.Partition
	stopped          bool           // no further job may start now (Policy.NoBackfill)
	decidedGroups    map[int64]bool // by Job.Group
	later            []later
	plainJob         Job // of planLater

	membersByGroup map[int64][]*Job // by Job.Group; nil: not computed yet
}

// later is a job, or the jobs of one group, whose start is planned after all
// others', and the index of the decision.
type later struct {
	group []*Job // nil: one job
	// job is nil for a plain job, of which shape, begin and the decision have all that matters. It
	// is not read again, because the jobs of a long queue do not fit into the processor's caches.
	job   *Job
	shape *requestShape
	begin int64
	at    int
}

// isPlain reports whether the job's start depends on nothing but its shape, its time limit and
// its Begin.
func (e *engine) isPlain(j *Job) bool {
	return !e.tracksOwners && len(j.Licenses) == 0 && len(j.Alternatives) == 0 && len(j.ChoiceReservations) == 0 &&
		j.Deadline == 0 && j.Switches == 0 && j.Group == 0 && j.Reservation == ""
}

func newPlanner(s *Snapshot, w workload, how slotting) *planner {
	return &planner{engine: newEngine(s, w, how), partitionIndexes: map[int]int32{}, decidedGroups: map[int64]bool{}}
}

// reservations returns how many more reservations jobs of the partition may get.
func (p *planner) reservations(partition int) int {
	most := p.s.Policy.Reservations
	if most <= 0 {
		return math.MaxInt
	}
	return most - p.reserved[p.partitionIndex(partition)]
}

// partitionIndex returns the index of a partition in reserved.
func (p *planner) partitionIndex(partition int) int32 {
	at, known := p.partitionIndexes[partition]
	if !known {
		at = int32(len(p.reserved))
		p.partitionIndexes[partition] = at
		p.reserved = append(p.reserved, 0)
	}
	return at
}

// decideJob appends the decisions about j and its copies, or about j's group.
// members lists the jobs of a group in the queue's order.
func (p *planner) decideJob(out []Decision, j *Job, members func(group int64) []*Job) []Decision {
	if j.Group == 0 {
		return p.decideCopies(out, j)
	}
	if p.decidedGroups[j.Group] {
		return out
	}
	p.decidedGroups[j.Group] = true
	return p.decideGroup(out, members(j.Group))
}

// MaxCopyReservations is the maximum number of copies of a job that get reservations.
const MaxCopyReservations = 20

// decideCopies appends decisions about a job and its copies, until further
// copies would get the same decision as the last.
func (p *planner) decideCopies(out []Decision, j *Job) []Decision {
	waiting := 0
	for range max(1, j.Copies) {
		d := p.decide(j)
		out = append(out, d)
		if d.StartNow {
			continue
		}
		more := p.reservations(j.Partition) > 0 || p.longestBoot > 0 // nodes may boot for further copies
		if waiting++; d.Nodes == nil || !more || waiting == MaxCopyReservations {
			break
		}
	}
	if n := len(out) - 1; p.s.Policy.PlanAll && !p.startsOnly && out[n].Nodes == nil && p.plannable(out[n].Reason) {
		l := later{job: j, shape: p.shapeOf(j, 0), begin: j.Begin, at: n}
		if p.isPlain(j) {
			l.job = nil
		}
		p.later = append(p.later, l)
	}
	return out
}

// decide returns the decision about one job and books the resources that the job gets.
func (p *planner) decide(j *Job) Decision {
	d := Decision{ID: j.ID, Duration: j.Duration}
	if d.Reason = p.ineligibleReason(j); d.Reason != "" {
		return d
	}
	over := p.overLimit(j)
	if over == "" && j.Begin <= p.now && !p.stopped {
		if over = p.startNow(j, &d); d.StartNow {
			return d
		}
	}
	p.reserveAndExplain(j, &d, over)
	return d
}

// ineligibleReason returns the reason why a job is not considered at all, or "".
func (p *planner) ineligibleReason(j *Job) string {
	switch {
	case j.Blocked != "":
		return j.Blocked
	case j.Deadline > 0 && endOf(max(p.now, j.Begin), j.minDuration()) > j.Deadline:
		return ReasonDeadline
	}
	return ""
}

// minDuration returns the shortest time limit that the job accepts.
func (j *Job) minDuration() int64 {
	if j.MinDuration > 0 {
		return min(j.MinDuration, j.Duration)
	}
	return j.Duration
}

// startNow starts the job if it fits, with a shorter time limit if the job
// accepts one. It returns the reason of a limit that the job would exceed with
// its nodes, which may be more than it requested.
func (p *planner) startNow(j *Job, d *Decision) (over string) {
	for n := range j.choices() {
		s := p.shapeOf(j, n)
		if d.Nodes = p.fitsNow(s, j, j.Duration); d.Nodes == nil && j.minDuration() < j.Duration {
			if d.Nodes = p.fitsNow(s, j, j.minDuration()); d.Nodes != nil {
				d.Duration = p.extendDuration(j, s.Reservation, d.Nodes)
			}
		}
		if d.Nodes == nil {
			continue
		}
		if over = p.exceededLimit(j, d.Nodes); over != "" {
			p.releaseCPUs(d.Nodes, j.sharers() > 1)
			d.Nodes, d.Duration = nil, j.Duration
			continue
		}
		d.StartNow, d.Start, d.Choice = true, p.now, n
		p.book(j, d)
		p.consumeLimits(j, d.Nodes)
		return ""
	}
	if over == "" && p.longestBoot > 0 {
		return p.startBooting(j, d)
	}
	return over
}

// exceededLimit returns the reason of the first limit that the job exceeds with these
// nodes, or "".
func (e *engine) exceededLimit(j *Job, nodes []Assignment) string {
	for _, l := range j.Limits {
		if e.limitsLeft[l] < e.s.Limits[l].usage(j, nodes) {
			return e.s.Limits[l].Reason
		}
	}
	return ""
}

// fitsNow returns nodes and CPUs for the job for duration from now on, or nil.
func (e *engine) fitsNow(s *requestShape, j *Job, duration int64) []Assignment {
	if e.v[e.first] < s.leastTotalCPUs {
		e.maxDurations[s.number] = 0
		return nil
	}
	if e.isRefused(s, duration) {
		return nil
	}
	in := e.interval(s, e.first, e.now, duration)
	if (j.Deadline == 0 || in.end <= j.Deadline) && e.lastObstacle(s, j, in) < 0 {
		if nodes := e.findNodes(s, j, in); nodes != nil && e.assignCPUs(j, nodes, s.Reservation, in.end) {
			return nodes
		}
	}
	if j.Deadline == 0 && len(j.Licenses) == 0 && j.SwitchesUntil == 0 && len(e.groupNodes) == 0 {
		e.refuse(s, duration)
		e.maxDurations[s.number] = min(e.maxDurations[s.number], duration-1)
	}
	return nil
}

// extendDuration returns how long the job can use the nodes from now on, up to its time
// limit.
func (e *engine) extendDuration(j *Job, reservation string, nodes []Assignment) int64 {
	lo, hi := j.minDuration(), j.Duration
	if j.Deadline > 0 {
		hi = min(hi, j.Deadline-e.now)
	}
	at := e.slotFrom(e.now + lo)
	for at < len(e.at) && e.at[at] < e.now+hi && e.slotHolds(j, reservation, nodes, at) {
		at++
	}
	if at < len(e.at) {
		return min(e.at[at]-e.now, hi)
	}
	return hi
}

// slotHolds reports whether the assigned resources are free on the nodes in slot at.
func (e *engine) slotHolds(j *Job, reservation string, nodes []Assignment, at int) bool {
	in := interval{at, at + 1, e.at[at], e.slotEnd(at)}
	for i := range nodes {
		a := &nodes[i]
		n := &e.nodes[a.Node]
		cpus := int(e.cpusIn(n, reservation, at))
		if j.sharers() > 1 && e.oversubscribes {
			cpus = e.sharedOffer(n, e.minSharers, in)
		}
		if len(n.reservedCores) > 0 && e.forbidden(n, reservation, in.end).Intersects(a.CPUs) {
			return false
		}
		if cpus < a.CPUCount || e.v[(n.first+1)*e.stride+at] < clampInt32(a.Memory) ||
			e.blocked(a.Node, reservation, in.start, in.end) || e.tracksOwners && !e.userAllowed(n, j, in) {
			return false
		}
		for _, g := range a.GRES {
			if e.gresIn(n, g, at) < g.Count {
				return false
			}
		}
	}
	return e.licensesFree(j, reservation, in)
}

// reserveAndExplain books a reservation for a job that does not start now, and
// sets the reason why it waits.
func (p *planner) reserveAndExplain(j *Job, d *Decision, over string) {
	if d.Nodes == nil && over == "" && !j.NoReserve && p.reservations(j.Partition) > 0 &&
		p.neverRunnable(j) == ReasonNone {
		p.reserve(j, d)
	}
	if p.startsOnly {
		if d.Nodes != nil {
			p.reserved[p.partitionIndex(j.Partition)]++
		}
		p.stopped = p.stopped || over == "" && p.stops(j)
		return
	}
	// For a job that is planned later, planLater finds out whether it can run.
	if d.Nodes == nil && (p.reservations(j.Partition) > 0 || !p.s.Policy.PlanAll || over != "") {
		if d.Reason = p.neverRunnable(j); d.Reason != "" {
			return
		}
	}
	d.Reason = over
	if over == "" {
		d.Reason = p.reason(j)
		p.stopped = p.stopped || p.stops(j)
	}
	if d.Nodes != nil {
		p.reserved[p.partitionIndex(j.Partition)]++
	}
}

// stops reports whether j, which waits, keeps all later jobs from starting: without
// backfill it does, unless it may not start yet or can never run.
func (p *planner) stops(j *Job) bool {
	return p.s.Policy.NoBackfill && j.Begin <= p.now && p.neverRunnable(j) == ReasonNone
}

// plannable reports whether a start can be planned for a job that waits for the given
// reason.
func (p *planner) plannable(reason string) bool {
	switch reason {
	case ReasonResources, ReasonPriority, ReasonBeginTime, ReasonLicenses, ReasonReservation, ReasonReservedForOthers:
		return true
	}
	return false
}

// reserve books the earliest start of any of the job's choices.
func (p *planner) reserve(j *Job, d *Decision) {
	until := Forever
	for n := range j.choices() {
		if at, nodes, ok := p.earliest(p.shapeOf(j, n), j, max(p.now+1, j.Begin), until); ok {
			d.Start, d.Nodes, d.Choice = at, nodes, n
			until = at - 1
		}
	}
	if d.Nodes != nil {
		p.book(j, d)
	}
}

// book subtracts the job's resources from the profile.
func (e *engine) book(j *Job, d *Decision) {
	c := e.claim(j, d)
	e.occupy(&c, 1)
}

// claim returns the claim of a job for which d was decided.
func (e *engine) claim(j *Job, d *Decision) claim {
	in := j.reservation(d.Choice)
	if d.Boot > 0 {
		in = bootReservation
	}
	return claim{
		id:            j.ID,
		start:         d.Start,
		end:           min(endOf(d.Start, d.takes()), e.reservationEnd(in, d.Start)),
		nodes:         d.Nodes,
		licenses:      j.Licenses,
		exclusive:     j.Exclusive,
		user:          j.User,
		userExclusive: j.UserExclusive,
		share:         j.sharers(),
		reservation:   in,
	}
}
