package v1alpha1

import (
	"time"

	"github.com/berth-hpc/berth/translate/job"
)

// LimitEnds returns when the job reaches its time limit. ok is false if the job has no
// limit, has not started, or is suspended, as time does not count then.
func (s *BatchJobStatus) LimitEnds() (at time.Time, ok bool) {
	if s.TimeLimit <= 0 || s.TimeLimit == job.Unlimited || s.StartTime == nil || s.State == StateSuspended {
		return time.Time{}, false
	}
	return s.StartTime.Add(time.Duration(s.TimeLimit)*time.Minute + time.Duration(s.Suspended)*time.Second), true
}
