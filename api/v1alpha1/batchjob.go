package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// BatchJob is one job in the queue. A pending job is only this object; a running one
// also owns a PodGroup and a JobSet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=bj,categories=berth
// +kubebuilder:printcolumn:name="JobID",type=integer,JSONPath=`.spec.jobID`
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.job.name`
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.user`
// +kubebuilder:printcolumn:name="Partition",type=string,JSONPath=`.spec.partition`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Submitted",type=date,JSONPath=`.metadata.creationTimestamp`
type BatchJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BatchJobSpec   `json:"spec"`
	Status BatchJobStatus `json:"status,omitempty"`
}

// BatchJobSpec is the request. Admission sets the first fields, up to SubmitTime, and
// overwrites the values of clients.
type BatchJobSpec struct {
	// JobID is the job's id: unique in the cluster, increasing and immutable. It is
	// required, so that the API server rejects a job that did not pass admission.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	JobID int64 `json:"jobID,omitempty"`
	// User is the name of the User object the job runs as.
	User string `json:"user,omitempty"`
	// Partition is the first of job.partitions, or the default partition.
	Partition string `json:"partition,omitempty"`
	// SubmitTime is the time of the admission, with microseconds (it orders the queue).
	SubmitTime *metav1.MicroTime `json:"submitTime,omitempty"`

	// Job is the neutral Job.
	Job job.Job `json:"job"`
	// Script is the batch script, byte for byte, zstd-compressed. Empty for an
	// allocation without a script (salloc, srun).
	Script []byte `json:"script,omitempty"`
	// Environment is the environment of the submitting command: NAME=value entries, each
	// terminated by a NUL byte, zstd-compressed.
	Environment []byte `json:"environment,omitempty"`

	// Origin is the job that this one was split off from: the array of a task, the
	// first component of a heterogeneous job. Only the scheduler sets it.
	Origin *Origin `json:"origin,omitempty"`
	// Task is set on a task that was split off its array.
	Task *ArrayTask `json:"task,omitempty"`
	// Components are the further components of a heterogeneous job, until the
	// scheduler has split them off: the i-th gets the id jobID+1+i.
	Components []job.Job `json:"components,omitempty"`

	// Workload are the pods that the job represents if no command submitted it: pods that
	// name Berth's scheduler. Only the scheduler sets it.
	Workload *Workload `json:"workload,omitempty"`

	// Cancel requests the end of the job. It cannot be unset.
	Cancel *CancelRequest `json:"cancel,omitempty"`
	// Requeues is the number of requested requeues; the keeper requeues the job while
	// status.requeues is lower.
	Requeues int32 `json:"requeues,omitempty"`
	// Suspend stops the job's processes while it is set (scontrol suspend).
	// Only operators may set it.
	Suspend bool `json:"suspend,omitempty"`
}

// Origin names a BatchJob in the same namespace, which has the script and environment of
// the jobs that were split off from it.
type Origin struct {
	Name  string    `json:"name"`
	UID   types.UID `json:"uid"`
	JobID int64     `json:"jobID"`
	// Status is the status that the scheduler created the object with (see
	// InitialStatus). It counts until the object has a status of its own.
	Status []byte `json:"status,omitempty"`
}

// ArrayTask identifies the task of an array. Count, Min, Max and Step are those of the
// whole array.
type ArrayTask struct {
	Index int32 `json:"index"`
	Count int32 `json:"count"`
	Min   int32 `json:"min"`
	Max   int32 `json:"max"`
	Step  int32 `json:"step"`
}

// Workload is a set of pods in the job's namespace that other controllers or users
// created, and that are placed all together or not at all.
type Workload struct {
	// Kind and Name of the object that the pods belong to: a Pod, a PodGroup, a
	// LeaderWorkerSet.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Group is the scheduler's key of the group; empty: a single pod.
	Group string `json:"group,omitempty"`
	// Pods are the members, in the order of the placement's tasks. They may
	// change while the job waits.
	Pods []WorkloadPod `json:"pods"`
	// Status is the status that the scheduler created the object with (see
	// InitialStatus). It counts until the object has a status of its own.
	Status []byte `json:"status,omitempty"`
}

// WorkloadPod is one pod of a Workload.
type WorkloadPod struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// CancelRequest is a request to end the job. Admission sets By and At.
type CancelRequest struct {
	By string            `json:"by,omitempty"` // user name
	At *metav1.MicroTime `json:"at,omitempty"`
}

