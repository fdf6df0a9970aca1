package backfill

// If many jobs get reservations, a Queue plans on an exact profile, as Snapshot.Plan does
// for a small cluster. Between cycles the profile has the running jobs; a cycle saves a
// copy and then books on it.

// fitsExactly reports whether a plan for the given numbers of jobs uses an exact profile,
// if it does not use a sparse one.
func (s *Snapshot) fitsExactly(running, pending int) bool {
	reserved := pending
	if s.Policy.Reservations > 0 && !s.Policy.PlanAll {
		reserved = min(reserved, s.Policy.Reservations)
	}
	return !s.Policy.forceCoarse && (1+running+2*reserved)*(len(s.Nodes)+1) <= exactCells
}

// slotting returns how the engine divides time; ok is false if no engine can be kept
// between cycles.
func (q *Queue) slotting() (how slotting, ok bool) {
	if q.base.Incremental() {
		return sparseSlots, true
	}
	// Owners of nodes, and jobs that share CPUs, are not removed from a profile exactly.
	return exactSlots, len(q.base.AdvanceReservations) == 0 && q.userExclusive == 0 && len(q.sharers) == 0 &&
		q.base.fitsExactly(len(q.running), q.pending.n)
}

// startExactCycle prepares an exact profile for a cycle at e.now.
func (e *engine) startExactCycle() {
	e.removePast(e.now)
	if e.unmerged {
		e.mergeEqual()
		e.unmerged = false
	}
	e.extendOverdue()
	e.saved.copyFrom(&e.resourceProfile)
}

// removePast removes the slots before now, so that the first slot begins at now.
func (s *resourceProfile) removePast(now int64) {
	if past := s.slotAt(now); past > 0 {
		for r := range s.rows {
			row := s.row(r)
			copy(row, row[past:])
		}
		s.at = append(s.at[:0], s.at[past:]...)
	}
	s.at[0] = now
}

// mergeEqual removes the boundaries at which no amount changes.
func (s *resourceProfile) mergeEqual() {
	changes := make([]bool, len(s.at))
	changes[0] = true
	for r := range s.rows {
		row := s.row(r)
		for i := 1; i < len(row); i++ {
			changes[i] = changes[i] || row[i] != row[i-1]
		}
	}
	n := 0
	for i, change := range changes {
		if !change {
			continue
		}
		if s.at[n] = s.at[i]; n < i {
			for r := range s.rows {
				s.v[r*s.stride+n] = s.v[r*s.stride+i]
			}
		}
		n++
	}
	s.at = s.at[:n]
}

// copyFrom makes s a copy of o.
func (s *resourceProfile) copyFrom(o *resourceProfile) {
	v, stride := s.v, s.stride
	if len(v) < len(o.v) {
		v, stride = make([]int32, len(o.v)), o.stride
	}
	*s = resourceProfile{append(s.at[:0], o.at...), o.exact, o.rows, stride, v}
	for r := range s.rows {
		copy(s.row(r), o.row(r))
	}
}
