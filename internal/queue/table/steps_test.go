package table_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// onNodes makes a job run on the nodes n1 and n2 in its first attempt.
func onNodes(b *v1alpha1.BatchJob) {
	fake.InState(v1alpha1.StateRunning)(b)
	b.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 2}, {Name: "n2", CPUs: 2}}}
	b.Status.StartTime = &submitted
}

// running returns the record of a running step on both nodes.
func running(id int32) wire.StepRecord {
	return wire.StepRecord{ID: id, Name: fmt.Sprint("step", id), Nodes: []string{"n1", "n2"}, CPUs: 4, Tasks: 2,
		State: v1alpha1.StateRunning, Start: 5e9}
}

func names(steps []status.Step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, s.ID)
	}
	return out
}

// TestStepsFollowTheReports: the steps of a job are those that its agents have reported
// and that have not ended, in the order of squeue -s.
func TestStepsFollowTheReports(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, batchJob(1, "anna", onNodes))
	list := func() []string { return names(tab.Steps(t.Context(), table.Query{})) }
	if got := list(); !slices.Equal(got, []string{"1.batch"}) {
		t.Errorf("before the first report: %v", got)
	}
	r := tab.Get(1)
	if !tab.HasStep(r, 0) || !tab.HasStep(r, wire.StepBatch) {
		t.Error("a job whose agents have not reported yet may have any step")
	}
	tab.RecordSteps(1, 1, []wire.StepRecord{running(10), running(wire.StepBatch), running(2), running(wire.StepExtern)})
	if got := list(); !slices.Equal(got, []string{"1.2", "1.10", "1.extern", "1.batch"}) &&
		!slices.Equal(got, []string{"1.2", "1.10", "1.batch", "1.extern"}) {
		t.Errorf("reported: %v", got)
	}
	if !tab.HasStep(r, 2) || tab.HasStep(r, 3) {
		t.Error("a reported step is not there, or another is")
	}
	ended, failed := running(2), running(10)
	ended.End = 9e9
	failed.State = "FAILED"
	tab.RecordSteps(1, 1, []wire.StepRecord{ended, failed, running(wire.StepExtern)})
	if got := list(); len(got) != 2 || slices.Contains(got, "1.2") || tab.HasStep(r, 10) {
		t.Errorf("after two have ended: %v", got)
	}
}

// TestReportsOfOtherAttempts: reports about an unknown, earlier or ended attempt change
// nothing, and a requeued job begins without steps.
func TestReportsOfOtherAttempts(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, batchJob(1, "anna", onNodes))
	tab.RecordSteps(1, 1, []wire.StepRecord{running(0)})
	tab.RecordSteps(1, 2, []wire.StepRecord{running(1)})
	tab.RecordSteps(2, 1, []wire.StepRecord{running(2)})
	if got := names(tab.Steps(t.Context(), table.Query{})); !slices.Equal(got, []string{"1.0"}) {
		t.Errorf("%v", got)
	}
	fake.Feed(c, batchJob(1, "anna", func(b *v1alpha1.BatchJob) { onNodes(b); b.Status.Attempt = 2 }))
	tab.RecordSteps(1, 1, []wire.StepRecord{running(3)})
	tab.RecordSteps(1, 2, []wire.StepRecord{running(4)})
	if got := names(tab.Steps(t.Context(), table.Query{})); !slices.Equal(got, []string{"1.4"}) {
		t.Errorf("in the second attempt: %v", got)
	}
	fake.Feed(c, batchJob(1, "anna", func(b *v1alpha1.BatchJob) {
		onNodes(b)
		b.Status.State, b.Status.Attempt = v1alpha1.StateCompleted, 2
	}))
	tab.RecordSteps(1, 2, []wire.StepRecord{running(5)})
	if got := tab.Steps(t.Context(), table.Query{}); len(got) != 0 || !tab.HasStep(tab.Get(1), 4) {
		t.Errorf("of a job that has ended: %v", names(got))
	}
}

