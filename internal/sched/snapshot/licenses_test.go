package snapshot

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
)

// A license that a job names twice counts once, with the sum: the planner compares each
// entry with the free licenses by itself.
func TestLicensesAreMerged(t *testing.T) {
	got := licenses(&job.Job{Licenses: []job.License{
		{Name: "matlab", Count: 3}, {Name: "ansys", Count: 1}, {Name: "matlab", Count: 3},
	}})
	want := []backfill.License{{Name: "matlab", Total: 6}, {Name: "ansys", Total: 1}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
