package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// LimitEnds returns when the job reaches its time limit. ok is false if the job has no
// limit, has not started, or is suspended, as time does not count then.
func (s *BatchJobStatus) LimitEnds() (at time.Time, ok bool) {
	if s.TimeLimit <= 0 || s.TimeLimit == job.Unlimited || s.StartTime == nil || s.State == StateSuspended {
		return time.Time{}, false
	}
	return s.StartTime.Add(time.Duration(s.TimeLimit)*time.Minute + time.Duration(s.Suspended)*time.Second), true
}

// EligibleSecond returns the first whole second from EligibleTime on, as Unix time: the
// planner counts in seconds. 0: the job has no EligibleTime.
func (s *BatchJobStatus) EligibleSecond() int64 {
	if s.EligibleTime.IsZero() {
		return 0
	}
	return s.EligibleTime.Add(time.Second - time.Nanosecond).Unix()
}

// SuspendedAtEnd returns since when the attempt with the history was suspended when it
// ended, which Slurm shows as its end. ok is false if it was not suspended. The attempt must
// have ended.
func SuspendedAtEnd(history []StateChange) (since metav1.MicroTime, ok bool) {
	for _, c := range slices.Backward(history) {
		switch {
		case c.State == StateSuspended:
			return c.At, true
		case c.State != StateCompleting && !status.JobState(c.State).IsFinal():
			return metav1.MicroTime{}, false
		}
	}
	return metav1.MicroTime{}, false
}
