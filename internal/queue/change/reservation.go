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
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/value"
)

// Pool is what a reservation is judged by.
type Pool struct {
	Now                    time.Time
	User, Account, License func(name string) bool
}

// What scontrol says of a reservation that lacks something; the rest of the
// line is scontrol's.
const (
	NoReservation         = ".  No reservation created."
	NoUpdate              = ".  No reservation update."
	NoStart       Refused = "A start time must be given" + NoReservation
	NoEnd         Refused = "An end time or duration must be given" + NoReservation
	NoSize        Refused = "CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified" + NoReservation
	NoUsers       Refused = "Either Users/Groups and/or Accounts must be specified" + NoReservation
	Backward      Refused = "Start time cannot be after end time" + NoReservation
	BadUser       Refused = "Invalid user id"
	NobodyLeft    Refused = "Reservation request lacks users, groups or accounts"
)

// pastAllowed is how long ago a reservation may begin that is made now.
const pastAllowed = time.Minute

// Flags of a reservation that are understood.
var flags = map[string]bool{
	"MAINT": true, "OVERLAP": true, "IGNORE_JOBS": true, "HOURLY": true, "DAILY": true, "WEEKDAY": true,
	"WEEKEND": true, "WEEKLY": true, "ANY_NODES": true, "STATIC_ALLOC": true, "FLEX": true, "SPEC_NODES": true,
	"ALL_NODES": true, "PURGE_COMP": true, "NO_HOLD_JOBS_AFTER_END": true, "USER_DELETE": true, "LICENSE_ONLY": true,
}

// Flags that Slurm has and that mean something that is not done here.
var otherFlags = map[string]bool{
	"FIRST_CORES": true, "PART_NODES": true, "REPLACE": true, "REPLACE_DOWN": true, "TIME_FLOAT": true, "MAGNETIC": true,
}

// Reservation makes the settings in s. fresh: it is being made. moved tells
// whether its nodes or its time have changed. After an error s is of no use.
func Reservation(s *v1alpha1.ReservationSpec, set map[string]string, w *Pool, fresh bool) (moved bool, err error) {
	moved, err = applyReservation(s, set, w, fresh)
	var said Refused
	switch {
	case fresh:
		return moved, err
	case err == nil && len(s.Users)+len(s.Accounts)+len(s.Groups) == 0:
		return moved, NobodyLeft
	case errors.As(err, &said) && said == Backward:
		return moved, BadTime
	case errors.As(err, &said):
		if what, created := strings.CutSuffix(string(said), NoReservation); created {
			return moved, Refused(what + NoUpdate)
		}
	}
	return moved, err
}

