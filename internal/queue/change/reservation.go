package change

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/value"
)

// ReservationEnvironment is what a reservation is judged by.
type ReservationEnvironment struct {
	Now           time.Time
	User, Account func(name string) bool
	// Licenses is how many there are of that name; 0: it is unknown.
	Licenses func(name string) int32
}

// What scontrol says of a reservation that lacks something; the rest of the
// line is scontrol's.
const (
	NoReservation              = ".  No reservation created."
	NoUpdate                   = ".  No reservation update."
	NoStart       refusal.Text = "A start time must be given" + NoReservation
	NoEnd         refusal.Text = "An end time or duration must be given" + NoReservation
	NoSize        refusal.Text = "CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified" + NoReservation
	NoUsers       refusal.Text = "Either Users/Groups and/or Accounts must be specified" + NoReservation
	Backward      refusal.Text = "Start time cannot be after end time" + NoReservation
)

// pastAllowed is how long ago a reservation may begin that is made now.
const pastAllowed = time.Minute

// Reservation makes the settings in s. fresh: it is being made. moved tells
// whether its nodes or its time have changed. After an error s is of no use.
func Reservation(s *v1alpha1.ReservationSpec, set map[string]string, w *ReservationEnvironment, fresh bool) (moved bool, err error) {
	moved, err = applyReservation(s, set, w, fresh)
	var said refusal.Text
	switch {
	case fresh:
		return moved, err
	case err == nil && len(s.Users)+len(s.Accounts)+len(s.Groups) == 0:
		return moved, refusal.ReservationUsersMissing
	case err == nil && len(s.Users) > 0 && len(s.Groups) > 0:
		return moved, refusal.ReservationUsersGroups
	case err != nil && set["corecnt"]+set["corecount"] != "", errors.As(err, &said) && said == refusal.NotSupported && set["tres"] != "":
		return moved, refusal.ReservationCoresFixed
	case errors.As(err, &said) && said == Backward:
		return moved, refusal.InvalidTime
	case errors.As(err, &said):
		if what, created := strings.CutSuffix(string(said), NoReservation); created {
			return moved, refusal.Text(what + NoUpdate)
		}
	}
	return moved, err
}

func applyReservation(s *v1alpha1.ReservationSpec, set map[string]string, w *ReservationEnvironment, fresh bool) (moved bool, err error) {
	var end time.Time
	start, lasts := false, false
	for _, key := range slices.Sorted(maps.Keys(set)) {
		v := set[key]
		switch name := strings.TrimRight(key, "+-"); name {
		case "starttime":
			t, err := value.Instant(v, w.Now)
			switch {
			case err != nil:
				return false, badInstant("start", key, v)
			case t.Before(w.Now.Add(-pastAllowed)):
				return false, refusal.InvalidTime
			}
			s.StartTime, start, moved = metav1.NewTime(t), true, true
		case "endtime":
			t, err := value.Instant(v, w.Now)
			if err != nil {
				return false, badInstant("end", key, v)
			}
			end, lasts, moved = t, true, true
		case "duration":
			if s.Duration, err = duration(key, v, s.Duration); err != nil {
				return false, err
			}
			lasts, moved = true, true
		case "nodes":
			if key != name {
				return false, onlySet("nodes")
			}
			if err = nameNodes(s, v); err != nil {
				return false, err
			}
			moved = true
		case "nodecnt", "nodecount", "tres":
			if key != name {
				return false, onlySet(name)
			}
			if err = countNodes(s, name, v, fresh, fresh && set["nodes"] != ""); err != nil {
				return false, err
			}
			moved = true
		default:
			if err := w.belongs(s, key, name, v, fresh); err != nil {
				return false, err
			}
		}
	}
	if !end.IsZero() {
		if !end.After(s.StartTime.Time) {
			return false, Backward
		}
		s.Duration = int32((end.Unix() - s.StartTime.Unix() + 59) / 60)
	}
	if fresh {
		err = complete(s, start, lasts)
	}
	return moved, err
}

// badInstant is scontrol's answer to what is no point in time.
func badInstant(which, key, v string) error {
	if v == "" {
		return refusal.InvalidTime
	}
	return refusal.Text("Invalid " + which + " time " + key + "=" + v + NoReservation)
}

// complete refuses a reservation that says too little. One that names but a
// partition has its nodes, as in Slurm.
func complete(s *v1alpha1.ReservationSpec, start, lasts bool) error {
	if s.Partition != "" && s.Nodes == "" && s.NodeCount == 0 && len(s.Licenses)+len(s.CoreCounts) == 0 {
		s.Nodes, s.Flags = "ALL", append(without(s.Flags, "PART_NODES"), "PART_NODES")
	}
	switch {
	case !start:
		return NoStart
	case !lasts:
		return NoEnd
	case s.Nodes == "" && s.NodeCount == 0 && len(s.Licenses)+len(s.CoreCounts) == 0:
		return NoSize
	case len(s.Users) > 0 && len(s.Groups) > 0:
		return refusal.ReservationUsersGroups
	case len(s.Users)+len(s.Accounts)+len(s.Groups) == 0:
		return NoUsers
	}
	return nil
}

