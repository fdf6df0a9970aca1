package sbatch

import (
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// TestOutcome checks the exit code of sbatch --wait. A job that ran for less than a second
// starts and ends in the same one, like a job that was cancelled while it was pending.
func TestOutcome(t *testing.T) {
	ran := func(state string, code int32) status.Job {
		return status.Job{State: state, ExitCode: code, Start: 7, End: 7, NodeList: "n1"}
	}
	for _, tt := range []struct {
		name string
		rows []status.Job
		code int
		over bool
	}{
		{"completed", []status.Job{ran("COMPLETED", 0)}, 0, true},
		{"failed", []status.Job{ran("COMPLETED", 0), ran("FAILED", 3)}, 3, true},
		{"cancelled in its first second", []status.Job{ran("CANCELLED", 0)}, 1, true},
		{"cancelled while pending", []status.Job{{State: "CANCELLED", Start: 7, End: 7}}, 0, true},
		{"killed", []status.Job{{State: "FAILED", Signal: 9, NodeList: "n1"}}, 1, true},
		{"one task is left", []status.Job{ran("FAILED", 3), ran("RUNNING", 0)}, 0, false},
	} {
		if code, over := outcome(tt.rows); code != tt.code || over != tt.over {
			t.Errorf("%s: %d, %v; want %d, %v", tt.name, code, over, tt.code, tt.over)
		}
	}
}
