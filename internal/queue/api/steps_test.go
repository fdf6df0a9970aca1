package api_test

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// TestSteps: agents' reports become rows, and a signal for one step names it.
func TestSteps(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.add(t, 1, "anna", state(v1alpha1.StateRunning))
	h.add(t, 2, "anna", state(v1alpha1.StateRunning))
	h.add(t, 3, "ben", nil)
	h.table.TakeSteps(1, 1, []wire.StepRecord{
		{ID: wire.StepBatch, Name: "batch", Nodes: []string{"n1"}, Tasks: 1, State: "RUNNING", Start: 5e9},
		{ID: 0, Name: "hostname", Nodes: []string{"n1", "n2"}, Tasks: 4, CPUs: 4, State: "RUNNING", Start: 7e9},
		{ID: 1, Name: "over", State: "COMPLETED", End: 9e9},
	})
	h.table.TakeSteps(1, 7, []wire.StepRecord{{ID: 5, Name: "of another attempt", State: "RUNNING"}})
	h.table.TakeSteps(3, 0, nil)
	steps := func(query string) []string {
		var list status.StepList
		if code := h.ask(t, h.proxy, "anna", "GET", wire.QueueRoot+"/steps"+query, nil, &list); code != 200 {
			t.Fatal(code)
		}
		var out []string
		for _, s := range list.Items {
			out = append(out, s.ID+" "+s.Name+" "+s.NodeList)
		}
		return out
	}
	if got, want := steps(""), []string{"1.0 hostname n[1-2]", "1.batch batch n1", "2.batch batch "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := steps("?step=1.0"), []string{"1.0 hostname n[1-2]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	operate := func(user, verb string, jobs ...string) []status.OperationStatus {
		var r status.OperationResult
		op := status.Operation{Verb: verb, Jobs: jobs, Signal: 10}
		if code := h.ask(t, h.proxy, user, "POST", wire.QueueRoot+"/operations", op, &r); code != 200 {
			t.Fatal(code)
		}
		return r.Items
	}
	want := []status.OperationStatus{{Job: "1.0"}, {Job: "1.1"},
		{Job: "99.0", Error: "Invalid job id specified"}, {Job: "3.0", Error: "Access/permission denied"}, {Job: "1.x", Error: "Invalid job id specified"}}
	if got := operate("anna", status.OpSignal, "1.0", "1.1", "99.0", "3.0", "1.x"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	want = []status.OperationStatus{{Job: "1.1", Error: "Invalid job id specified", NoStep: true}}
	if got := operate("anna", status.OpCancel, "1.1"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	operate("anna", status.OpCancel, "1.batch")
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.sent) != 2 || !slices.Equal(h.sent[0].Steps, []int32{0}) || h.sent[0].Signal != 10 || !h.sent[1].Batch || h.sent[1].Signal != 9 {
		t.Errorf("%+v", h.sent)
	}
}
