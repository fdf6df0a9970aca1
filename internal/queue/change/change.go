// Package change works out what scontrol update does to a job: settings as they
// were typed go in, the changed job comes out, or Slurm's refusal. It is pure;
// what else there is in the cluster is told by a Environment.
package change

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/bounds"
)

// Environment is what a change is judged by.
type Environment struct {
	Now time.Time
	// Operator: the caller may change everything; else it owns the job.
	Operator bool
	// Priority of the job now, and the time limit in force (minutes).
	Priority  int64
	TimeLimit int32

	Partition   func(name string) *v1alpha1.Partition // nil: unknown
	Account     func(name string) bool
	QOS         func(name string) bool
	Node        func(short string) bool
	Reservation func(name string) bool
	License     func(name string) bool
	Job         func(id int64) *v1alpha1.BatchJob // nil: unknown
	// Within refuses what of the changed job is beyond its bound; nil: nothing is.
	CheckBounds func(old, now *v1alpha1.BatchJob) error
	// Check tells whether the job as changed may wait in the queue at all.
	Validate func(*v1alpha1.BatchJob) error
}

// phase says of which jobs a setting can be changed.
type phase int

const (
	always phase = iota
	waiting
	running
)

// setting is one parameter of scontrol update.
type setting struct {
	phase phase
	// shape: the job must be checked again as a submission is.
	shape bool
	set   func(c *changing, v string) error
}

// changing is a change on its way.
type changing struct {
	*Environment
	b      *v1alpha1.BatchJob // the copy that is changed
	warned error
}

// Pending tells whether the job waits in the queue.
func Pending(b *v1alpha1.BatchJob) bool {
	return b.Status.State == "" || b.Status.State == v1alpha1.StatePending
}

// Live tells whether the job holds nodes and is not ending.
func Live(b *v1alpha1.BatchJob) bool {
	switch b.Status.State {
	case v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended:
		return true
	}
	return false
}

// Job is b with the settings made, or the reason why not. All of them are made
// or none. With refusal.PriorityNotPersistent the changed job is returned as well.
func Job(b *v1alpha1.BatchJob, set map[string]string, w *Environment) (*v1alpha1.BatchJob, error) {
	if len(set) == 0 {
		return nil, refusal.NoChanges
	}
	if err := bounds.Settings.Check(int64(len(set))); err != nil {
		return nil, refusal.Text(err.Error())
	}
	if !Pending(b) && !Live(b) {
		return nil, refusal.JobFinished
	}
	c := &changing{Environment: w, b: b.DeepCopy()}
	shape := false
	for _, key := range slices.Sorted(maps.Keys(set)) {
		s, ok := settings[strings.ToLower(key)]
		if !ok {
			return nil, UnknownParameter(key, set[key])
		}
		if err := c.make(s, key, set[key]); err != nil {
			return nil, err
		}
		shape = shape || s.shape
	}
	if t := &c.b.Spec.Job.Time; t.Min > 0 && t.Limit > 0 && t.Min > t.Limit {
		return nil, refusal.InvalidTimeMin
	}
	if w.CheckBounds != nil {
		if err := w.CheckBounds(b, c.b); err != nil {
			return nil, err
		}
	}
	if shape && Pending(b) && w.Validate != nil {
		if err := w.Validate(c.b); err != nil {
			return nil, err
		}
	}
	return c.b, c.warned
}

// make makes one setting. A value that cannot be is refused before the state
// of the job is, as Slurm does.
func (c *changing) make(s setting, key, v string) error {
	before := c.b.DeepCopy()
	err := s.set(c, v)
	if err != nil && !isPhase(err) {
		return err
	}
	switch {
	case s.phase == waiting && !Pending(before):
		return refusal.NotPending
	case s.phase == running && !Live(before):
		return refusal.NotRunning
	case authz.OperatorKey(key) && !c.Operator:
		return refusal.AccessDenied
	}
	return err
}

// isPhase tells whether err is about who asks or the job's state, which the
// setting's own rule says more exactly.
func isPhase(err error) bool { return err == refusal.AccessDenied } //nolint:errorlint // a constant of ours
