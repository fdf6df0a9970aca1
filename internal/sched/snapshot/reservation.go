package snapshot

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/array"
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
		b := backfill.AdvanceReservation{Name: r.Name, Flex: reserve.Flagged(&r.Spec, "FLEX"), AnyNodes: reserve.Flagged(&r.Spec, "ANY_NODES")}
		for _, name := range slices.Sorted(maps.Keys(r.Spec.Licenses)) {
			b.Licenses = append(b.Licenses, backfill.License{Name: name, Total: int64(r.Spec.Licenses[name])})
		}
		for _, name := range names {
			if i, ok := v.byName[name]; ok && len(r.Spec.Cores) == 0 {
				b.Nodes.Add(i)
			}
		}
		b.Cores = v.coresOf(&r.Spec)
		start, again := r.Spec.StartTime.Time, true
		for n := 0; again && n < occurrences; n++ {
			b.Start, b.End = start.Unix(), backfill.Forever
			if r.Spec.Duration > 0 {
				b.End = b.Start + int64(r.Spec.Duration)*60
			}
			if b.End > v.Now {
				v.AdvanceReservations = append(v.AdvanceReservations, b)
			}
			start, again = NextReservation(&r.Spec, start)
		}
		if reserve.Flagged(&r.Spec, "MAGNETIC") {
			v.magnets = append(v.magnets, r)
		}
		v.reservations[r.Name] = r
	}
	slices.SortStableFunc(v.AdvanceReservations, func(a, b backfill.AdvanceReservation) int { return strings.Compare(a.Name, b.Name) })
}

// coresOf are the CPUs that a reservation takes of nodes, by number; nil: it
// takes whole nodes.
func (v *View) coresOf(s *v1alpha1.ReservationSpec) map[int]backfill.CPUSet {
	if len(s.Cores) == 0 {
		return nil
	}
	out := map[int]backfill.CPUSet{}
	for name, ids := range s.Cores {
		i, ok := v.byName[name]
		if !ok {
			continue
		}
		threads := max(1, v.Nodes[i].ThreadsPerCore)
		var set backfill.CPUSet
		for _, core := range array.Parse(ids) {
			set.AddRange(int(core)*threads, (int(core)+1)*threads)
		}
		out[i] = set
	}
	return out
}

// reserved tells whether the reservation exists; "" is none at all.
func (v *View) reserved(name string) bool {
	return name == "" || slices.ContainsFunc(v.AdvanceReservations, func(b backfill.AdvanceReservation) bool { return b.Name == name })
}

// attract lets a job that asks for no reservation have its nodes in each that is
// MAGNETIC and for its user as well, and there first, as Slurm does.
func (v *View) attract(out *backfill.Job, b *v1alpha1.BatchJob) (names []string) {
	if len(v.magnets) == 0 || out.Reservation != "" || b.Spec.Workload != nil {
		return nil
	}
	user := v.accounts[b.Spec.User]
	if user == nil {
		user = &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: b.Spec.User}}
	}
	for _, r := range v.magnets {
		if reserve.MayUse(&r.Spec, user, b.Spec.Job.Account) {
			names = append(names, r.Name)
		}
	}
	return names
}

// reservationEnds is when the job's reservation ends it, Unix seconds;
// backfill.Forever: it does not.
func (v *View) reservationEnds(b *v1alpha1.BatchJob) int64 {
	r := v.reservations[reserve.Of(b)]
	if r == nil || b.Status.StartTime == nil {
		return backfill.Forever
	}
	if at, ends := reserve.Ends(&r.Spec, b.Status.StartTime.Time, v.params.ResvOverRun); ends {
		return at.Unix()
	}
	return backfill.Forever
}

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
	case reserve.Flagged(s, "HOURLY"):
		return start.Add(time.Hour), true
	case reserve.Flagged(s, "DAILY"):
		return start.AddDate(0, 0, 1), true
	case reserve.Flagged(s, "WEEKDAY"):
		return day(func(d time.Weekday) bool { return !weekend(d) }), true
	case reserve.Flagged(s, "WEEKEND"):
		return day(weekend), true
	case reserve.Flagged(s, "WEEKLY"):
		return start.AddDate(0, 0, 7), true
	}
	return start, false
}
