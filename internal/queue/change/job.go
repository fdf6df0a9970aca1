// Package change computes what scontrol update makes of a job, a step or a
// reservation: the present object and the settings as they were typed go in; the
// changed object, or Slurm's refusal, comes out. It is pure: an Environment holds
// what a change is checked against.
//
// The answers are those of Slurm 22.05.8, where they were observed.
package change

import (
	"errors"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/bounds"
)

// Environment is what a change of a job is checked against.
type Environment struct {
	Now time.Time
	// Operator: the caller is an operator, and may change everything; else it owns
	// the job.
	Operator bool
	// Priority is the job's present priority, TimeLimit the limit in force in
	// minutes.
	Priority  int64
	TimeLimit int32

	Partition   func(name string) *v1alpha1.Partition // nil: there is none
	Account     func(name string) (stored string, ok bool)
	QOS         func(name string) (stored string, ok bool)
	Node        func(short string) bool
	Reservation func(name string) bool
	License     func(name string) bool
	Job         func(id int64) *v1alpha1.BatchJob // nil: there is none
	// CheckBounds refuses what the change makes larger than it may be; nil: nothing
	// is refused.
	CheckBounds func(old, now *v1alpha1.BatchJob) error
	// Validate returns why the changed job may not be in the queue; nil: every job
	// may.
	Validate func(*v1alpha1.BatchJob) error
}

// Pending reports whether the job is waiting in the queue.
func Pending(b *v1alpha1.BatchJob) bool {
	return b.Status.State == "" || b.Status.State == v1alpha1.StatePending
}

// Live reports whether the job has nodes and is not ending.
func Live(b *v1alpha1.BatchJob) bool {
	switch b.Status.State {
	case v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended:
		return true
	}
	return false
}

// jobChange is a change of a job in progress.
type jobChange struct {
	*Environment
	old, b   *v1alpha1.BatchJob // b is a copy that is changed
	validate bool               // the changed job must be checked as a submission is
	warning  error
}

// Job returns a copy of b with all settings made, or nil and the refusal. With
// refusal.PriorityNotPersistent it returns the changed job as well.
func Job(b *v1alpha1.BatchJob, set map[string]string, env *Environment) (*v1alpha1.BatchJob, error) {
	if len(set) == 0 {
		return nil, refusal.NoChanges
	}
	if err := bounds.Settings.Check(int64(len(set))); err != nil {
		return nil, refusal.Text(err.Error())
	}
	if !Pending(b) && !Live(b) {
		return nil, refusal.JobFinished
	}
	c := &jobChange{Environment: env, old: b, b: b.DeepCopy()}
	first, last := split(set)
	for _, keys := range [][]string{first, last} {
		if len(keys) == 0 {
			continue
		}
		for _, key := range keys {
			if err := c.apply(key, set[key]); err != nil {
				return nil, err
			}
		}
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	return c.b, c.warning
}

// check returns why the changed job may not be in the queue, or nil.
func (c *jobChange) check() error {
	if t := &c.b.Spec.Job.Time; t.Min > 0 && t.Limit > 0 && t.Min > t.Limit {
		return refusal.InvalidTimeMin
	}
	if c.CheckBounds != nil {
		if err := c.CheckBounds(c.old, c.b); err != nil {
			return err
		}
	}
	if c.validate && Pending(c.old) && c.Validate != nil {
		return c.Validate(c.b)
	}
	return nil
}

// apply makes one setting. As in Slurm, an invalid value is refused before the
// job's state is, and the state before a missing right.
func (c *jobChange) apply(key, v string) error {
	s, ok := jobSettings[strings.ToLower(key)]
	if !ok {
		return UnknownParameter(key, v)
	}
	c.validate = c.validate || s.validate
	pending, live := Pending(c.b), Live(c.b)
	err := s.set(c, v)
	if err != nil && !errors.Is(err, refusal.AccessDenied) {
		return err
	}
	switch {
	case s.states == pendingOnly && !pending:
		return refusal.NotPending
	case s.states == liveOnly && !live:
		return refusal.NotRunning
	case authz.OperatorKey(key) && !c.Operator:
		return refusal.AccessDenied
	}
	return err
}
