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

// occurrences is how many occurrences of a repeated reservation are planned around.
const occurrences = 4

// addReservations adds the advance reservations that have not ended, and the next
// occurrences of those that repeat.
func (s *Snapshot) addReservations(objects []*v1alpha1.Reservation) {
	for _, r := range objects {
		names, err := hostlist.ExpandLenient(r.Spec.Nodes)
		if err != nil {
			continue
		}
		out := backfill.AdvanceReservation{
			Name:     r.Name,
			Flex:     reserve.Flagged(&r.Spec, "FLEX"),
			AnyNodes: reserve.Flagged(&r.Spec, "ANY_NODES"),
			Cores:    s.reservedCPUs(&r.Spec),
		}
		for _, name := range slices.Sorted(maps.Keys(r.Spec.Licenses)) {
			out.Licenses = append(out.Licenses, backfill.License{Name: name, Total: int64(r.Spec.Licenses[name])})
		}
		for _, name := range names {
			if i, ok := s.byName[name]; ok && len(r.Spec.Cores) == 0 {
				out.Nodes.Add(i)
			}
		}
		s.addOccurrences(&r.Spec, out)
		if reserve.Flagged(&r.Spec, "MAGNETIC") {
			s.magnetic = append(s.magnetic, r)
		}
		s.reservations[r.Name] = r
	}
	s.sortReservations()
	slices.SortFunc(s.magnetic, func(a, b *v1alpha1.Reservation) int { return strings.Compare(a.Name, b.Name) })
}

func (s *Snapshot) addOccurrences(spec *v1alpha1.ReservationSpec, r backfill.AdvanceReservation) {
	start, repeats := spec.StartTime.Time, true
	for n := 0; repeats && n < occurrences; n++ {
		r.Start, r.End = start.Unix(), backfill.Forever
		if spec.Duration > 0 {
			r.End = r.Start + int64(spec.Duration)*60
		}
		if r.End > s.Now {
			s.AdvanceReservations = append(s.AdvanceReservations, r)
		}
		start, repeats = NextOccurrence(spec, start)
	}
}

func (s *Snapshot) sortReservations() {
	slices.SortStableFunc(s.AdvanceReservations, func(a, b backfill.AdvanceReservation) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// reservedCPUs returns the CPUs of a reservation of cores, by the number of the node;
// nil for a reservation of whole nodes.
func (s *Snapshot) reservedCPUs(spec *v1alpha1.ReservationSpec) map[int]backfill.CPUSet {
	if len(spec.Cores) == 0 {
		return nil
	}
	out := map[int]backfill.CPUSet{}
	for name, cores := range spec.Cores {
		i, ok := s.byName[name]
		if !ok {
			continue
		}
		threads := max(1, s.Nodes[i].ThreadsPerCore)
		var set backfill.CPUSet
		for _, core := range array.Parse(cores) {
			set.AddRange(int(core)*threads, (int(core)+1)*threads)
		}
		out[i] = set
	}
	return out
}

// addRefusingNodes reserves, for nobody, the nodes on which no job may start for a
// while.
func (s *Snapshot) addRefusingNodes(nodes map[string]time.Time) {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		end := nextSecond(nodes[name])
		i, ok := s.byObject[name]
		if !ok || end <= s.Now {
			continue
		}
		outage := backfill.AdvanceReservation{Start: s.Now, End: end}
		outage.Nodes.Add(i)
		s.AdvanceReservations = append(s.AdvanceReservations, outage)
	}
	s.sortReservations()
}

// nextSecond returns the first second, in Unix time, that is not before t. A job that starts in the
// second of t could be refused again before t, which does not count as another refusal.
func nextSecond(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

// reservationExists reports whether the reservation that a job names, if any,
// exists.
func (s *Snapshot) reservationExists(name string) bool {
	return name == "" || slices.ContainsFunc(s.AdvanceReservations, func(r backfill.AdvanceReservation) bool {
		return r.Name == name
	})
}

// magneticReservations returns the MAGNETIC reservations that a job may use without
// requesting one. The job may get its nodes in any of them or outside; those in a
// reservation come first, as in Slurm.
func (s *Snapshot) magneticReservations(out *backfill.Job, b *v1alpha1.BatchJob) (names []string) {
	if len(s.magnetic) == 0 || out.Reservation != "" || b.Spec.Workload != nil {
		return nil
	}
	user := s.users[b.Spec.User]
	if user == nil {
		user = &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: b.Spec.User}}
	}
	for _, r := range s.magnetic {
		if reserve.MayUse(&r.Spec, user, b.Spec.Job.Account) {
			names = append(names, r.Name)
		}
	}
	return names
}

// MagneticReservation returns the name of the magnetic reservation that the
// decision's job gets its nodes in, or "".
func (s *Snapshot) MagneticReservation(d backfill.Decision) string {
	info := s.infos[d.ID]
	name := info.magneticReservation(d.Choice)
	if name == "" {
		return ""
	}
	return v1alpha1.UserName(name, s.reservations[name].Annotations)
}

// reservationEnd returns when the job's reservation ends the job, in Unix seconds;
// backfill.Forever if it does not.
func (s *Snapshot) reservationEnd(b *v1alpha1.BatchJob) int64 {
	r := s.reservations[reserve.Of(b)]
	if r == nil || b.Status.StartTime == nil {
		return backfill.Forever
	}
	if at, ends := reserve.Ends(&r.Spec, b.Status.StartTime.Time, s.params.ResvOverRun); ends {
		return at.Unix()
	}
	return backfill.Forever
}

// NextOccurrence returns when a repeated reservation that started at start starts
// the next time; repeats is false for one that does not repeat.
func NextOccurrence(spec *v1alpha1.ReservationSpec, start time.Time) (next time.Time, repeats bool) {
	nextDay := func(fits func(time.Weekday) bool) time.Time {
		next := start.AddDate(0, 0, 1)
		for !fits(next.Weekday()) {
			next = next.AddDate(0, 0, 1)
		}
		return next
	}
	weekend := func(d time.Weekday) bool { return d == time.Saturday || d == time.Sunday }
	weekday := func(d time.Weekday) bool { return !weekend(d) }
	switch {
	case reserve.Flagged(spec, "HOURLY"):
		return start.Add(time.Hour), true
	case reserve.Flagged(spec, "DAILY"):
		return start.AddDate(0, 0, 1), true
	case reserve.Flagged(spec, "WEEKDAY"):
		return nextDay(weekday), true
	case reserve.Flagged(spec, "WEEKEND"):
		return nextDay(weekend), true
	case reserve.Flagged(spec, "WEEKLY"):
		return start.AddDate(0, 0, 7), true
	}
	return start, false
}