// States of a job, by Slurm's names (squeue(1), JOB STATE CODES).
const (
	StatePending     = status.StatePending
	StateConfiguring = status.StateConfiguring // placed; not every agent has reported yet
	StateRunning     = status.StateRunning
	StateCompleting  = status.StateCompleting // the outcome is decided; pods are still terminating
	StateCompleted   = status.StateCompleted
	StateFailed      = status.StateFailed
	StateTimeout     = status.StateTimeout
	StateCancelled   = status.StateCancelled
	StateNodeFail    = status.StateNodeFail
	StatePreempted   = status.StatePreempted
	StateBootFail    = status.StateBootFail
	StateDeadline    = status.StateDeadline
	StateOutOfMemory = status.StateOutOfMemory
	StateSuspended   = status.StateSuspended
	// StateSpecialExit is shown for a job that is held with job.hold "special"; its
	// status.state is PENDING.
	StateSpecialExit = status.StateSpecialExit
	// StateReservationDeleted is shown for a job that is held with job.HoldDeleted.
	StateReservationDeleted = status.StateReservationDeleted
)

// BatchJobStatus is the state of the job. Only the scheduler writes it. An empty State
// means PENDING.
type BatchJobStatus struct {
	State string `json:"state,omitempty"`
	// Final is the state after COMPLETING.
	Final string `json:"final,omitempty"`
	// Reason is Slurm's reason code; Message may have details. Reasons that change with
	// every plan are not stored; the queue API shows them.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	// Requeues is how often the job was requeued by request, Restarts how often it was
	// requeued in total (SLURM_RESTART_COUNT). Attempt is the number of the placement,
	// from 1, and part of the names of its objects.
	Requeues int32 `json:"requeues,omitempty"`
	Restarts int32 `json:"restarts,omitempty"`
	Attempt  int32 `json:"attempt,omitempty"`

	EligibleTime *metav1.MicroTime `json:"eligibleTime,omitempty"`
	StartTime    *metav1.MicroTime `json:"startTime,omitempty"` // of this attempt
	EndTime      *metav1.MicroTime `json:"endTime,omitempty"`
	// Priority with which the job was placed.
	Priority int64 `json:"priority,omitempty"`
	// TimeLimit is the current time limit in minutes, or job.Unlimited. Set at placement.
	TimeLimit int32 `json:"timeLimit,omitempty"`
	// ShortenedFrom is the time limit that the job requested, in minutes or
	// job.Unlimited, if it was placed with a shorter one (--time-min); 0: it was not.
	ShortenedFrom int32 `json:"shortenedFrom,omitempty"`

	// SuspendTime is when the job was last suspended or resumed; Suspended is the number
	// of seconds that it was suspended before, in this attempt.
	SuspendTime *metav1.MicroTime `json:"suspendTime,omitempty"`
	Suspended   int64             `json:"suspendedSeconds,omitempty"`
	// Preempt is set while a running job is being preempted.
	Preempt *Preemption `json:"preempt,omitempty"`

	// Partition the job runs or ran in.
	Partition  string      `json:"partition,omitempty"`
	Allocation *Allocation `json:"allocation,omitempty"`
	// Reservation is the MAGNETIC reservation that the job runs in without having
	// requested it.
	Reservation string `json:"reservation,omitempty"`

	ExitCode *ExitCode `json:"exitCode,omitempty"`
	// Derived is the highest exit code of the job's steps.
	Derived *ExitCode `json:"derivedExitCode,omitempty"`

	// Cancel is who cancelled the job together with many others; spec.cancel is not set
	// then.
	Cancel *CancelRequest `json:"cancel,omitempty"`

	// Array has the pending tasks of an array; nil: all are pending.
	Array *ArrayStatus `json:"array,omitempty"`
	// Pods names the attempt whose pods this one runs in, if it reuses those of an earlier
	// job.
	Pods *PodsOf `json:"pods,omitempty"`

	// History are the changes of State since the job was last queued, oldest first; Past
	// are its earlier attempts, oldest first. Accounting reads both, so that nothing is
	// lost while its database is unavailable.
	History []StateChange `json:"history,omitempty"`
	Past    []PastAttempt `json:"past,omitempty"`
}

// ArrayStatus is the state of an array as a whole. Tasks that were split off have their
// own BatchJobs; the last one has the array's.
type ArrayStatus struct {
	// Pending are the tasks that were not split off, in the syntax of --array. A task
	// with its own object is not pending even if it is in this list.
	Pending string `json:"pending,omitempty"`
	// Own is the task that the array's BatchJob has become.
	Own *int32 `json:"own,omitempty"`
	// Failed: a task whose object was deleted did not complete.
	Failed bool `json:"failed,omitempty"`
}

// PodsOf names the pods of one attempt of one job.
type PodsOf struct {
	JobID   int64 `json:"jobID"`
	Attempt int32 `json:"attempt"`
}

