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
)

// unreadable is the answer to what nothing could be given: a value that is
// none, a parameter that there is not. Slurm's scontrol finds it by itself.
type unreadable struct{ refusal.Text }

// Unwrap is the answer as any other.
func (u unreadable) Unwrap() error { return u.Text }

func unread(text string) error { return unreadable{refusal.Text(text)} }

// UnknownParameter is the answer to a parameter that there is not.
func UnknownParameter(key, v string) error {
	return unread("Update of this parameter is not supported: " + key + "=" + v)
}

// CheckJobSettings refuses settings that no job could be given, which comes before the
// question whether there is such a job. now has the user's time zone.
func CheckJobSettings(set map[string]string, now time.Time) error {
	anything := func(string) bool { return true }
	c := &changing{b: &v1alpha1.BatchJob{}, Environment: &Environment{
		Now: now, Operator: true, Priority: math.MaxInt64,
		Partition: func(string) *v1alpha1.Partition { return &v1alpha1.Partition{} },
		Account:   anything, QOS: anything, Node: anything, Reservation: anything, License: anything,
		Job: func(int64) *v1alpha1.BatchJob { return nil },
	}}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		s, ok := settings[strings.ToLower(key)]
		if !ok {
			return UnknownParameter(key, set[key])
		}
		if err := s.set(c, set[key]); errors.As(err, new(unreadable)) {
			return err
		}
	}
	return nil
}

// CheckReservationSettings refuses settings that no reservation could be given, or be
// made with (fresh).
func CheckReservationSettings(set map[string]string, now time.Time, fresh bool) error {
	anything := func(string) bool { return true }
	w := &ReservationEnvironment{Now: now, User: anything, Account: anything, Licenses: func(string) int32 { return math.MaxInt32 }}
	_, err := Reservation(&v1alpha1.ReservationSpec{}, set, w, fresh)
	var said refusal.Text
	if !errors.As(err, &said) {
		return nil
	}
	for _, end := range []string{NoReservation, NoUpdate} {
		if strings.HasSuffix(string(said), end) {
			return err
		}
	}
	if errors.As(err, new(unreadable)) {
		return err
	}
	return nil
}
