package change_test

import (
	"errors"
	"math"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
)

// A limit that does not fit into the field is too large, and not a small one.
func TestLargeTimeLimits(t *testing.T) {
	for key, v := range map[string]string{"EndTime": "9999-01-01", "TimeLimit": "+2147483646"} {
		set := map[string]string{key: v}
		if _, err := change.Job(running(), set, environment(false)); !errors.Is(err, refusal.AccessDenied) {
			t.Errorf("%s=%s by the user: %v", key, v, err)
		}
		b, err := change.Job(running(), set, environment(true))
		if err != nil || b.Spec.Job.Time.Limit != math.MaxInt32 {
			t.Errorf("%s=%s by an operator: %v", key, v, err)
		}
	}
}

func TestLargeReservations(t *testing.T) {
	yes := func(string) bool { return true }
	env := &change.ReservationEnvironment{Now: now, User: yes, Account: yes, Licenses: matlab(5)}
	for _, tt := range []struct {
		key, value, refused string
		before, after       int32 // the duration
	}{
		{"endtime", "9999-01-01", "", 10, math.MaxInt32},
		{"duration+", "2147483646", "", 10, math.MaxInt32},
		{"duration+", "5", "", job.Unlimited, job.Unlimited},
		{"duration+", "UNLIMITED", "", 10, job.Unlimited},
		{"duration-", "UNLIMITED", "Invalid time specified", 10, 0},
		{"duration-", "5", "Invalid time specified", job.Unlimited, 0},
		{"nodecnt", "1048576k,1048576k", "Invalid node count 1048576k,1048576k", 10, 0},
		{"tres", "node=1048576k,node=1048576k", "invalid TRES node value '1048576k'", 10, 0},
		{"licenses", "matlab:3,matlab:3", "Invalid license specification", 10, 0},
	} {
		s := v1alpha1.ReservationSpec{Duration: tt.before, NodeCount: 1, Users: []string{"anna"}}
		_, err := change.Reservation(&s, map[string]string{tt.key: tt.value}, env, false)
		if message(err) != tt.refused || err == nil && s.Duration != tt.after {
			t.Errorf("%s=%s: %v, duration %d", tt.key, tt.value, err, s.Duration)
		}
	}
}
