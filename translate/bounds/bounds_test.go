package bounds_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/job"
)

// TestEveryFieldOfAJobHasARule fails when a field is added to job.Job, or to a type in
// it, without a rule.
func TestEveryFieldOfAJobHasARule(t *testing.T) {
	for _, missing := range bounds.Missing[job.Job](bounds.JobRules()) {
		t.Error(missing)
	}
}