// duration reads a time that is set, added (key duration+) or taken off.
func duration(key, v string, had int32) (int32, error) {
	m, err := value.Minutes(v)
	switch sign := key[len(key)-1]; {
	case err != nil || strings.HasPrefix(v, "+") || strings.HasPrefix(v, "-"):
		return 0, refusal.Text("Invalid duration " + strings.TrimRight(key, "+-") + "=" + v + NoReservation)
	case sign == '+':
		return had + m, nil
	case sign == '-' && m < had:
		return had - m, nil
	case sign == '-':
		return 0, refusal.InvalidTime
	case m == 0:
		return job.Unlimited, nil
	}
	return m, nil
}

// belongs makes a setting of who may use the reservation, and how.
func (w *ReservationEnvironment) belongs(s *v1alpha1.ReservationSpec, key, name, v string, fresh bool) error {
	switch name {
	case "users", "user":
		return edit(&s.Users, key, v, w.User, refusal.InvalidUser)
	case "accounts", "account":
		return edit(&s.Accounts, key, v, w.Account, refusal.InvalidAccount)
	case "groups", "group":
		return edit(&s.Groups, key, v, func(string) bool { return true }, refusal.InvalidUser)
	case "partitionname", "partition":
		s.Partition = v
	case "features", "feature":
		if !fresh && v != s.Features {
			return refusal.NotSupported
		}
		s.Features = v
	case "flags", "flag":
		return editFlags(s, key, v, fresh)
	case "licenses", "license":
		if key != name {
			return onlySet("licenses")
		}
		return w.licenses(s, v)
	case "maxstartdelay":
		if _, err := value.Minutes(v); err != nil {
			return refusal.Text("Invalid duration " + key + "=" + v + NoReservation)
		}
		return refusal.NotSupported // no job from outside overlaps with a reservation (--signal=R:)
	case "watts":
		return refusal.Text("A power reservation must be empty and set the LICENSE_ONLY flag" + NoReservation)
	case "corecnt", "corecount":
		if !fresh || key != name {
			return refusal.NotSupported
		}
		if len(s.CoreCounts) > 0 { // TRES=cpu= counts
			return nil
		}
		return countCores(s, v)
	case "burstbuffer", "skip":
		return refusal.NotSupported
	default:
		return refusal.Text("Unknown parameter " + key + "=" + v + NoReservation)
	}
	return nil
}

// edit sets, extends (key+) or shortens (key-) a list of names. A name with a
// "-" in front is one who may not.
func edit(to *[]string, key, v string, known func(string) bool, unknown refusal.Text) error {
	names := slices.DeleteFunc(strings.Split(v, ","), func(n string) bool { return n == "" })
	for _, n := range names {
		if !known(strings.TrimPrefix(n, "-")) {
			return unknown
		}
	}
	switch key[len(key)-1] {
	case '+':
		for _, n := range names {
			if !slices.Contains(*to, n) {
				*to = append(*to, n)
			}
		}
	case '-':
		*to = slices.DeleteFunc(*to, func(n string) bool { return slices.Contains(names, n) })
	default:
		*to = names
	}
	return nil
}

func (w *ReservationEnvironment) licenses(s *v1alpha1.ReservationSpec, v string) error {
	var j job.Job
	if v != "" && option.Apply(option.Sbatch, &j, "licenses", v) != nil {
		return refusal.InvalidLicense
	}
	s.Licenses = nil
	for _, l := range j.Licenses {
		if w.Licenses(l.Name) < max(l.Count, 1) {
			return refusal.InvalidLicense
		}
		if s.Licenses == nil {
			s.Licenses = map[string]int32{}
		}
		s.Licenses[l.Name] += l.Count
	}
	return nil
}

// Span is when the reservation begins and ends, Unix seconds.
func Span(s *v1alpha1.ReservationSpec) (from, to int64) {
	from = s.StartTime.Unix()
	if s.Duration < 0 {
		return from, math.MaxInt64
	}
	return from, from + int64(s.Duration)*60
}

// FormatLicenses is "a:1,b:2".
func FormatLicenses(l map[string]int32) string {
	terms := make([]string, 0, len(l))
	for _, name := range slices.Sorted(maps.Keys(l)) {
		terms = append(terms, name+":"+strconv.Itoa(int(l[name])))
	}
	return strings.Join(terms, ",")
}
