// Package decide has the rules of the life cycle of jobs: Next derives the next action from
// a job, its pods and what else is known of it (Facts), and the functions in status.go
// derive the status that follows. The package is pure; package keeper gathers the facts and
// carries out the actions.
package decide

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/status"
)

// Facts are what a decision depends on.
type Facts struct {
	Job *v1alpha1.BatchJob
	// Assumed: this process is ahead of the API server with the job (see
	// control.JobStore).
	Assumed bool
	Pods    []*corev1.Pod // of the job, of any attempt
	// Lost reports whether the node (by its Kubernetes name) was deleted or no longer
	// responds.
	Lost func(node string) bool
	// Down reports whether an operator has set the node down; nil: none is down.
	Down func(node string) bool
	Now  time.Time

	Rules Rules
	// PlanReason is the reason that the newest plan gives for a pending job; "": none.
	PlanReason string
	// ReservationEnds is when the end of its reservation ends the job; zero: never.
	ReservationEnds time.Time
	// IsAwaited: the dependency of another job names this one.
	IsAwaited bool
	// Unstored: the job is not in the accounting database yet, so its object must
	// stay.
	Unstored bool
	// SplitOff are the tasks or components that were split off this job.
	SplitOff []*v1alpha1.BatchJob
	// Leader is the first component of the heterogeneous job if this job is a further
	// component; Siblings are all other components.
	Leader   *v1alpha1.BatchJob
	Siblings []*v1alpha1.BatchJob
	// PodsReused: another job runs in the job's pods; PodsReusable: the pods wait
	// for another job.
	PodsReused, PodsReusable bool
	// BindBurst: many pods are being queued or bound, and their jobs are assumed.
	BindBurst bool
	// StartThrottled: the objects of too many jobs are being created, so this job must
	// wait.
	StartThrottled bool
	Progress       Progress
}

// Rules are the cluster's parameters, with their defaults filled in.
type Rules struct {
	KillWait, MinJobAge time.Duration
	OverTimeLimit       time.Duration // of the job's partition
	// StartTimeout is the time for the agents of a placed job to report, PullTimeout
	// that time while a node pulls an image.
	StartTimeout, PullTimeout time.Duration
	Requeue                   bool // JobRequeue
	// RequeueExit and RequeueExitHold are the exit codes with which a batch job is
	// requeued; with the latter it is also held.
	RequeueExit, RequeueExitHold array.Set
	// KillInvalid ends jobs whose dependency can never be met; --kill-on-invalid-dep
	// overrides it.
	KillInvalid bool
}

// Progress is what this process has done already for the job's attempt. It only avoids
// repeated work.
type Progress struct {
	Attempt    int32
	Created    bool
	CreatedAt  time.Time // when the objects were created; zero: unknown
	Queued     bool      // it waited for its turn to have them created
	Terminated bool
	Warned     bool // of its preemption
	CleanedUp  bool
	PodsRead   bool // from the API server: a pod that is not known now does not exist
	// Failures counts consecutive starts that failed.
	Failures int
}

// Kind is the kind of an Action.
type Kind int

// Kinds of actions, in the order of a job's life.
const (
	Wait            Kind = iota // nothing now
	Create                      // create the PodGroup and the JobSet
	End                         // write the outcome: the job is COMPLETING, or final if it has no allocation
	UpdateLimit                 // apply a time limit that was changed while the job runs
	WarnPreempted               // signal a job that is preempted
	Suspend                     // stop or continue the job's processes
	Terminate                   // request that the agent ends the job
	CleanUp                     // delete objects and pods
	Finish                      // the pods are gone: write the final state
	Requeue                     // requeue a job with a final state
	Delete                      // delete the BatchJob
	RemoveFinalizer             // remove our finalizer from a BatchJob that is being deleted
	SplitComponents             // create the further components of a heterogeneous job
	ClearPods                   // record that the pods that outlived the job are gone
	CancelParts                 // cancel the jobs that were split off a cancelled job
	MarkRunning                 // all pods of a workload are bound: it runs
	WriteAssumed                // write the assumed status
	ReadPods                    // read the job's pods: some are not known, and the watch may be late
	DeletePods                  // delete pods without which the job continues
	WaitStart                   // wait until the objects may be created
	CreateObject                // create the object of a job that is only in memory
	Adopt                       // the pod of the pending job was bound by an earlier process: it runs
)

// Action is the next action for a job.
type Action struct {
	Kind      Kind
	Outcome   Outcome       // of End
	Command   wire.Command  // of Terminate
	Deletions []PodDeletion // of CleanUp and DeletePods
	// Wake is when to decide again even if nothing happens; zero: never.
	Wake time.Time
}

// Outcome is the outcome of an attempt. Final PENDING means that the job is requeued.
type Outcome struct {
	Final, Reason, Message string
	Exit, Derived          *v1alpha1.ExitCode
	// Requested: the requeue was requested, not forced.
	Requested bool
	// Hold: the job is held in the queue, in SPECIAL_EXIT.
	Hold bool
	// Refused is the node whose kubelet refused a pod; "": none did.
	Refused string
}

// PodDeletion is a pod to delete. Force deletes it without waiting for its node.
type PodDeletion struct {
	Pod   *corev1.Pod
	Force bool
}

