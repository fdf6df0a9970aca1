// Package reserve decides who may use a reservation, which nodes and cores it gets,
// and when it ends the jobs in it (scontrol(1), RESERVATIONS). It is pure.
package reserve

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Flagged reports whether the reservation has the flag (upper case).
func Flagged(s *v1alpha1.ReservationSpec, flag string) bool { return slices.Contains(s.Flags, flag) }

// MayUse reports whether the user may use the reservation in the account: by name,
// account or group. Names after "-" exclude users and accounts.
func MayUse(s *v1alpha1.ReservationSpec, user *v1alpha1.User, account string) bool {
	inGroup := func(name string) bool {
		return slices.ContainsFunc(user.Spec.Groups, func(g v1alpha1.Group) bool { return g.Name == name })
	}
	users := parseAccess(s.Users, func(name string) bool { return name == user.Name })
	accounts := parseAccess(s.Accounts, func(name string) bool { return name == account })
	groups := parseAccess(s.Groups, inGroup)
	switch {
	case users.excluded || accounts.excluded:
		return false
	case !users.limited && !accounts.limited && !groups.limited:
		return true
	case users.limited && accounts.limited: // as in Slurm, both must match
		return users.included && accounts.included
	}
	return users.included || accounts.included || groups.included
}

// accessList is what one list of names in a reservation means for a user.
type accessList struct {
	included, excluded bool // a name of the list matches; without and with "-"
	limited            bool // the list includes somebody
}

func parseAccess(names []string, matches func(name string) bool) (l accessList) {
	for _, name := range names {
		excluded, isExclusion := strings.CutPrefix(name, "-")
		if isExclusion {
			l.excluded = l.excluded || matches(excluded)
			continue
		}
		l.limited = true
		l.included = l.included || matches(name)
	}
	return l
}

// Of returns the object name of the reservation that the job runs in, or requests;
// "": none.
func Of(b *v1alpha1.BatchJob) string {
	if r := b.Status.Reservation; r != "" {
		return v1alpha1.ReservationObject(r)
	}
	return v1alpha1.ReservationObject(b.Spec.Job.Reservation)
}

// NoEnd stands for an unlimited number of minutes.
const NoEnd = math.MaxInt32

// ClockSkew is how far the clocks of two schedulers may differ: one has placed a job in a
// reservation that has just begun, and the other writes when the job started.
const ClockSkew = time.Minute

// Ends returns when the reservation ends a job in it that started at the given time;
// ok is false if it never does. Jobs may run for overRun minutes longer than the
// reservation (slurm.conf(5), ResvOverRun). In a repeated reservation, the
// occurrence counts in which the job started, or which began within ClockSkew after that.
func Ends(s *v1alpha1.ReservationSpec, started time.Time, overRun int32) (at time.Time, ok bool) {
	if s.Duration < 0 || overRun == NoEnd || Flagged(s, "FLEX") {
		return time.Time{}, false
	}
	duration := time.Duration(s.Duration) * time.Minute
	start := s.StartTime.Time
	for started.Before(start.Add(-ClockSkew)) {
		earlier, repeated := previousStart(s, start)
		if !repeated || !started.Before(earlier.Add(duration)) { // it started in no occurrence
			return started, true
		}
		start = earlier
	}
	return start.Add(duration + time.Duration(overRun)*time.Minute), true
}

// previousStart returns the latest time before start at which a repeated reservation
// may have started; repeated is false for any other reservation.
func previousStart(s *v1alpha1.ReservationSpec, start time.Time) (earlier time.Time, repeated bool) {
	switch {
	case Flagged(s, "HOURLY"):
		return start.Add(-time.Hour), true
	case Flagged(s, "DAILY"), Flagged(s, "WEEKDAY"), Flagged(s, "WEEKEND"):
		return start.AddDate(0, 0, -1), true
	case Flagged(s, "WEEKLY"):
		return start.AddDate(0, 0, -7), true
	}
	return start, false
}