// TestStepsOfAJobAreBounded: agents have the uid of their user, who may make them
// report any number of steps.
func TestStepsOfAJobAreBounded(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, batchJob(1, "anna", onNodes))
	for from := int32(0); from < 5000; from += 500 {
		var list []wire.StepRecord
		for i := range int32(500) {
			list = append(list, running(from+i))
		}
		tab.RecordSteps(1, 1, list)
	}
	if n := len(tab.Steps(t.Context(), table.Query{})); n != 2000 {
		t.Errorf("%d steps are stored", n)
	}
	ended := running(7)
	ended.End = 1
	tab.RecordSteps(1, 1, []wire.StepRecord{ended, running(4999)})
	if r := tab.Get(1); tab.HasStep(r, 7) || !tab.HasStep(r, 4999) {
		t.Error("a step that ended makes no room for another")
	}
}

// TestStepRows: what squeue -s and scontrol show step print about a step.
func TestStepRows(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, fake.User("anna", 1001),
		batchJob(1, "anna", onNodes),
		batchJob(5, "anna", func(b *v1alpha1.BatchJob) {
			onNodes(b)
			b.Spec.Origin = &v1alpha1.Origin{JobID: 4}
			b.Spec.Task = &v1alpha1.ArrayTask{Index: 12}
		}),
		batchJob(6, "anna", func(b *v1alpha1.BatchJob) { onNodes(b); b.Spec.Job.Batch.Client = "salloc" }),
		batchJob(7, "anna", nil),
	)
	full := running(3)
	full.TimeLimit, full.Memory, full.GPUs, full.Layout = 30, 2048, 2, "Cyclic"
	full.SrunHost, full.SrunPID = "n1", 77
	tab.RecordSteps(1, 1, []wire.StepRecord{full, running(wire.StepInteractive)})
	tab.RecordSteps(5, 1, []wire.StepRecord{running(0)})
	steps := map[string]status.Step{}
	for _, s := range tab.Steps(t.Context(), table.Query{}) {
		steps[s.ID] = s
	}
	s := steps["1.3"]
	if s.JobID != 1 || s.Number != 3 || s.Name != "step3" || s.User != "anna" || s.UID != 1001 || s.NodeList != "n[1-2]" ||
		s.Nodes != 2 || s.CPUs != 4 || s.Tasks != 2 || s.Start != 5 || s.TimeLimit != 30 || s.State != "RUNNING" ||
		s.Dist != "Cyclic" || s.SrunHost != "n1" || s.SrunPID != 77 || s.TRES != "cpu=4,gres/gpu=2,mem=2G,node=2" {
		t.Errorf("%+v", s)
	}
	if s := steps["1.interactive"]; s.TRES != "" || s.TimeLimit != -1 || s.SrunPID != 0 {
		t.Errorf("a step without a number: %+v", s)
	}
	if s := steps["4_12.0"]; s.JobID != 5 || s.ArrayJobID != 4 || s.ArrayTaskID != "12" {
		t.Errorf("a step of a task: %+v of %v", s, steps)
	}
	if len(steps) != 3 {
		t.Errorf("allocations without a batch script and pending jobs have steps: %v", steps)
	}
}

// TestStepsOfAQuery: the filters of jobs select steps as well.
func TestStepsOfAQuery(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, batchJob(1, "anna", onNodes), batchJob(2, "ben", onNodes),
		batchJob(3, "ben", func(b *v1alpha1.BatchJob) { onNodes(b); b.Status.State = v1alpha1.StateSuspended }))
	for name, tt := range map[string]struct {
		q    table.Query
		want []string
	}{
		"user":                {table.Query{Users: []string{"ben"}}, []string{"2.batch"}},
		"id":                  {table.Query{IDs: []int64{1}}, []string{"1.batch"}},
		"states are not used": {table.Query{States: []string{"PENDING"}}, []string{"1.batch", "2.batch"}},
		"node":                {table.Query{Nodes: pattern(t, "n3")}, nil},
	} {
		if got := names(tab.Steps(t.Context(), tt.q)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	tab.RecordSteps(3, 1, []wire.StepRecord{running(0)})
	if got := names(tab.Steps(t.Context(), table.Query{IDs: []int64{3}})); !slices.Equal(got, []string{"3.0"}) {
		t.Errorf("of a suspended job: %v", got)
	}
}
