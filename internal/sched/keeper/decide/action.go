package decide

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// Kind is the kind of an Action.
type Kind int

// Kinds of actions, in the order of a job's life.
const (
	Wait            Kind = iota // nothing now
	Create                      // create the PodGroup and the JobSet
	End                         // write the outcome: the job is COMPLETING, or final if it has no allocation
	UpdateLimit                 // apply a time limit that was changed while the job runs
	WarnPreempted               // signal a job that is preempted
	WarnRemoval                 // send the signal of --signal: one of the job's nodes will be removed
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
	// Refused is the node that refused a pod, or could not start it; "": none did.
	Refused string
	// ThisJobOnly: it refused the pod because of the CPUs or devices that it requests; other jobs
	// may run there.
	ThisJobOnly bool
	// Unprepared: the devices of the pod were not prepared there.
	Unprepared bool
	// NotStarted is a pod of which Message is to say why it did not start, from Kubernetes' last
	// warning; nil: no pod.
	NotStarted *corev1.Pod
}

// PodDeletion is a pod to delete. Force deletes it without waiting for its node.
type PodDeletion struct {
	Pod   *corev1.Pod
	Force bool
}
