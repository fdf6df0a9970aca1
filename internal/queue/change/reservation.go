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
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// ReservationEnvironment is what a change of a reservation is checked against.
type ReservationEnvironment struct {
	Now           time.Time
	User, Account func(name string) bool
	// Licenses returns the number of licenses of the name; 0: there are none.
	Licenses func(name string) int32
}

// scontrolError is a refusal that scontrol prints itself. It says what is wrong,
// and that the reservation was not created or updated.
type scontrolError struct {
	setting refusal.Setting // Message is only what is wrong
	update  bool            // else creation
}

func (e scontrolError) Error() string {
	if e.update {
		return e.setting.Error() + ".  No reservation update."
	}
	return e.setting.Error() + ".  No reservation created."
}

// Unwrap returns the refusal with the whole message.
func (e scontrolError) Unwrap() error {
	e.setting.Message = refusal.Text(e.Error())
	return e.setting
}

func refuseCreation(code status.ErrorCode, parameter, v, problem string) error {
	return scontrolError{setting: refuseSetting(code, parameter, v, problem)}
}

// refuseSettings returns the refusal of settings that do not go together.
func refuseSettings(problem string) error {
	return refuseCreation(status.CodeInvalidSettings, "", "", problem)
}

var (
	errNoStart      = refuseSettings("A start time must be given")
	errNoEnd        = refuseSettings("An end time or duration must be given")
	errNoSize       = refuseSettings("CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified")
	errNoUsers      = refuseSettings("Either Users/Groups and/or Accounts must be specified")
	errEndsTooEarly = refuseSettings("Start time cannot be after end time")
)

// maxPast is how long before its creation a reservation may start.
const maxPast = time.Minute

// Reservation makes the settings in s. isNew: the reservation is being created.
// moved reports whether its nodes or its time have changed. After an error s must not be
// used.
func Reservation(
	s *v1alpha1.ReservationSpec, set map[string]string, env *ReservationEnvironment, isNew bool,
) (moved bool, err error) {
	c := &reservationChange{ReservationEnvironment: env, s: s, set: set, isNew: isNew}
	err = c.run()
	if !isNew {
		err = c.updateError(err)
	}
	return c.moved, err
}

// reservationChange is a change of a reservation in progress.
type reservationChange struct {
	*ReservationEnvironment
	s     *v1alpha1.ReservationSpec
	set   map[string]string // the settings
	isNew bool

	moved    bool      // nodes or time have changed
	hasStart bool      // the start is among the settings
	hasEnd   bool      // the end or the duration is
	end      time.Time // zero: the duration counts
}

// updateError returns the error of an update: some problems have other messages
// than in a creation.
func (c *reservationChange) updateError(err error) error {
	changesCores := c.set["corecnt"]+c.set["corecount"] != ""
	var local scontrolError
	switch {
	case err == nil && len(c.s.Users)+len(c.s.Accounts)+len(c.s.Groups) == 0:
		return refusal.ReservationUsersMissing
	case err == nil && len(c.s.Users) > 0 && len(c.s.Groups) > 0:
		return refusal.ReservationUsersGroups
	case err == nil:
		return nil
	case changesCores, c.set["tres"] != "" && errors.Is(err, refusal.NotSupported):
		return refusal.ReservationCoresFixed
	case errors.Is(err, errEndsTooEarly):
		return refusal.InvalidTime
	case errors.As(err, &local):
		local.update = true
		return local
	}
	return err
}

// run makes the settings in the order of their names.
func (c *reservationChange) run() error {
	for _, key := range slices.Sorted(maps.Keys(c.set)) {
		if err := c.apply(key, c.set[key]); err != nil {
			return err
		}
	}
	if !c.end.IsZero() {
		if !c.end.After(c.s.StartTime.Time) {
			return errEndsTooEarly
		}
		c.s.Duration = clampMinutes((c.end.Unix() - c.s.StartTime.Unix() + 59) / 60)
	}
	if c.isNew {
		return c.checkComplete()
	}
	return nil
}

// sign is how a key ends: '+' extends a value, '-' reduces it, anything else sets
// it.
func sign(key string) byte { return key[len(key)-1] }

