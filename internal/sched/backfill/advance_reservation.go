package backfill

// reservation returns the advance reservation of one of the job's choices of
// nodes.
func (j *Job) reservation(choice int) string {
	if choice < len(j.ChoiceReservations) {
		return j.ChoiceReservations[choice]
	}
	return j.Reservation
}

// reservationEnd returns when a job of the reservation that starts at start
// must have ended, whatever its time limit, or Forever.
func (e *engine) reservationEnd(reservation string, start int64) int64 {
	if reservation == "" {
		return Forever
	}
	for i := range e.s.AdvanceReservations {
		if b := &e.s.AdvanceReservations[i]; b.Name == reservation && !b.Flex && b.active(start) {
			return b.End
		}
	}
	return Forever
}

// active reports whether the reservation's own jobs may use its nodes at the given
// time.
func (b *AdvanceReservation) active(at int64) bool { return b.Start <= at && at < b.End }

// includes reports whether the reservation has the node, or some of its CPUs.
func (b *AdvanceReservation) includes(node int) bool {
	_, cored := b.Cores[node]
	return cored || b.Nodes.Has(node)
}

// reservationOpens returns the earliest time, not before at, at which jobs of the
// reservation may start, or Forever.
func (e *engine) reservationOpens(reservation string, at int64) int64 {
	if reservation == "" || e.flexible(reservation) {
		return at
	}
	first := Forever
	for i := range e.s.AdvanceReservations {
		if b := &e.s.AdvanceReservations[i]; b.Name == reservation && at < b.End {
			first = min(first, max(at, b.Start))
		}
	}
	return first
}

// flexible reports whether jobs of the reservation may use other nodes too.
func (e *engine) flexible(reservation string) bool {
	for i := range e.s.AdvanceReservations {
		if b := &e.s.AdvanceReservations[i]; b.Name == reservation {
			return b.Flex
		}
	}
	return false
}

// anywhere reports whether jobs of the reservation may use any nodes at the given time.
func (e *engine) anywhere(reservation string, at int64) bool {
	for i := range e.s.AdvanceReservations {
		if b := &e.s.AdvanceReservations[i]; b.AnyNodes && b.Name == reservation && b.Start <= at && at < b.End {
			return true
		}
	}
	return false
}

// reservedLicense is a license that an advance reservation keeps free for its jobs. Its
// row is the number of units that are kept free in each slot, negative if the
// reservation's jobs hold more.
type reservedLicense struct {
	row     int
	index   int // in Snapshot.AdvanceReservations
	license License
}

// fillReserved fills the rows of reserved licenses and CPUs.
func (e *engine) fillReserved() {
	for _, k := range e.reservedLicenses {
		b, row := &e.s.AdvanceReservations[k.index], e.row(k.row)
		for s := range e.at {
			if b.Start < e.slotEnd(s) && b.End > e.at[s] {
				row[s] = clampInt32(k.license.Total)
			}
		}
	}
	e.fillReservedCores()
}

// bookReservedLicense books a license for a job of the reservation.
func (e *engine) bookReservedLicense(reservation string, l License, from, to int, sign int32) {
	for _, k := range e.reservedLicenses {
		if reservation != "" && e.s.AdvanceReservations[k.index].Name == reservation && k.license.Name == l.Name {
			e.add(k.row, from, to, -sign*clampInt32(l.Total))
		}
	}
}

// unreservedLicense reports whether other reservations leave enough of l, whose
// number of free units is in row free.
func (e *engine) unreservedLicense(l License, free int, reservation string, in interval) bool {
	if len(e.reservedLicenses) == 0 {
		return true
	}
	for s := in.from; s < in.to; s++ {
		left := int64(e.row(free)[s])
		for _, k := range e.reservedLicenses {
			if b := &e.s.AdvanceReservations[k.index]; k.license.Name == l.Name &&
				(reservation == "" || b.Name != reservation) {
				left -= max(0, int64(e.row(k.row)[s]))
			}
		}
		if left < l.Total {
			return false
		}
	}
	return true
}
