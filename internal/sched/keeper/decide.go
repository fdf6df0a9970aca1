// Package keeper keeps every job going to its end: it decides from a job and
// its pods what is to be done next (time limits, cancelling, requeueing, lost
// nodes, clean-up), and does it. Deciding is pure; doing may be repeated; all
// that must not be lost is in the objects, so the process may die anywhere.
package keeper

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
	// Lost tells whether the node (by its Kubernetes name) is gone or has
	// stopped answering.
	Lost func(node string) bool
	// Down tells whether an operator has set the node down; nil: none is.
	Down func(node string) bool
	Now  time.Time

	Rules Rules
	// Verdict is what the newest plan says of a waiting job; "": nothing.
	Verdict string
	// Expires is when the job's reservation ends it; zero: nothing does.
	Expires time.Time
	// Needed: another job waits for how this one ends.
	Needed bool
	// Unstored: the job is not yet in the accounting database, so its object
	// must stay.
	Unstored bool
	// SplitOff are the tasks or components split off this job.
	SplitOff []*v1alpha1.BatchJob
	// Leader is the first component of the heterogeneous job that this one is a
	// further component of; Siblings are all others of its components.
	Leader   *v1alpha1.BatchJob
	Siblings []*v1alpha1.BatchJob
	// Taken: another job runs in the job's pods; Lingering: they wait for one.
	Taken, Lingering bool
	// Rush: pods come or are bound, one after the other, and their jobs are ahead
	// of their objects.
	Rush bool
	// Crowded: too many jobs' objects are being made for this one's.
	Crowded bool
	Memory  Memory
}

// Rules are the cluster's parameters, with their defaults filled in.
type Rules struct {
	KillWait, MinJobAge time.Duration
	OverTimeLimit       time.Duration // of the job's partition
	// StartTimeout is how long a placed job may take to report; PullTimeout
	// while a node is still fetching an image.
	StartTimeout, PullTimeout time.Duration
	Requeue                   bool // JobRequeue
	// RequeueExit and RequeueExitHold are exit codes that bring a batch job back
	// to the queue, by the latter held.
	RequeueExit, RequeueExitHold array.Set
	// KillInvalid ends jobs whose dependency can never be met, unless they say
	// otherwise (--kill-on-invalid-dep).
	KillInvalid bool
}

// Memory is what this process has done for the job's attempt already. It
// only saves work: a process that forgot it does the same again.
type Memory struct {
	Attempt    int32
	Created    bool
	CreatedAt  time.Time // when the objects were made; zero: nobody knows
	InLine     bool      // it waited for its turn to have them made
	Terminated bool
	Warned     bool // of its preemption
	Swept      bool
	// Failures counts the starts given back in a row.
	Failures int
}

// Kind of an Action.
type Kind int

// Kinds of actions, in the order of a job's life.
const (
	Wait       Kind = iota // nothing now
	Create                 // make PodGroup and JobSet
	End                    // write the outcome: the job is COMPLETING, or over if it holds nothing
	Adjust                 // take over a time limit changed while the job runs
	Warn                   // tell a job that is preempted to end
	Suspend                // stop or continue the job's processes
	Terminate              // have the agent end the job
	Sweep                  // delete objects and pods
	Finish                 // nothing is left: write the final state
	Requeue                // a job that is over goes back to the queue
	Delete                 // delete the BatchJob
	Release                // take our finalizer off a BatchJob that is being deleted
	Components             // make the further components of a heterogeneous job
	Unlink                 // note that the pods which outlived the job are gone
	Follow                 // cancel what was split off, as the job itself was
	Begin                  // every pod of a workload is bound: it runs
	Record                 // give the object the status that it was made with
	Drop                   // delete pods that the job goes on without
	Line                   // wait for its turn to have its objects made
	Make                   // make the object of a job that is in memory only
	Adopt                  // an earlier process had the waiting job's pod bound: it runs there
)

// Action is what to do now.
type Action struct {
	Kind    Kind
	Outcome Outcome      // of End
	Command wire.Command // of Terminate
	Kill    []Kill       // of Sweep and Drop
	// Wake is when to decide again even if nothing happens; zero: never.
	Wake time.Time
}

// Outcome is how an attempt ends. Final PENDING means: back to the queue.
type Outcome struct {
	Final, Reason, Message string
	Exit, Derived          *v1alpha1.ExitCode
	// Requested: the return to the queue was asked for, not forced.
	Requested bool
	// Hold: it is held there, in SPECIAL_EXIT.
	Hold bool
	// Refused is the node whose kubelet refused a pod; "": none did.
	Refused string
}

// Kill is a pod to delete; Force: without waiting for its node.
type Kill struct {
	Pod   *corev1.Pod
	Force bool
}

// Decide says what is to be done next. It is called again after every action
// and every change.
func Decide(f Facts) Action {
	if f.Memory.Attempt != f.Job.Status.Attempt {
		f.Memory = Memory{Attempt: f.Job.Status.Attempt, Failures: f.Memory.Failures}
	}
	if f.Job.Spec.Workload != nil {
		return f.workload()
	}
	switch f.Job.Status.State {
	case "", v1alpha1.StatePending:
		return f.pending()
	case v1alpha1.StateConfiguring:
		return f.configuring()
	case v1alpha1.StateRunning, v1alpha1.StateSuspended:
		return f.settled(f.running())
	case v1alpha1.StateCompleting:
		return f.completing()
	}
	return f.over()
}