// reservationSetting is one parameter of scontrol update for a reservation.
type reservationSetting struct {
	// plain is the name in the refusal of += and -=; "": they are accepted.
	plain string
	moves bool // it changes nodes or time
	set   func(c *reservationChange, key, v string) error
}

// reservationSettings are scontrol's parameters of a reservation, in lower case
// and without + or -.
var reservationSettings = map[string]reservationSetting{
	"starttime": {moves: true, set: setResvStart},
	"endtime":   {moves: true, set: setResvEnd},
	"duration":  {moves: true, set: setResvDuration},

	"nodes":     {plain: "nodes", moves: true, set: setResvNodes},
	"nodecnt":   {plain: "nodecnt", moves: true, set: setResvNodeCount},
	"nodecount": {plain: "nodecount", moves: true, set: setResvNodeCount},
	"tres":      {plain: "tres", moves: true, set: setResvTRES},
	"corecnt":   {set: setResvCores},
	"corecount": {set: setResvCores},
	"licenses":  {plain: "licenses", set: setResvLicenses},
	"license":   {plain: "licenses", set: setResvLicenses},

	"users":    {set: editResvUsers},
	"user":     {set: editResvUsers},
	"accounts": {set: editResvAccounts},
	"account":  {set: editResvAccounts},
	"groups":   {set: editResvGroups},
	"group":    {set: editResvGroups},

	"partitionname": {set: setResvPartition},
	"partition":     {set: setResvPartition},
	"features":      {set: setResvFeatures},
	"feature":       {set: setResvFeatures},
	"flags":         {set: editResvFlags},
	"flag":          {set: editResvFlags},

	"maxstartdelay": {set: refuseResvStartDelay},
	"watts":         {set: refuseResvWatts},
	"burstbuffer":   {set: refuseResvSetting},
	"skip":          {set: refuseResvSetting},
}

func (c *reservationChange) apply(key, v string) error {
	name := strings.TrimRight(key, "+-")
	setting, ok := reservationSettings[name]
	if !ok {
		return refuseCreation(status.CodeUnknownParameter, key, v, "Unknown parameter "+key+"="+v)
	}
	if setting.plain != "" && key != name {
		problem := "The +=/-= notation is not supported when updating " + setting.plain
		return scontrolError{refuseSetting(status.CodeInvalidSettings, name, v, problem), true}
	}
	if err := setting.set(c, key, v); err != nil {
		return err
	}
	c.moved = c.moved || setting.moves
	return nil
}

func setResvStart(c *reservationChange, key, v string) error {
	t, err := value.Instant(v, c.Now)
	switch {
	case err != nil:
		return invalidResvTime("start", key, v)
	case t.Before(c.Now.Add(-maxPast)):
		return refusal.InvalidTime
	}
	c.s.StartTime, c.hasStart = metav1.NewTime(t), true
	return nil
}

func setResvEnd(c *reservationChange, key, v string) error {
	t, err := value.Instant(v, c.Now)
	if err != nil {
		return invalidResvTime("end", key, v)
	}
	c.end, c.hasEnd = t, true
	return nil
}

func invalidResvTime(which, key, v string) error {
	if v == "" {
		return refusal.InvalidTime
	}
	return refuseCreation(status.CodeInvalidInstant, key, v, "Invalid "+which+" time "+key+"="+v)
}

func setResvDuration(c *reservationChange, key, v string) error {
	c.hasEnd = true
	m, err := value.Minutes(v)
	switch {
	case err != nil || strings.HasPrefix(v, "+") || strings.HasPrefix(v, "-"):
		return invalidResvDuration(strings.TrimRight(key, "+-"), v)
	case sign(key) == '+' && (m == job.Unlimited || c.s.Duration == job.Unlimited):
		c.s.Duration = job.Unlimited
	case sign(key) == '+':
		c.s.Duration = clampMinutes(int64(c.s.Duration) + int64(m))
	case sign(key) == '-' && (m == job.Unlimited || m >= c.s.Duration):
		return refusal.InvalidTime
	case sign(key) == '-':
		c.s.Duration -= m
	case m == 0:
		c.s.Duration = job.Unlimited
	default:
		c.s.Duration = m
	}
	return nil
}

func invalidResvDuration(key, v string) error {
	return refuseCreation(status.CodeInvalidValue, key, v, "Invalid duration "+key+"="+v)
}

