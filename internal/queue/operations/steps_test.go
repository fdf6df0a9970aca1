package operations_test

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// TestSignalSteps: the command for the agent names the step.
func TestSignalSteps(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "anna", fake.InState(v1alpha1.StateRunning))
	c.add(t, 3, "ben", nil)
	c.table.RecordSteps(1, 1, []wire.StepRecord{
		{ID: wire.StepBatch, Name: "batch", Nodes: []string{"n1"}, State: "RUNNING"},
		{ID: 0, Name: "hostname", Nodes: []string{"n1"}, State: "RUNNING"},
		{ID: 1, Name: "over", State: "COMPLETED", End: 9e9},
	})
	const invalid, unknown = "Invalid job id specified", status.CodeInvalidJobID
	got := c.execute(
		t, "anna",
		status.Operation{Verb: status.OpSignal, Signal: 10, Jobs: []string{"1.0", "1.1", "99.0", "3.0", "1.x"}},
	)
	want := []status.OperationStatus{
		{Job: "1.0"}, {Job: "1.1"}, {Job: "99.0", Error: invalid, Code: unknown},
		{Job: "3.0", Error: "Access/permission denied", Code: status.CodeAccessDenied},
		{Job: "1.x", Error: invalid, Code: unknown},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	got = c.execute(t, "anna", status.Operation{Verb: status.OpCancel, Jobs: []string{"1.1"}})
	want = []status.OperationStatus{{Job: "1.1", Error: invalid, Code: unknown, NoStep: true}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	c.execute(t, "anna", status.Operation{Verb: status.OpCancel, Jobs: []string{"1.batch"}})
	sent := c.agents.Sent()
	if len(sent) != 2 || !slices.Equal(sent[0].Steps, []int32{0}) || sent[0].Signal != 10 || !sent[1].Batch ||
		sent[1].Signal != 9 {
		t.Errorf("%+v", sent)
	}
}

// TestUpdateSteps: the time limit of one step, or of all steps of a job, changes.
func TestUpdateSteps(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "anna", fake.InState(v1alpha1.StateRunning))
	c.table.RecordSteps(1, 1, []wire.StepRecord{
		{ID: wire.StepBatch, State: "RUNNING"}, {ID: 0, State: "RUNNING"}, {ID: 1, State: "RUNNING"},
	})
	for _, tt := range []struct {
		user, step, want string
		steps            []int32
	}{
		{"anna", "1.0", "", []int32{0}},
		{"anna", "1", "", []int32{0, 1}},
		{"ben", "1.0", "Access/permission denied", nil},
		{"anna", "1.7", "Invalid job id specified", nil},
		{"anna", "1.x", "Invalid job id specified", nil},
		{"anna", "1.batch", "Requested operation not supported on this system", nil},
	} {
		before := len(c.agents.Sent())
		op := status.Operation{
			Entity:  status.EntityStep,
			Verb:    status.OpUpdate,
			Targets: []string{tt.step},
			Set:     map[string]string{"TimeLimit": "7"},
		}
		if got := c.operation(t, tt.user, op); got.Error != tt.want {
			t.Errorf("%s %s: %+v, want %q", tt.user, tt.step, got, tt.want)
		}
		var steps []int32
		for _, command := range c.agents.Sent()[before:] {
			steps = append(steps, command.Steps...)
			if command.Kind != wire.CommandLimit || command.Minutes != 7 {
				t.Errorf("%s: %+v", tt.step, command)
			}
		}
		slices.Sort(steps)
		if !slices.Equal(steps, tt.steps) {
			t.Errorf("%s: steps %v, want %v", tt.step, steps, tt.steps)
		}
	}
}
