package backfill

// reason of a job that could run but not now, as Slurm names it (squeue(1)):
// Resources for the first of its partition, Priority for those behind it,
// ReasonKept where nodes are kept for others.
func (e *engine) reason(j *Job) string {
	switch {
	case j.Begin > e.now:
		return ReasonBeginTime
	case e.awaits(j):
		return ReasonReservation
	case len(e.s.AdvanceReservations) > 0 && e.keptAway(j):
		return ReasonReservedForOthers
	case e.waiting[j.Partition]:
		return ReasonPriority
	case e.shortOfLicenses(j):
		return ReasonLicenses
	}
	e.waiting[j.Partition] = true
	return ReasonResources
}

// awaits tells whether the job's reservation has not begun.
func (e *engine) awaits(j *Job) bool {
	for i := range e.s.AdvanceReservations {
		if b := &e.s.AdvanceReservations[i]; j.Reservation != "" && b.Name == j.Reservation {
			return b.Start > e.now && !b.Flex
		}
	}
	return false
}

// shortOfLicenses tells whether others hold the licences it wants, or will
// before it has ended.
func (e *engine) shortOfLicenses(j *Job) bool {
	return len(j.Licenses) > 0 && !e.licensed(j, j.Reservation, e.interval(e.shapeOf(j, 0), e.first, e.now, j.shortest()))
}
