package decide

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// The clock of a job that ends while it is suspended has stood still until its end.
func TestSetOutcomeOfSuspendedJob(t *testing.T) {
	end := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	since := metav1.NewMicroTime(end.Add(-10 * time.Minute))
	s := v1alpha1.BatchJobStatus{
		State: v1alpha1.StateSuspended, SuspendTime: &since, Suspended: 60, Allocation: &v1alpha1.Allocation{},
	}
	SetOutcome(&v1alpha1.BatchJob{}, &s, Outcome{Final: v1alpha1.StateCancelled}, end)
	if s.Suspended != 660 || !s.SuspendTime.Time.Equal(end) || s.State != v1alpha1.StateCompleting {
		t.Errorf("suspended for %d s until %v, state %s; want 660 s", s.Suspended, s.SuspendTime, s.State)
	}
}
