// Package decide has the rules of the life cycle of jobs: Next derives the next action from
// a job, its pods and what else is known of it (Facts), and the functions in status.go
// derive the status that follows. The package is pure; package keeper gathers the facts and
// carries out the actions.
package decide

import (
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Next returns the next action. It is called again after every action and every
// change.
func Next(f Facts) Action {
	if f.Progress.Attempt != f.Job.Status.Attempt {
		f.Progress = Progress{Attempt: f.Job.Status.Attempt, Failures: f.Progress.Failures}
	}
	if f.Job.Spec.Workload != nil {
		return f.decideWorkload()
	}
	a := f.next()
	if !f.Unconfirmed {
		return a
	}
	due := f.Progress.PodsReadAt.Add(readPodsAgain)
	if !f.Now.Before(due) {
		return Action{Kind: ReadPods}
	}
	a.Wake = earliest(a.Wake, due)
	return a
}

// readPodsAgain is how long the watch has to deliver pods that were read before it. Their
// deletion may never be reported, so they are read again then.
const readPodsAgain = 5 * time.Second

// next is Next for a job with a script whose pods the watch has delivered.
func (f *Facts) next() Action {
	switch f.Job.Status.State {
	case "", v1alpha1.StatePending:
		return f.pending()
	case v1alpha1.StateConfiguring:
		return f.configuring()
	case v1alpha1.StateRunning, v1alpha1.StateSuspended:
		return f.orWriteAssumed(f.running())
	case v1alpha1.StateCompleting:
		return f.completing()
	}
	return f.final()
}

// taskWriteDelay is how long a task may run before its assumed status is written.
// Most tasks that start with their object end sooner, which saves a write.
const taskWriteDelay = 2 * time.Second

// podWriteDelay is that time for pods. A thousand may be created at the same time, and
// binding them has precedence.
const podWriteDelay = 5 * time.Second

// orWriteAssumed returns a, or WriteAssumed if a is Wait and the status has been assumed
// for long enough.
func (f *Facts) orWriteAssumed(a Action) Action {
	if !f.Assumed || a.Kind != Wait || f.Job.Status.StartTime == nil {
		return a
	}
	due := f.Job.Status.StartTime.Add(taskWriteDelay)
	if f.Job.Spec.Workload != nil {
		due = f.Job.Status.StartTime.Add(podWriteDelay)
	}
	if f.BindBurst && f.Now.Before(f.Job.Status.StartTime.Add(maxWriteDelay)) {
		due = latest(due, f.Now.Add(BurstPause))
	}
	if !f.Now.Before(due) {
		return Action{Kind: WriteAssumed}
	}
	a.Wake = earliest(a.Wake, due)
	return a
}

// In a burst of pods the writes that can wait are put off: each until there was no
// pod for BurstPause, but no longer than maxWriteDelay.
const (
	BurstPause    = 500 * time.Millisecond
	maxWriteDelay = 15 * time.Second
)

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// requeueAllowed reports whether the job may run again after a failure of the system.
func (f *Facts) requeueAllowed() bool {
	if r := f.Job.Spec.Job.Batch.Requeue; r != nil {
		return *r
	}
	return f.Rules.Requeue
}

// endWith returns the action that ends the attempt.
func endWith(final, reason, message string) Action {
	return Action{Kind: End, Outcome: Outcome{Final: final, Reason: reason, Message: message}}
}
