package api_test

import (
	"net/http"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// TestJobsThatEndedMeanwhileAreNotMeant: between the moment when a filter chooses
// a job and the moment when it is cancelled, the job may end. That is no failure
// of `scancel -u anna`, as it is of `scancel 1`.
func TestJobsThatEndedMeanwhileAreNotMeant(t *testing.T) {
	h := newHouse(t, newAuthority(t))
	h.add(t, 1, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Status.Final = v1alpha1.StateCompleting, v1alpha1.StateCompleted
	})
	h.add(t, 2, "anna", state(v1alpha1.StateRunning))
	for _, c := range []struct {
		op   status.Operation
		want []string
	}{
		{status.Operation{Verb: status.OpCancel, Users: []string{"anna"}, States: []string{"COMPLETING", "RUNNING"}}, []string{""}},
		{status.Operation{Verb: status.OpCancel, Jobs: []string{"1"}}, []string{"Job/step already completing or completed"}},
	} {
		var result status.OperationResult
		if code := h.ask(t, h.proxy, "anna", "POST", wire.QueueRoot+"/operations", c.op, &result); code != http.StatusOK {
			t.Fatal(code)
		}
		var got []string
		for _, item := range result.Items {
			got = append(got, item.Error)
		}
		if len(got) != len(c.want) || got[0] != c.want[0] {
			t.Errorf("%+v: %+v", c.op, result.Items)
		}
	}
}