// settleTime is how long a task may run before its object gets a status of its
// own: most of those that begin with their object are over sooner, and their
// end is one write less.
const settleTime = 2 * time.Second

// settlePods is the same of pods: a thousand may come at once, and are bound
// first.
const settlePods = 5 * time.Second

// settled is a, unless nothing is to be done and the object still has the
// status that it was made with.
func (f *Facts) settled(a Action) Action {
	if !f.Assumed || a.Kind != Wait || f.Job.Status.StartTime == nil {
		return a
	}
	due := f.Job.Status.StartTime.Add(settleTime)
	if f.Job.Spec.Workload != nil {
		due = f.Job.Status.StartTime.Add(settlePods)
	}
	if f.Rush && f.Now.Before(f.Job.Status.StartTime.Add(mostSettle)) {
		due = later(due, f.Now.Add(rushPause))
	}
	if !f.Now.Before(due) {
		return Action{Kind: Record}
	}
	a.Wake = earliestOf(a.Wake, due)
	return a
}

// Rushes of pods: while pods come and are bound, those that were bound are not
// written about for longer, within bounds.
const (
	rushPause  = 500 * time.Millisecond
	mostSettle = 15 * time.Second
)

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (f *Facts) cancelled() bool {
	return f.Job.Spec.Cancel != nil || f.Job.DeletionTimestamp != nil
}

func (f *Facts) requeueAsked() bool { return f.Job.Spec.Requeues > f.Job.Status.Requeues }

// requeueAllowed tells whether the job may run again after a failure that is
// not its own.
func (f *Facts) requeueAllowed() bool {
	if r := f.Job.Spec.Job.Batch.Requeue; r != nil {
		return *r
	}
	return f.Rules.Requeue
}

func (f *Facts) pending() Action {
	switch {
	case f.cancelled():
		return end(v1alpha1.StateCancelled, "", "")
	case f.Leader != nil && f.Leader.IsFinal():
		return end(v1alpha1.StateCancelled, "", "")
	case f.unsplit():
		return Action{Kind: Components}
	case f.Verdict == status.ReasonDependencyNeverSatisfied && f.killInvalid():
		return end(v1alpha1.StateCancelled, status.ReasonDependencyNeverSatisfied, "")
	case f.Verdict == backfill.ReasonDeadline:
		return end(v1alpha1.StateDeadline, status.ReasonDeadline, "")
	}
	if due := f.deadline(); !due.IsZero() {
		if !f.Now.Before(due) {
			return end(v1alpha1.StateDeadline, status.ReasonDeadline, "")
		}
		return Action{Wake: due}
	}
	return Action{}
}

func (f *Facts) killInvalid() bool {
	if k := f.Job.Spec.Job.Batch.KillOnInvalidDep; k != nil {
		return *k
	}
	return f.Rules.KillInvalid
}

// deadline is the last instant at which the waiting job could start and still
// end in time; zero: it may start whenever it likes.
func (f *Facts) deadline() time.Time {
	t := f.Job.Spec.Job.Time
	if t.Deadline == 0 {
		return time.Time{}
	}
	due := time.Unix(t.Deadline, 0)
	shortest := t.Limit
	if t.Min > 0 {
		shortest = t.Min
	}
	if shortest > 0 {
		due = due.Add(-time.Duration(shortest) * time.Minute)
	}
	return due
}

// unstoredPause is when to look again at a job that is over and not yet in the
// accounting database, in case its word that it is now is lost.
const unstoredPause = 30 * time.Second

func (f *Facts) over() Action {
	switch {
	case f.Assumed: // it was cancelled with many others
		return Action{Kind: Record}
	case f.Job.DeletionTimestamp != nil && f.Unstored:
		return Action{Wake: f.Now.Add(unstoredPause)}
	case f.Job.DeletionTimestamp != nil && f.podsLeft() && (f.Taken || f.Lingering): // its pods would go with it
		return f.leftovers()
	case f.Job.DeletionTimestamp != nil:
		return f.release()
	case f.requeueAsked() && !f.cancelled():
		return Action{Kind: Requeue}
	}
	if f.podsLeft() {
		return f.leftovers()
	}
	if f.again() {
		return Action{Kind: Requeue}
	}
	gone := f.Now
	if e := f.Job.Status.EndTime; e != nil {
		gone = e.Add(f.Rules.MinJobAge)
	}
	switch {
	case f.Now.Before(gone):
		return Action{Wake: gone}
	case f.Needed, len(f.SplitOff) > 0:
		return Action{Wake: f.Now.Add(time.Minute)}
	case f.Unstored:
		return Action{Wake: f.Now.Add(unstoredPause)}
	}
	return Action{Kind: Delete}
}

// release lets a deleted job go when what was split off it is over: that needs
// the job's script, and was meant as well.
func (f *Facts) release() Action {
	for _, t := range f.SplitOff {
		if t.Spec.Cancel == nil && !t.IsFinal() {
			return Action{Kind: Follow}
		}
	}
	if slices.ContainsFunc(f.SplitOff, func(t *v1alpha1.BatchJob) bool { return !t.IsFinal() }) {
		return Action{Wake: f.Now.Add(time.Minute)}
	}
	return Action{Kind: Release}
}

func end(final, reason, message string) Action {
	return Action{Kind: End, Outcome: Outcome{Final: final, Reason: reason, Message: message}}
}
