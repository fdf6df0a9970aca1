package decide

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// SetOutcome sets the outcome in s, the status of b. A job with nodes becomes COMPLETING, one
// without nodes has its final state immediately.
func SetOutcome(b *v1alpha1.BatchJob, s *v1alpha1.BatchJobStatus, o Outcome, at time.Time) {
	now := metav1.NewMicroTime(at)
	if s.State == v1alpha1.StateSuspended {
		SetSuspended(s, false, at) // it counts the last suspension
	}
	s.State, s.Final = v1alpha1.StateCompleting, o.Final
	s.Reason, s.Message = o.Reason, o.Message
	s.EndTime = &now
	if o.Exit != nil {
		s.ExitCode = o.Exit
	}
	if o.Derived != nil {
		s.Derived = o.Derived
	}
	if o.Requested {
		s.Requeues = b.Spec.Requeues
	}
	if s.Allocation == nil {
		s.State, s.Final = o.Final, ""
	}
}

// SetSuspended stops or restarts the job's clock. The job's agent follows the
// state.
func SetSuspended(s *v1alpha1.BatchJobStatus, stop bool, now time.Time) {
	at := metav1.NewMicroTime(now)
	if stop {
		s.State = v1alpha1.StateSuspended
	} else {
		s.State = v1alpha1.StateRunning
		if s.SuspendTime != nil {
			s.Suspended += int64(now.Sub(s.SuspendTime.Time) / time.Second)
		}
	}
	s.SuspendTime = &at
}

// SetFinal sets the status of a job of which nothing runs any more: its final
// state, or PENDING. failures is the number of its consecutive failed starts.
func SetFinal(b *v1alpha1.BatchJob, s *v1alpha1.BatchJobStatus, now time.Time, failures int) {
	final := s.Final
	if s.State != v1alpha1.StateCompleting {
		final = v1alpha1.StatePending
	}
	if final == v1alpha1.StatePending && b.EndRequested() {
		final = v1alpha1.StateCancelled
		s.Requeues = max(s.Requeues, b.Spec.Requeues)
	}
	asked := b.Spec.Requeues > s.Requeues || failures == 0
	s.State, s.Final = final, ""
	if final != v1alpha1.StatePending {
		return
	}
	s.Requeues = max(s.Requeues, b.Spec.Requeues)
	s.Restarts++
	s.Reason = ""
	s.Allocation, s.StartTime, s.EndTime, s.ExitCode, s.Derived = nil, nil, nil, nil, nil
	s.Pods, s.Reservation = nil, ""
	s.EligibleTime, s.SuspendTime, s.Suspended, s.Preempt, s.Cancel = nil, nil, 0, nil, nil
	if !asked {
		t := metav1.NewMicroTime(now.Add(backoff(failures)))
		s.EligibleTime = &t
	}
	scheduleNextRun(b, s, now)
}

// backoff returns how long a job waits after that many consecutive failed starts.
func backoff(failures int) time.Duration {
	return min(2*time.Minute, time.Second<<min(failures-1, 7))
}
