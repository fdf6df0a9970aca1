package v1alpha1

import (
	"time"

	"github.com/berth-hpc/berth/translate/job"
)

// LimitEnds is the instant at which the job's time limit is over; ok is false
// when there is none: no limit, not started, or suspended, when the clock
// stands still.
func (s *BatchJobStatus) LimitEnds() (at time.Time, ok bool) {
	if s.TimeLimit <= 0 || s.TimeLimit == job.Unlimited || s.StartTime == nil || s.State == StateSuspended {
		return time.Time{}, false
	}
	return s.StartTime.Add(time.Duration(s.TimeLimit)*time.Minute + time.Duration(s.Suspended)*time.Second), true
}
