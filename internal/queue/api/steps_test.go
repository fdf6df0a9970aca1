package api_test

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// TestSteps: the steps that agents report become rows.
func TestSteps(t *testing.T) {
	s := newServer(t)
	s.add(t, 1, "anna", fake.InState(v1alpha1.StateRunning))
	s.add(t, 2, "anna", fake.InState(v1alpha1.StateRunning))
	s.add(t, 3, "ben", nil)
	s.table.RecordSteps(1, 1, []wire.StepRecord{
		{ID: wire.StepBatch, Name: "batch", Nodes: []string{"n1"}, Tasks: 1, State: "RUNNING", Start: 5e9},
		{ID: 0, Name: "hostname", Nodes: []string{"n1", "n2"}, Tasks: 4, CPUs: 4, State: "RUNNING", Start: 7e9},
		{ID: 1, Name: "over", State: "COMPLETED", End: 9e9},
	})
	s.table.RecordSteps(1, 7, []wire.StepRecord{{ID: 5, Name: "of another attempt", State: "RUNNING"}})
	s.table.RecordSteps(3, 0, nil)
	steps := func(query string) []string {
		var list status.StepList
		if code := s.ask(t, s.proxy, "anna", "GET", wire.QueueRoot+"/steps"+query, nil, &list); code != 200 {
			t.Fatal(code)
		}
		var out []string
		for _, s := range list.Items {
			out = append(out, s.ID+" "+s.Name+" "+s.NodeList)
		}
		return out
	}
	all := []string{"1.0 hostname n[1-2]", "1.batch batch n1", "2.batch batch "}
	if got := steps(""); !slices.Equal(got, all) {
		t.Errorf("%q, want %q", got, all)
	}
	if got, want := steps("?step=1.0"), []string{"1.0 hostname n[1-2]"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
