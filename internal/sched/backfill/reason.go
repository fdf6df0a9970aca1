package backfill

// reason returns Slurm's reason (squeue(1)) why a job that could run does not run now:
// Resources for the first of its partition, Priority for the others, and
// ReasonReservedForOthers if advance reservations keep the nodes.
func (e *engine) reason(j *Job) string {
	switch {
	case j.Begin > e.now:
		return ReasonBeginTime
	case e.awaitsReservation(j):
		return ReasonReservation
	case len(e.s.AdvanceReservations) > 0 && e.blockedByReservations(j):
		return ReasonReservedForOthers
	case e.waitingPartitions[j.Partition]:
		return ReasonPriority
	case e.lacksLicenses(j):
		return ReasonLicenses
	}
	e.waitingPartitions[j.Partition] = true
	return ReasonResources
}

// awaitsReservation reports whether the job's reservation has not begun.
func (e *engine) awaitsReservation(j *Job) bool {
	for i := range e.s.AdvanceReservations {
		if b := &e.s.AdvanceReservations[i]; j.Reservation != "" && b.Name == j.Reservation {
			return b.Start > e.now && !b.Flex
		}
	}
	return false
}

// lacksLicenses reports whether other jobs hold the licenses that the job
// needs, now or before it ends.
func (e *engine) lacksLicenses(j *Job) bool {
	return len(j.Licenses) > 0 &&
		!e.licensesFree(j, j.Reservation, e.interval(e.shapeOf(j, 0), e.first, e.now, j.minDuration()))
}