// Next returns the next action. It is called again after every action and every
// change.
func Next(f Facts) Action {
	if f.Progress.Attempt != f.Job.Status.Attempt {
		f.Progress = Progress{Attempt: f.Job.Status.Attempt, Failures: f.Progress.Failures}
	}
	if f.Job.Spec.Workload != nil {
		return f.decideWorkload()
	}
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

// Cancelled reports whether the end of the job was requested.
func (f *Facts) Cancelled() bool {
	return f.Job.Spec.Cancel != nil || f.Job.DeletionTimestamp != nil
}

// RequeueAsked reports whether a requested requeue is pending.
func (f *Facts) RequeueAsked() bool { return f.Job.Spec.Requeues > f.Job.Status.Requeues }

// requeueAllowed reports whether the job may run again after a failure of the system.
func (f *Facts) requeueAllowed() bool {
	if r := f.Job.Spec.Job.Batch.Requeue; r != nil {
		return *r
	}
	return f.Rules.Requeue
}

// pending is Next for a job in the queue.
func (f *Facts) pending() Action {
	switch {
	case f.Cancelled():
		return endWith(v1alpha1.StateCancelled, f.waitReason(), "")
	case f.Leader != nil && f.Leader.IsFinal():
		return endWith(v1alpha1.StateCancelled, "", "")
	case f.hasUnsplitComponents():
		return Action{Kind: SplitComponents}
	case f.PlanReason == status.ReasonDependencyNeverSatisfied && f.killInvalid():
		return endWith(v1alpha1.StateCancelled, status.ReasonDependencyNeverSatisfied, "")
	case f.PlanReason == backfill.ReasonDeadline:
		return endWith(v1alpha1.StateDeadline, status.ReasonDeadline, "")
	}
	if due := f.latestStart(); !due.IsZero() {
		if !f.Now.Before(due) {
			return endWith(v1alpha1.StateDeadline, status.ReasonDeadline, "")
		}
		return Action{Wake: due}
	}
	return Action{}
}

// waitReason returns the reason why the job is pending, which a cancelled job keeps.
func (f *Facts) waitReason() string {
	if f.PlanReason == "None" {
		return ""
	}
	return f.PlanReason
}

// killInvalid reports whether the job ends when its dependency can never be met.
func (f *Facts) killInvalid() bool {
	if k := f.Job.Spec.Job.Batch.KillOnInvalidDep; k != nil {
		return *k
	}
	return f.Rules.KillInvalid
}

// latestStart returns the latest time at which the pending job can start to end before its
// deadline; zero if it has none, or is held.
func (f *Facts) latestStart() time.Time {
	t := f.Job.Spec.Job.Time
	if t.Deadline == 0 || f.Job.Spec.Job.Hold != "" {
		return time.Time{}
	}
	shortest := t.Limit
	if t.Min > 0 {
		shortest = t.Min
	}
	// A job without a limit gets the time until its deadline, but at least a minute.
	return time.Unix(t.Deadline, 0).Add(-time.Duration(max(1, shortest)) * time.Minute)
}

// unstoredRetry is the interval in which a job that is not in the accounting database yet
// is reconciled again, in case a notification was lost.
const unstoredRetry = 30 * time.Second

// final is Next for a job with a final state.
func (f *Facts) final() Action {
	switch {
	case f.Assumed: // it was cancelled together with many others
		return Action{Kind: WriteAssumed}
	case f.Job.DeletionTimestamp != nil && f.Unstored:
		return Action{Wake: f.Now.Add(unstoredRetry)}
	case f.Job.DeletionTimestamp != nil && f.ownsLeftoverPods() && (f.PodsReused || f.PodsReusable):
		// Deleting it deletes its pods.
		return f.leftoverPods()
	case f.Job.DeletionTimestamp != nil:
		return f.removeFinalizer()
	case f.RequeueAsked() && !f.Cancelled():
		return Action{Kind: Requeue}
	}
	if f.ownsLeftoverPods() {
		return f.leftoverPods()
	}
	if f.recurs() {
		return Action{Kind: Requeue}
	}
	gone := f.Now
	if e := f.Job.Status.EndTime; e != nil {
		gone = e.Add(f.Rules.MinJobAge)
	}
	switch {
	case f.Now.Before(gone):
		return Action{Wake: gone}
	case f.IsAwaited, len(f.SplitOff) > 0:
		return Action{Wake: f.Now.Add(time.Minute)}
	case f.Unstored:
		return Action{Wake: f.Now.Add(unstoredRetry)}
	}
	return Action{Kind: Delete}
}

// removeFinalizer lets the API server delete a job after the jobs that were split off it
// have ended. They need its script, and are cancelled with it.
func (f *Facts) removeFinalizer() Action {
	for _, t := range f.SplitOff {
		if t.Spec.Cancel == nil && !t.IsFinal() {
			return Action{Kind: CancelParts}
		}
	}
	if slices.ContainsFunc(f.SplitOff, func(t *v1alpha1.BatchJob) bool { return !t.IsFinal() }) {
		return Action{Wake: f.Now.Add(time.Minute)}
	}
	return Action{Kind: RemoveFinalizer}
}

// endWith returns the action that ends the attempt.
func endWith(final, reason, message string) Action {
	return Action{Kind: End, Outcome: Outcome{Final: final, Reason: reason, Message: message}}
}
