// Package reserve decides who may use a reservation, which nodes it has, and
// when it ends the jobs in it (scontrol(1), RESERVATIONS). It is pure.
package reserve

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Flagged tells whether the reservation has the flag (upper case).
func Flagged(s *v1alpha1.ReservationSpec, flag string) bool { return slices.Contains(s.Flags, flag) }

// MayUse tells whether a reservation is for the user: by name, account or
// group. Names with "-" in front are those of everybody else's reservation.
func MayUse(s *v1alpha1.ReservationSpec, user *v1alpha1.User, account string) bool {
	listed := func(names []string, is func(string) bool) (in, out bool) {
		for _, n := range names {
			if rest, not := strings.CutPrefix(n, "-"); not {
				out = out || is(rest)
			} else {
				in = in || is(n)
			}
		}
		return in, out
	}
	byUser, notUser := listed(s.Users, func(n string) bool { return n == user.Name })
	byAccount, notAccount := listed(s.Accounts, func(n string) bool { return n == account })
	byGroup, _ := listed(s.Groups, func(n string) bool {
		return slices.ContainsFunc(user.Spec.Groups, func(g v1alpha1.Group) bool { return g.Name == n })
	})
	if notUser || notAccount {
		return false
	}
	positive := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, "-") })
	}
	if !positive(s.Users) && !positive(s.Accounts) && !positive(s.Groups) {
		return true // everybody but those named
	}
	// Users and accounts together: both must fit, as in Slurm.
	if positive(s.Users) && positive(s.Accounts) {
		return byUser && byAccount
	}
	return byUser || byAccount || byGroup
}

// Of is the object name of the reservation that the job runs in, or asks for;
// "": none.
func Of(b *v1alpha1.BatchJob) string {
	if r := b.Status.Reservation; r != "" {
		return v1alpha1.ReservationObject(r)
	}
	return v1alpha1.ReservationObject(b.Spec.Job.Reservation)
}

// NoEnd as minutes: without end.
const NoEnd = math.MaxInt32

// Ends is when the reservation ends a job in it that began at started; ok is
// false for one that it never ends. Jobs may run on for so many minutes
// (slurm.conf(5), ResvOverRun). Of a repeated reservation that has moved on the
// time counts in which the job began.
func Ends(s *v1alpha1.ReservationSpec, started time.Time, overRun int32) (at time.Time, ok bool) {
	if s.Duration < 0 || overRun == NoEnd || Flagged(s, "FLEX") {
		return time.Time{}, false
	}
	lasts := time.Duration(s.Duration) * time.Minute
	start := s.StartTime.Time
	for started.Before(start) {
		earlier, again := before(s, start)
		if !again || !started.Before(earlier.Add(lasts)) { // it began in no time that one knows
			return started, true
		}
		start = earlier
	}
	return start.Add(lasts + time.Duration(overRun)*time.Minute), true
}

// before is a time at which a repeated reservation may have begun before start;
// again is false for one that does not come again.
func before(s *v1alpha1.ReservationSpec, start time.Time) (earlier time.Time, again bool) {
	days := func(flags ...string) bool {
		return slices.ContainsFunc(flags, func(f string) bool { return Flagged(s, f) })
	}
	switch {
	case Flagged(s, "HOURLY"):
		return start.Add(-time.Hour), true
	case days("DAILY", "WEEKDAY", "WEEKEND"):
		return start.AddDate(0, 0, -1), true
	case Flagged(s, "WEEKLY"):
		return start.AddDate(0, 0, -7), true
	}
	return start, false
}