func editResvUsers(c *reservationChange, key, v string) error {
	return editNames(&c.s.Users, key, v, c.User, refusal.InvalidUser)
}

func editResvAccounts(c *reservationChange, key, v string) error {
	return editNames(&c.s.Accounts, key, v, c.Account, refusal.InvalidAccount)
}

func editResvGroups(c *reservationChange, key, v string) error {
	return editNames(&c.s.Groups, key, v, anyName, refusal.InvalidUser)
}

// editNames sets, extends (key+) or shortens (key-) a list of names. A name after
// "-" excludes a user or account.
func editNames(list *[]string, key, v string, exists func(string) bool, unknown refusal.Text) error {
	names := slices.DeleteFunc(strings.Split(v, ","), func(n string) bool { return n == "" })
	for _, n := range names {
		if !exists(strings.TrimPrefix(n, "-")) {
			return unknown
		}
	}
	switch sign(key) {
	case '+':
		for _, n := range names {
			if !slices.Contains(*list, n) {
				*list = append(*list, n)
			}
		}
	case '-':
		*list = slices.DeleteFunc(*list, func(n string) bool { return slices.Contains(names, n) })
	default:
		*list = names
	}
	return nil
}

func setResvPartition(c *reservationChange, _, v string) error {
	c.s.Partition = v
	return nil
}

func setResvFeatures(c *reservationChange, _, v string) error {
	if !c.isNew && v != c.s.Features {
		return refusal.NotSupported
	}
	c.s.Features = v
	return nil
}

func setResvLicenses(c *reservationChange, _, v string) error {
	var j job.Job
	if v != "" && option.Apply(option.Sbatch, &j, "licenses", v) != nil {
		return refusal.InvalidLicense
	}
	c.s.Licenses = nil
	for _, l := range j.Licenses {
		// A name may occur several times; the difference cannot overflow.
		if c.Licenses(l.Name)-c.s.Licenses[l.Name] < max(l.Count, 1) {
			return refusal.InvalidLicense
		}
		if c.s.Licenses == nil {
			c.s.Licenses = map[string]int32{}
		}
		c.s.Licenses[l.Name] += l.Count
	}
	return nil
}

// refuseResvStartDelay refuses every delay: no job from outside overlaps with a
// reservation (--signal=R:).
func refuseResvStartDelay(_ *reservationChange, key, v string) error {
	if _, err := value.Minutes(v); err != nil {
		return invalidResvDuration(key, v)
	}
	return refusal.NotSupported
}

func refuseResvWatts(*reservationChange, string, string) error {
	return refuseSettings("A power reservation must be empty and set the LICENSE_ONLY flag")
}

func refuseResvSetting(*reservationChange, string, string) error { return refusal.NotSupported }

// checkComplete refuses a new reservation that lacks something. As in Slurm, one
// that names only a partition has all of its nodes.
func (c *reservationChange) checkComplete() error {
	s := c.s
	hasSize := func() bool {
		return s.Nodes != "" || s.NodeCount != 0 || len(s.Licenses)+len(s.CoreCounts) > 0
	}
	if s.Partition != "" && !hasSize() {
		s.Nodes, s.Flags = "ALL", append(without(s.Flags, "PART_NODES"), "PART_NODES")
	}
	switch {
	case !c.hasStart:
		return errNoStart
	case !c.hasEnd:
		return errNoEnd
	case !hasSize():
		return errNoSize
	case len(s.Users) > 0 && len(s.Groups) > 0:
		return refusal.ReservationUsersGroups
	case len(s.Users)+len(s.Accounts)+len(s.Groups) == 0:
		return errNoUsers
	}
	return nil
}

// Span returns the start and the end of the reservation in Unix seconds.
func Span(s *v1alpha1.ReservationSpec) (from, to int64) {
	from = s.StartTime.Unix()
	if s.Duration < 0 {
		return from, math.MaxInt64
	}
	return from, from + int64(s.Duration)*60
}

// FormatLicenses returns licenses as scontrol shows them: "a:1,b:2".
func FormatLicenses(l map[string]int32) string {
	terms := make([]string, 0, len(l))
	for _, name := range slices.Sorted(maps.Keys(l)) {
		terms = append(terms, name+":"+strconv.Itoa(int(l[name])))
	}
	return strings.Join(terms, ",")
}