// Preemption is the decision to end a job for a more important one.
type Preemption struct {
	By int64            `json:"by"` // job id
	At metav1.MicroTime `json:"at"` // when the job was warned
	// Due is the end of the grace time.
	Due  metav1.MicroTime `json:"due"`
	Mode string           `json:"mode"` // CANCEL or REQUEUE
}

// StateChange is one change of a job's state.
type StateChange struct {
	State  string           `json:"state"`
	At     metav1.MicroTime `json:"at"`
	Reason string           `json:"reason,omitempty"`
}

// PastAttempt is an earlier run of a job that was requeued.
type PastAttempt struct {
	Attempt   int32            `json:"attempt"`
	Restarts  int32            `json:"restarts,omitempty"` // before the requeue
	State     string           `json:"state"`              // REQUEUED, NODE_FAIL, PREEMPTED
	Reason    string           `json:"reason,omitempty"`
	Message   string           `json:"message,omitempty"` // why the job was requeued, if it was not requested
	Queued    metav1.MicroTime `json:"queued,omitzero"`   // when it was requeued before; zero: never
	Start     metav1.MicroTime `json:"start,omitzero"`    // zero: it never started
	End       metav1.MicroTime `json:"end"`
	TimeLimit int32            `json:"timeLimit,omitempty"`
	Partition string           `json:"partition,omitempty"`
	NodeList  string           `json:"nodeList,omitempty"` // folded
	Nodes     int32            `json:"nodes,omitempty"`
	CPUs      int32            `json:"cpus,omitempty"`
	Memory    int64            `json:"memory,omitempty"` // MiB
	GRES      []GRESAllocation `json:"gres,omitempty"`   // of all nodes together
	ExitCode  *ExitCode        `json:"exitCode,omitempty"`
	Derived   *ExitCode        `json:"derivedExitCode,omitempty"`
	History   []StateChange    `json:"history,omitempty"`
}

// ExitCode is an exit code and a signal, shown as Status:Signal.
type ExitCode struct {
	Status int32 `json:"status"`
	Signal int32 `json:"signal"`
}

// Allocation has the resources of a job. The order of Nodes is that of SLURM_NODEID;
// Nodes[0] is the batch host.
type Allocation struct {
	Nodes []NodeAllocation `json:"nodes"`
}

// NodeAllocation has the resources of a job on one node.
type NodeAllocation struct {
	// Name is the node's short name, Node the name in Kubernetes if it differs.
	Name string `json:"name"`
	Node string `json:"node,omitempty"`
	// CPUs is the number of CPUs, CPUIDs their numbers on the node, as a list such as
	// "0-3,8". Both count hardware threads, as Slurm does.
	CPUs   int32  `json:"cpus"`
	CPUIDs string `json:"cpuIDs,omitempty"`
	// PodCPUs: CPUIDs are the only CPUs on which the kernel lets the pod run, as its agent
	// reported. The planned ones may have been others.
	PodCPUs bool `json:"podCPUs,omitempty"`
	// Sharers is the number of jobs that may have the same CPUs (OverSubscribe); 0: one.
	Sharers int32 `json:"sharers,omitempty"`
	Memory  int64 `json:"memory,omitempty"` // MiB
	Tasks   int32 `json:"tasks,omitempty"`  // tasks on the node
	// GRES has the generic resources on the node.
	GRES []GRESAllocation `json:"gres,omitempty"`
	// Topology names the switches above the node when the job started, level by level from
	// the top of the tree to the leaf, separated by dots; empty: none is known.
	Topology string `json:"topology,omitempty"`
	// Address (host:port) at which the node's agent accepts connections of the job's
	// other agents. It is set together with startTime, when all agents of the attempt
	// have registered.
	Address string `json:"address,omitempty"`
}

// GRESAllocation is a count of one generic resource on one node.
type GRESAllocation struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
	Count   int64  `json:"count"`
	Indexes string `json:"indexes,omitempty"` // "0-1", if they are known
}

// BatchJobList is a list of BatchJobs.
//
// +kubebuilder:object:root=true
type BatchJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BatchJob `json:"items"`
}

// PayloadBytes returns the stored size of script and environment.
func (s *BatchJobSpec) PayloadBytes() int64 {
	return int64(len(s.Script)) + int64(len(s.Environment))
}

// DescriptionBytes returns the approximate stored size of the job's description and
// annotations, without script and environment.
func (b *BatchJob) DescriptionBytes() int64 {
	n := b.Spec.Job.Bytes()
	for i := range b.Spec.Components {
		n += b.Spec.Components[i].Bytes()
	}
	for name, text := range b.Annotations {
		n += int64(len(name) + len(text))
	}
	return n
}

// StoredBytes is what counts of the job for its user's share of what the cluster
// stores.
func (b *BatchJob) StoredBytes() int64 { return b.Spec.PayloadBytes() + b.DescriptionBytes() }
