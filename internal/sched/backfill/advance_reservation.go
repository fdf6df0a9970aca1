package backfill

// reservation of the job's nth choice of nodes.
func (j *Job) reservation(choice int) string {
	if choice < len(j.ChoiceReservations) {
		return j.ChoiceReservations[choice]
	}
	return j.Reservation
}

// reservationEnd returns when a job of the reservation that starts at start must have ended,
// whatever its time limit: at the reservation's end. Forever: nothing ends it.
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

// active reports whether the block's own jobs may be on its nodes at the instant.
func (b *AdvanceReservation) active(at int64) bool { return b.Start <= at && at < b.End }

// includes reports whether the block takes the node, or CPUs of it.
func (b *AdvanceReservation) includes(node int) bool {
	_, cored := b.Cores[node]
	return cored || b.Nodes.Has(node)
}

// reservationOpens returns the first instant from at on in which jobs of the reservation may
// start; Forever: there is none, or no such reservation.
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

// anywhere reports whether jobs of the reservation may use any nodes at the
// instant.
func (e *engine) anywhere(reservation string, at int64) bool {
	for i := range e.s.AdvanceReservations {
		if b := &e.s.AdvanceReservations[i]; b.AnyNodes && b.Name == reservation && b.Start <= at && at < b.End {
			return true
		}
	}
	return false
}

// kept is one licence of one reservation. Its row is what is kept of it in each
// slot: less than nothing where the reservation's jobs hold more.
type reservedLicense struct {
	row     int
	block   int // place in Snapshot.Blocks
	license License
}

// fillReserved fills the rows of the licences that are kept.
func (e *engine) fillReserved() {
	for _, k := range e.reservedLicenses {
		b, row := &e.s.AdvanceReservations[k.block], e.row(k.row)
		for s := range e.at {
			if b.Start < e.slotEnd(s) && b.End > e.at[s] {
				row[s] = clampInt32(k.license.Total)
			}
		}
	}
	e.fillReservedCores()
}

// drawReservedLicense books that a job of the reservation holds l.
func (e *engine) drawReservedLicense(reservation string, l License, from, to int, sign int32) {
	for _, k := range e.reservedLicenses {
		if reservation != "" && e.s.AdvanceReservations[k.block].Name == reservation && k.license.Name == l.Name {
			e.add(k.row, from, to, -sign*clampInt32(l.Total))
		}
	}
}

// unreservedLicense reports whether reservations of others leave as much of l, whose free
// number is in row free, as it says.
func (e *engine) unreservedLicense(l License, free int, reservation string, in interval) bool {
	if len(e.reservedLicenses) == 0 {
		return true
	}
	for s := in.from; s < in.to; s++ {
		left := int64(e.row(free)[s])
		for _, k := range e.reservedLicenses {
			if b := &e.s.AdvanceReservations[k.block]; k.license.Name == l.Name && (reservation == "" || b.Name != reservation) {
				left -= max(0, int64(e.row(k.row)[s]))
			}
		}
		if left < l.Total {
			return false
		}
	}
	return true
}
