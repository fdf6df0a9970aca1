package decide

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/value"
)

// schedule returns the crontab schedule of a job that scrontab created, which goes
// back to the queue after each run until its next time; nil: none.
func schedule(b *v1alpha1.BatchJob) *value.Cron {
	text, ok := b.Spec.Job.Options[wire.OptionCron]
	if !ok {
		return nil
	}
	c, err := value.ParseCron(text)
	if err != nil {
		return nil
	}
	return c
}

// recurs reports whether the job has a schedule by which it runs again.
func (f *Facts) recurs() bool {
	return schedule(f.Job) != nil && f.Job.Spec.Job.Hold == "" && !f.Job.EndRequested() &&
		f.Job.Status.State != v1alpha1.StateCancelled
}

// scheduleNextRun delays a job that was requeued after its run until the next time of its
// schedule.
func scheduleNextRun(b *v1alpha1.BatchJob, s *v1alpha1.BatchJobStatus, now time.Time) {
	c := schedule(b)
	if c == nil || b.Status.State == v1alpha1.StateCompleting {
		return // no schedule, or the run is to be repeated
	}
	if next := c.Next(now); !next.IsZero() {
		t := metav1.NewMicroTime(next)
		s.EligibleTime = &t
	}
}
