package record

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
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

// The steps are in Slurm's order, and newer reports replace older ones.
func TestStepsAreMergedAndSorted(t *testing.T) {
	stored := []status.StepRecord{{Step: "10", State: "RUNNING"}, {Step: "2", State: "RUNNING"}, {Step: "interactive"}}
	newer := []status.StepRecord{{Step: "2", State: "COMPLETED", Start: 1, End: 2}, {Step: "extern"}, {Step: "0+1"}, {Step: "x"}}
	r := status.Record{State: "RUNNING", Batch: true, Nodes: 1, Steps: MergeSteps(stored, newer)}
	CompleteSteps(&r)
	var names []string
	for _, s := range r.Steps {
		names = append(names, s.Step)
		if s.Step == "2" && s.State != "COMPLETED" {
			t.Errorf("step 2 is %s", s.State)
		}
	}
	if want := []string{"batch", "extern", "interactive", "0+1", "2", "10", "x"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// The batch step of a job whose agent has not reported it follows from the job: its state,
// its exit code, and its share of the CPUs.
func TestBatchStepFollowsFromTheJob(t *testing.T) {
	job := status.Record{Batch: true, Nodes: 2, CPUs: 8, NodeList: "n[3-4]", Start: 10, End: 20, Suspended: 3, AllocTRES: "cpu=8,mem=100M,node=2"}
	for _, tt := range []struct {
		state            string
		code, signal     int32
		want             string
		wantCode, wantSg int32
	}{
		{"COMPLETED", 0, 0, "COMPLETED", 0, 0},
		{"FAILED", 3, 0, "FAILED", 3, 0},
		{"FAILED", 0, 9, "CANCELLED", 0, 9},
		{"TIMEOUT", 0, 0, "CANCELLED", 0, 15},
		{"CANCELLED", 0, 9, "CANCELLED", 0, 9},
		{"PREEMPTED", 1, 0, "CANCELLED", 1, 0},
		{requeued, 0, 0, "CANCELLED", 0, 15},
		{"NODE_FAIL", 0, 0, "NODE_FAIL", 0, 0},
	} {
		r := job
		r.State, r.ExitCode, r.Signal = tt.state, tt.code, tt.signal
		CompleteSteps(&r)
		if len(r.Steps) != 1 {
			t.Fatalf("%s: %d steps", tt.state, len(r.Steps))
		}
		s := r.Steps[0]
		if s.State != tt.want || s.ExitCode != tt.wantCode || s.Signal != tt.wantSg || s.NodeList != "n3" || s.CPUs != 4 ||
			s.Start != 10 || s.End != 20 || s.Suspended != 3 || s.AllocTRES != "cpu=4,mem=50M,node=1" {
			t.Errorf("%s: %+v", tt.state, s)
		}
	}
	for name, r := range map[string]status.Record{
		"an allocation":          {Nodes: 1, State: "COMPLETED"},
		"a job that never ran":   {Batch: true, State: "CANCELLED"},
		"a job on unknown nodes": {Batch: true, Nodes: 1, CPUs: 4, BatchCPUs: 3, NodeList: "n[", State: "COMPLETED"},
	} {
		CompleteSteps(&r)
		switch {
		case name == "a job on unknown nodes":
			if len(r.Steps) != 1 || r.Steps[0].NodeList != "" || r.Steps[0].CPUs != 3 {
				t.Errorf("%s: %+v", name, r.Steps)
			}
		case len(r.Steps) != 0:
			t.Errorf("%s has steps: %+v", name, r.Steps)
		}
	}
}

// A step that was killed for memory has the state of its job, and a cancelled one the user
// who cancelled the job, unless it was cancelled by itself.
func TestStepsOfKilledJobs(t *testing.T) {
	r := status.Record{State: "OUT_OF_MEMORY", KilledBy: "anna", Steps: []status.StepRecord{
		{Step: "0", State: "CANCELLED", Signal: 9, End: 1}, {Step: "1", State: "CANCELLED", Signal: 15, End: 1},
		{Step: "2", State: "CANCELLED", KilledBy: "ben", End: 1}, {Step: "3", State: "COMPLETED", End: 1},
	}}
	CompleteSteps(&r)
	for i, want := range []string{"OUT_OF_MEMORY ", "CANCELLED anna", "CANCELLED ben", "COMPLETED "} {
		if s := r.Steps[i]; s.State+" "+s.KilledBy != want {
			t.Errorf("step %s: %s by %q, want %q", s.Step, s.State, s.KilledBy, want)
		}
	}
}

func TestReportedSteps(t *testing.T) {
	s := wire.StepRecord{ID: 3, Name: "a", Nodes: []string{"n1", "n2"}, CPUs: 4, Tasks: 2, State: "CANCELLED", Start: 5e9, End: 9e9}
	for by, want := range map[string]bool{"anna": true, "eve": false, "": false} {
		s.KilledBy = by
		got := OfStep(&s, users{})
		if got.Step != "3" || got.Start != 5 || got.End != 9 || got.AllocTRES != "cpu=4,node=2" || (got.KilledByID != nil) != want {
			t.Errorf("cancelled by %q: %+v", by, got)
		}
		if want && (*got.KilledByID != 1001 || got.KilledBy != "anna") {
			t.Errorf("cancelled by %q: %+v", by, got)
		}
	}
	if got := OfStep(&s, nil); got.KilledBy != "" {
		t.Errorf("without users: %+v", got)
	}
}

// As in Slurm 22.05.8, the batch step has the generic resources of its node, and other steps
// those that they may use.
func TestGRESOfSteps(t *testing.T) {
	r := status.Record{State: "RUNNING", Batch: true, Nodes: 2, CPUs: 4, BatchCPUs: 2,
		AllocTRES: "billing=4,cpu=4,gres/gpu:tesla=2,gres/gpu=2,mem=400M,node=2"}
	r.Steps = []status.StepRecord{OfStep(&wire.StepRecord{CPUs: 1, GPUs: 2}, nil)}
	CompleteSteps(&r)
	var got []string
	for _, s := range r.Steps {
		got = append(got, s.AllocTRES)
	}
	const batch = "cpu=2,gres/gpu:tesla=1,gres/gpu=1,mem=200M,node=1"
	if len(got) != 2 || !slices.Contains(got, batch) || !strings.Contains(got[0]+got[1], "gres/gpu=2") {
		t.Errorf("%q, want %q", got, batch)
	}
}
