package decide

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
)

// Facts are what a decision depends on.
type Facts struct {
	Job *v1alpha1.BatchJob
	// Assumed: this process is ahead of the API server with the job (see
	// control.JobStore).
	Assumed bool
	Pods    []*corev1.Pod // of the job, of any attempt
	// Unconfirmed: some of the pods were read, and the watch has not delivered them.
	Unconfirmed bool
	// Unreachable reports whether the node (by its Kubernetes name) was deleted or does not
	// respond; Lost whether it was deleted or has not responded for SlurmdTimeout.
	Unreachable, Lost func(node string) bool
	// Boot returns whether the node (by its Kubernetes name) has yet to boot; nil: all nodes run.
	Boot func(node string) Boot
	// Removal returns when it was announced that the node (by its Kubernetes name) will be
	// removed, and what announced it; zero: it stays. nil: all stay.
	Removal func(node string) (at time.Time, by string)
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

// Boot is what is known of the boot of a node. The zero value is a node that always runs.
type Boot struct {
	Waiting bool      // it has been or will be requested
	Failed  string    // why the node does not come; "": it has come, or may come
	Ready   time.Time // since when it runs; zero: unknown
}

// Rules are the cluster's parameters, with their defaults filled in.
type Rules struct {
	KillWait, MinJobAge time.Duration
	OverTimeLimit       time.Duration // of the job's partition
	// RemovalGrace is how long a job continues on a node that will be removed before it is
	// requeued.
	RemovalGrace time.Duration
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
	// RemovalWarned: it got the signal of --signal because a node of it will be removed.
	RemovalWarned bool
	CleanedUp     bool
	PodsRead      bool // from the API server: a pod that is not known now does not exist
	PodsReadAt    time.Time
	// Failures counts consecutive starts that failed.
	Failures int
}