func applyReservation(s *v1alpha1.ReservationSpec, set map[string]string, w *Pool, fresh bool) (moved bool, err error) {
	var end time.Time
	start, lasts := false, false
	for _, key := range slices.Sorted(maps.Keys(set)) {
		v := set[key]
		switch name := strings.TrimRight(key, "+-"); name {
		case "starttime":
			t, err := value.Instant(v, w.Now)
			if err != nil || t.Before(w.Now.Add(-pastAllowed)) {
				return false, BadTime
			}
			s.StartTime, start, moved = metav1.NewTime(t), true, true
		case "endtime":
			t, err := value.Instant(v, w.Now)
			if err != nil {
				return false, BadTime
			}
			end, lasts, moved = t, true, true
		case "duration":
			if s.Duration, err = duration(v, s.Duration); err != nil {
				return false, err
			}
			lasts, moved = true, true
		case "nodes":
			if key != name {
				return false, Refused("The +=/-= notation is not supported when updating nodes" + NoUpdate)
			}
			s.Nodes, s.NodeCount, moved = v, 0, true
			s.Flags = slices.DeleteFunc(s.Flags, func(f string) bool { return f == "ALL_NODES" || f == "SPEC_NODES" })
		case "nodecnt", "nodecount":
			n, err := value.Count(strings.Split(v, ",")[0])
			if err != nil {
				return false, Refused("Invalid node count: " + v)
			}
			s.NodeCount, s.Nodes, moved = n, "", true
		default:
			if err := w.belongs(s, key, name, v); err != nil {
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

func complete(s *v1alpha1.ReservationSpec, start, lasts bool) error {
	switch {
	case !start:
		return NoStart
	case !lasts:
		return NoEnd
	case s.Nodes == "" && s.NodeCount == 0 && len(s.Licenses) == 0:
		return NoSize
	case len(s.Users)+len(s.Accounts)+len(s.Groups) == 0:
		return NoUsers
	}
	return nil
}

func duration(v string, had int32) (int32, error) {
	sign := ""
	if len(v) > 1 && (v[0] == '+' || v[0] == '-') {
		sign, v = v[:1], v[1:]
	}
	m, err := value.Minutes(v)
	switch {
	case err != nil:
		return 0, Refused("Invalid duration: " + v)
	case sign == "+":
		return had + m, nil
	case sign == "-" && m < had:
		return had - m, nil
	case sign == "-":
		return 0, BadTime
	case m == 0:
		return job.Unlimited, nil
	}
	return m, nil
}

// belongs makes a setting of who may use the reservation, and how.
func (w *Pool) belongs(s *v1alpha1.ReservationSpec, key, name, v string) error {
	switch name {
	case "users", "user":
		return edit(&s.Users, key, v, w.User, BadUser)
	case "accounts", "account":
		return edit(&s.Accounts, key, v, w.Account, BadAccount)
	case "groups", "group":
		return edit(&s.Groups, key, v, func(string) bool { return true }, BadUser)
	case "partitionname", "partition":
		s.Partition = v
	case "features", "feature":
		s.Features = v
	case "flags", "flag":
		return editFlags(s, key, v)
	case "licenses", "license":
		return w.licenses(s, v)
	case "maxstartdelay":
		m, err := value.Minutes(v)
		if err != nil {
			return Refused("Invalid MaxStartDelay: " + v)
		}
		s.MaxStartDelay = m * 60
	case "comment":
		s.Comment = v
	case "corecnt", "corecount", "burstbuffer", "watts", "tres", "skip":
		return NotPossible
	default:
		return Refused("Unknown parameter " + key + "=" + v + NoReservation)
	}
	return nil
}

// edit sets, extends (key+) or shortens (key-) a list of names. A name with a
// "-" in front is one who may not.
func edit(to *[]string, key, v string, known func(string) bool, refusal Refused) error {
	names := slices.DeleteFunc(strings.Split(v, ","), func(n string) bool { return n == "" })
	for _, n := range names {
		if !known(strings.TrimPrefix(n, "-")) {
			return refusal
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

func editFlags(s *v1alpha1.ReservationSpec, key, v string) error {
	var names []string
	for f := range strings.SplitSeq(strings.ToUpper(v), ",") {
		f, after, _ := strings.Cut(f, "=")
		switch f = strings.ReplaceAll(f, "IGNORE_RUNNING", "IGNORE_JOBS"); {
		case f == "":
		case otherFlags[f]:
			return NotPossible
		case !flags[f]:
			return Refused("Error parsing flags " + v + NoReservation)
		default:
			names = append(names, f)
		}
		if f == "PURGE_COMP" {
			s.PurgeComp = 300
			if m, err := value.Minutes(after); after != "" && err == nil {
				s.PurgeComp = m * 60
			}
		}
	}
	return edit(&s.Flags, key, strings.Join(names, ","), func(string) bool { return true }, NotPossible)
}

func (w *Pool) licenses(s *v1alpha1.ReservationSpec, v string) error {
	var j job.Job
	if v != "" && option.Apply(option.Sbatch, &j, "licenses", v) != nil {
		return BadLicense
	}
	s.Licenses = nil
	for _, l := range j.Licenses {
		if !w.License(l.Name) {
			return BadLicense
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

// LicenseList is "a:1,b:2".
func LicenseList(l map[string]int32) string {
	terms := make([]string, 0, len(l))
	for _, name := range slices.Sorted(maps.Keys(l)) {
		terms = append(terms, name+":"+strconv.Itoa(int(l[name])))
	}
	return strings.Join(terms, ",")
}
