package bounds_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/job"
)

// TestEveryFieldOfAJobHasARule fails when a field is added to job.Job, or to a
// type within it, and nobody says how much of it may be asked for.
func TestEveryFieldOfAJobHasARule(t *testing.T) {
	for _, lack := range bounds.Missing[job.Job](bounds.JobRules) {
		t.Error(lack)
	}
}
