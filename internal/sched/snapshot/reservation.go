package snapshot

import (
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// occurrences is how many of a repeated reservation are planned around.
const occurrences = 4

// addReservations makes blocks of the reservations that are not over, and of
// the next of those that are repeated.
func (v *View) addReservations(objects []*v1alpha1.Reservation) {
	for _, r := range objects {
		names, err := hostlist.Expand(r.Spec.Nodes)
		if err != nil {
			continue
		}
		b := backfill.Block{Name: r.Name, Flex: flagged(&r.Spec, "FLEX")}
		for _, name := range names {
			if i, ok := v.byName[name]; ok {
				b.Nodes.Add(i)
			}
		}
		start, again := r.Spec.StartTime.Time, true
		for n := 0; again && n < occurrences; n++ {
			b.Start, b.End = start.Unix(), backfill.Forever
			if r.Spec.Duration > 0 {
				b.End = b.Start + int64(r.Spec.Duration)*60
			}
			if b.End > v.Now {
				v.Blocks = append(v.Blocks, b)
			}
			start, again = NextReservation(&r.Spec, start)
		}
	}
	slices.SortStableFunc(v.Blocks, func(a, b backfill.Block) int { return strings.Compare(a.Name, b.Name) })
}

// reserved tells whether the reservation exists; "" is none at all.
func (v *View) reserved(name string) bool {
	return name == "" || slices.ContainsFunc(v.Blocks, func(b backfill.Block) bool { return b.Name == name })
}

func flagged(s *v1alpha1.ReservationSpec, flag string) bool { return slices.Contains(s.Flags, flag) }

// NextReservation is when a repeated reservation that begins at start begins
// again; again is false for one that does not.
func NextReservation(s *v1alpha1.ReservationSpec, start time.Time) (next time.Time, again bool) {
	day := func(fits func(time.Weekday) bool) time.Time {
		next := start.AddDate(0, 0, 1)
		for !fits(next.Weekday()) {
			next = next.AddDate(0, 0, 1)
		}
		return next
	}
	weekend := func(d time.Weekday) bool { return d == time.Saturday || d == time.Sunday }
	switch {
	case flagged(s, "HOURLY"):
		return start.Add(time.Hour), true
	case flagged(s, "DAILY"):
		return start.AddDate(0, 0, 1), true
	case flagged(s, "WEEKDAY"):
		return day(func(d time.Weekday) bool { return !weekend(d) }), true
	case flagged(s, "WEEKEND"):
		return day(weekend), true
	case flagged(s, "WEEKLY"):
		return start.AddDate(0, 0, 7), true
	}
	return start, false
}
