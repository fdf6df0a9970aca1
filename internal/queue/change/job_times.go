package change

import (
	"strings"

	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// setTimeLimit sets the limit, or adds to the present one or subtracts from it.
// Only operators raise the limit of a job that has started.
func setTimeLimit(c *jobChange, v string) error {
	limit, err := parseTimeLimit(v)
	if err != nil {
		return err
	}
	minutes, err := limit.apply(c.TimeLimit)
	if err != nil {
		return err
	}
	c.b.Spec.Job.Time.Limit = minutes
	raised := c.TimeLimit != job.Unlimited && (minutes == job.Unlimited || minutes > c.TimeLimit)
	if !c.Operator && (raised && Live(c.b) || c.exceedsMaxTime(minutes)) {
		return refusal.AccessDenied
	}
	return nil
}

// exceedsMaxTime reports whether a time limit in minutes is beyond that of the job's
// partition.
func (c *jobChange) exceedsMaxTime(minutes int32) bool {
	p := c.Partition(c.b.Spec.Partition)
	return p != nil && p.Spec.MaxTime > 0 && (minutes == job.Unlimited || minutes > p.Spec.MaxTime)
}

// setEndTime sets the time limit with which a running job ends at the given time.
func setEndTime(c *jobChange, v string) error {
	end, err := value.Instant(v, c.Now)
	if err != nil {
		return malformedInstant("EndTime", v)
	}
	started := c.b.Status.StartTime
	if started == nil || !Live(c.b) {
		return nil // the state is refused afterwards
	}
	if end.Before(c.Now) {
		return refusal.InvalidTime
	}
	seconds := end.Unix() - started.Unix() - c.b.Status.Suspended
	minutes := clampMinutes((seconds + 59) / 60)
	if c.TimeLimit != job.Unlimited && minutes > c.TimeLimit && !c.Operator {
		return refusal.AccessDenied
	}
	c.b.Spec.Job.Time.Limit = max(minutes, 1)
	return nil
}

// setTimeMin sets the least time limit, which has no effect once the job has
// started.
func setTimeMin(c *jobChange, v string) error {
	minutes, err := value.Minutes(v)
	if err != nil {
		return malformed("TimeMin", v, "Invalid TimeMin value")
	}
	if strings.Trim(v, "0:") == "" { // as in Slurm, as if it were not given
		minutes = 0
	}
	if minutes == job.Unlimited {
		return refusal.InvalidTimeMin
	}
	if Pending(c.b) {
		c.b.Spec.Job.Time.Min = max(minutes, 0)
	}
	return nil
}

func setBegin(c *jobChange, v string) error {
	t, err := value.Instant(v, c.Now)
	if err != nil {
		return malformedInstant("StartTime", v)
	}
	c.b.Spec.Job.Time.Begin = max(t.Unix(), c.Now.Unix()) // the job is not eligible in the past
	return nil
}

func setDeadline(c *jobChange, v string) error {
	t, err := value.Instant(v, c.Now)
	switch {
	case err != nil:
		return malformedInstant("Deadline", v)
	case t.Unix() < c.Now.Unix():
		return refusal.InvalidTime
	case !c.Operator:
		return refusal.AccessDenied
	case !t.After(c.Now):
		return refusal.InvalidTime
	}
	c.b.Spec.Job.Time.Deadline = t.Unix()
	return nil
}
