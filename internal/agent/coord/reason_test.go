package coord

import "testing"

func TestEndReason(t *testing.T) {
	for state, want := range map[string][2]string{
		"CANCELLED": {"", "CANCELLED"},
		"TIMEOUT":   {" DUE TO TIME LIMIT", "TIMEOUT"},
		"PREEMPTED": {" DUE TO PREEMPTION", "CANCELLED"},
		"REQUEUE":   {" DUE TO JOB REQUEUE", "CANCELLED"},
		"NODE_FAIL": {" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", "CANCELLED"},
	} {
		r := ReasonOfState(state)
		if got := [2]string{r.Suffix(), r.state()}; got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
