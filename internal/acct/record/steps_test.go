package record

import (
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// A step whose end was not reported ends with its job. A step that was reported
// stays as it is, and so do the steps of a running job.
func TestStepsEndWithTheirJob(t *testing.T) {
	steps := func() []status.StepRecord {
		return []status.StepRecord{
			{Step: "batch", State: "RUNNING", Start: 10}, {Step: "0", State: "COMPLETED", Start: 10, End: 15},
			{Step: "1", State: "RUNNING", Start: 12},
		}
	}
	r := status.Record{State: "FAILED", Signal: 9, Start: 10, End: 20, Nodes: 1, Batch: true, Steps: steps()}
	CompleteSteps(&r)
	for i, want := range []struct {
		state  string
		end    int64
		signal int32
	}{{"CANCELLED", 20, 9}, {"COMPLETED", 15, 0}, {"CANCELLED", 20, 9}} {
		if s := r.Steps[i]; s.State != want.state || s.End != want.end || s.Signal != want.signal {
			t.Errorf("step %s: %s until %d, signal %d; want %+v", s.Step, s.State, s.End, s.Signal, want)
		}
	}
	r = status.Record{State: "RUNNING", Start: 10, Nodes: 1, Batch: true, Steps: steps()}
	CompleteSteps(&r)
	for _, i := range []int{0, 2} {
		if s := r.Steps[i]; s.State != "RUNNING" || s.End != 0 {
			t.Errorf("step %s of a running job: %s until %d", s.Step, s.State, s.End)
		}
	}
}
