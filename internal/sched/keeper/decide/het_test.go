package decide

import (
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// When one component of a heterogeneous job loses a node for good, the others fail with
// it, including the one that runs the script, as in Slurm.
func TestHetComponentsFailTogether(t *testing.T) {
	sibling := func(state, final string) *v1alpha1.BatchJob {
		return &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: 8}, Status: v1alpha1.BatchJobStatus{State: state, Final: final, StartTime: at(t0)}}
	}
	for _, tt := range []struct {
		sibling *v1alpha1.BatchJob
		want    Kind
		final   string
	}{
		{sibling(v1alpha1.StateRunning, ""), Wait, ""},
		{sibling(v1alpha1.StateCompleting, v1alpha1.StateCompleted), Wait, ""},
		{sibling(v1alpha1.StateCompleting, v1alpha1.StateNodeFail), End, v1alpha1.StateNodeFail},
		{sibling(v1alpha1.StateNodeFail, ""), End, v1alpha1.StateNodeFail},
	} {
		a := Next(Facts{Job: aJob("RUNNING", noRequeue), Pods: pods(pod(0), pod(1)), Now: t0, Rules: rules, Siblings: []*v1alpha1.BatchJob{tt.sibling},
			Lost: func(string) bool { return false }})
		if a.Kind != tt.want || a.Outcome.Final != tt.final {
			t.Errorf("%s %s: %d %+v", tt.sibling.Status.State, tt.sibling.Status.Final, a.Kind, a.Outcome)
		}
	}
}
