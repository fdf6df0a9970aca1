package change

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/status"
)

// malformedError is the refusal of a value or parameter that is invalid for every
// object. Slurm's scontrol detects it without the help of slurmctld.
type malformedError struct{ refusal.Setting }

// Unwrap returns the refusal.
func (e malformedError) Unwrap() error { return e.Setting }

// malformed returns the refusal of a value.
func malformed(parameter, v, message string) error {
	return malformedError{refuseSetting(status.CodeInvalidValue, parameter, v, message)}
}

// malformedCount returns the refusal of a number.
func malformedCount(parameter, v, message string) error {
	return malformedError{refuseSetting(status.CodeInvalidCount, parameter, v, message)}
}

// malformedInstant returns the refusal of a point in time.
func malformedInstant(parameter, v string) error { return malformedError{invalidInstant(parameter, v)} }

func invalidInstant(parameter, v string) refusal.Setting {
	return refuseSetting(status.CodeInvalidInstant, parameter, v, "Invalid "+parameter+" value: "+v)
}

func refuseSetting(code status.ErrorCode, parameter, v, message string) refusal.Setting {
	return refusal.Setting{Message: refusal.Text(message), Code: code, Parameter: parameter, Value: v}
}

// UnknownParameter returns the refusal of a parameter that does not exist.
func UnknownParameter(key, v string) error {
	message := "Update of this parameter is not supported: " + key + "=" + v
	return malformedError{refuseSetting(status.CodeUnknownParameter, key, v, message)}
}

func anyName(string) bool { return true }

func anyStored(name string) (stored string, ok bool) { return name, true }

// CheckJobSettings refuses settings that no job could have. scontrol does so before
// it asks whether the job exists, and names the first of several. keys are those of set in
// the order in which they were given. now has the user's time zone.
func CheckJobSettings(set map[string]string, keys []string, now time.Time) error {
	c := &jobChange{b: &v1alpha1.BatchJob{}, Environment: &Environment{
		Now: now, Operator: true, Priority: math.MaxInt64,
		Partition: func(string) *v1alpha1.Partition { return &v1alpha1.Partition{} },
		Account:   anyStored, QOS: anyStored, Node: anyName, Reservation: anyName, License: anyName,
		Job: func(int64) *v1alpha1.BatchJob { return nil },
	}}
	for _, key := range inOrder(set, keys) {
		s, ok := jobSettings[strings.ToLower(key)]
		if !ok {
			return UnknownParameter(key, set[key])
		}
		if err := s.set(c, set[key]); errors.As(err, new(malformedError)) {
			return err
		}
	}
	return nil
}

// inOrder returns the keys of set: first those of keys in their order, then the rest.
func inOrder(set map[string]string, keys []string) []string {
	var out []string
	for _, key := range slices.Concat(keys, slices.Sorted(maps.Keys(set))) {
		if _, ok := set[key]; ok && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// CheckReservationSettings refuses settings that no reservation could have, or with
// which no new one (isNew) could be created.
func CheckReservationSettings(set map[string]string, now time.Time, isNew bool) error {
	env := &ReservationEnvironment{
		Now: now, User: anyName, Account: anyName,
		Licenses: func(string) int32 { return math.MaxInt32 },
	}
	_, err := Reservation(&v1alpha1.ReservationSpec{}, set, env, isNew)
	if errors.As(err, new(scontrolError)) || errors.As(err, new(malformedError)) {
		return err
	}
	return nil
}
