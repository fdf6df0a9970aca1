// Package job defines the neutral Job: a user's request in Slurm's terms, without
// types of Kubernetes or of the command line. All parts of Berth share it: scripts and
// options are translated to a Job, and a Job to objects, plans and table rows.
//
// The zero value of a field means that it was not given. All sizes are MiB, all
// durations minutes unless the name has another unit, all instants Unix seconds
// in UTC. Copy a Job with DeepCopy; do not modify a shared one.
//
// +kubebuilder:object:generate=true
package job

import "strings"

// Unlimited is a time limit of UNLIMITED or INFINITE.
const Unlimited int32 = -1

// Job is one job, one array, or one component of a heterogeneous job.
type Job struct {
	Name         string    `json:"name,omitempty"`
	Partitions   []string  `json:"partitions,omitempty"` // in order of preference; empty: the default partition
	Account      string    `json:"account,omitempty"`
	QOS          string    `json:"qos,omitempty"`
	Reservation  string    `json:"reservation,omitempty"`
	WCKey        string    `json:"wckey,omitempty"`
	Comment      string    `json:"comment,omitempty"`
	AdminComment string    `json:"adminComment,omitempty"`
	Extra        string    `json:"extra,omitempty"`
	Licenses     []License `json:"licenses,omitempty"`

	Shape     Shape     `json:"shape,omitzero"`
	Placement Placement `json:"placement,omitzero"`
	Time      Time      `json:"time,omitzero"`
	Batch     Batch     `json:"batch,omitzero"`

	// Hold is the reason why the job remains PENDING until it is released: "user" (JobHeldUser), "admin"
	// (JobHeldAdmin, priority 0 set by an operator), "special" (held after it
	// ended with a special exit code, SPECIAL_EXIT),
	// HoldLaunch, HoldRequeue or HoldDeleted with a name.
	Hold         string       `json:"hold,omitempty"`
	Nice         int32        `json:"nice,omitempty"`
	SiteFactor   int32        `json:"siteFactor,omitempty"` // added to the priority; operators set it
	Priority     *int64       `json:"priority,omitempty"`   // explicit; nil: computed
	Dependencies Dependencies `json:"dependencies,omitzero"`
	Array        *Array       `json:"array,omitempty"`
	Het          *Het         `json:"het,omitempty"`
	Mail         Mail         `json:"mail,omitzero"`

	// Options are the given options that have no field of their own, by long name.
	Options map[string]string `json:"options,omitempty"`
}

// License is a count of a cluster-wide license (--licenses).
type License struct {
	Name  string `json:"name"`
	Count int32  `json:"count"`
}

// Shape is the size of the request: nodes, tasks, CPUs, memory, generic resources.
type Shape struct {
	MinNodes int32 `json:"minNodes,omitempty"` // -N min
	MaxNodes int32 `json:"maxNodes,omitempty"` // -N max; 0: no limit
	Tasks    int32 `json:"tasks,omitempty"`    // -n

	TasksPerNode   int32 `json:"tasksPerNode,omitempty"`
	TasksPerSocket int32 `json:"tasksPerSocket,omitempty"`
	TasksPerCore   int32 `json:"tasksPerCore,omitempty"`
	TasksPerGPU    int32 `json:"tasksPerGPU,omitempty"`

	CPUsPerTask int32 `json:"cpusPerTask,omitempty"`
	CPUsPerGPU  int32 `json:"cpusPerGPU,omitempty"`
	MinCPUs     int32 `json:"minCPUs,omitempty"` // --mincpus, per node

	SocketsPerNode int32 `json:"socketsPerNode,omitempty"`
	CoresPerSocket int32 `json:"coresPerSocket,omitempty"`
	ThreadsPerCore int32 `json:"threadsPerCore,omitempty"`
	CoreSpec       int32 `json:"coreSpec,omitempty"`

	// At most one of the three is set; a pointer to 0 in MemPerNode means all
	// the memory of the node (--mem=0).
	MemPerNode *int64 `json:"memPerNode,omitempty"`
	MemPerCPU  *int64 `json:"memPerCPU,omitempty"`
	MemPerGPU  *int64 `json:"memPerGPU,omitempty"`
	TmpDisk    int64  `json:"tmpDisk,omitempty"` // --tmp, per node

	GRES       []GRES `json:"gres,omitempty"`
	Overcommit bool   `json:"overcommit,omitempty"`
}

// The scopes of a generic resource request: the unit to which Count applies.
const (
	PerNode   = "node"   // --gres, --gpus-per-node
	PerJob    = "job"    // --gpus
	PerSocket = "socket" // --gpus-per-socket
	PerTask   = "task"   // --gpus-per-task, --tres-per-task
)

// HoldLaunch holds a job that was requeued because the site's prolog failed on one
// of its nodes.
const HoldLaunch = "launch"

// HoldRequeue holds a job that was requeued with scontrol requeuehold. Its owner may
// release it, even if an operator requeued it.
const HoldRequeue = "requeued"

// HoldSpecial is HoldRequeue for a job in state SPECIAL_EXIT.
const HoldSpecial = "special requeued"

// HoldDeleted is the prefix of the hold of a job whose reservation was deleted
// (RESV_DEL_HOLD); the reservation's name follows.
const HoldDeleted = "deleted:"

// IsHeldReason reports whether reason is that of a job held by a user or an operator.
func IsHeldReason(reason string) bool { return reason == "JobHeldUser" || reason == "JobHeldAdmin" }

// HeldReason returns the reason of a job with the given hold, as squeue shows it.
func HeldReason(hold string) string {
	if name, deleted := strings.CutPrefix(hold, HoldDeleted); deleted {
		return "Reservation " + name + " was deleted"
	}
	switch hold {
	case "":
		return ""
	case "admin":
		return "JobHeldAdmin"
	case HoldRequeue, HoldSpecial:
		return "job requeued in held state"
	case HoldLaunch:
		return "launch_failed_requeued_held"
	}
	return "JobHeldUser"
}

// GRES is a request for a generic resource such as gpu:a100:4.
type GRES struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"` // empty: any type
	Count int64  `json:"count"`
	Per   string `json:"per"` // PerNode, PerJob, PerSocket or PerTask
}

// Placement restricts the nodes of the job and the layout of its tasks.
type Placement struct {
	NodeList      []string `json:"nodeList,omitempty"` // expanded; the job needs all of them
	Exclude       []string `json:"exclude,omitempty"`  // expanded
	Constraint    string   `json:"constraint,omitempty"`
	Prefer        string   `json:"prefer,omitempty"`
	Exclusive     string   `json:"exclusive,omitempty"` // "node", "user", "mcs", "topo"
	OverSubscribe bool     `json:"oversubscribe,omitempty"`
	Contiguous    bool     `json:"contiguous,omitempty"`
	Switches      int32    `json:"switches,omitempty"`
	SwitchesWait  int32    `json:"switchesWaitSeconds,omitempty"`
	Segment       int32    `json:"segment,omitempty"`  // nodes that must be below one leaf of the topology
	Segments      string   `json:"segments,omitempty"` // SegmentsTogether, SegmentsApart
	Batch         string   `json:"batch,omitempty"`    // features of the batch host
	SpreadJob     bool     `json:"spreadJob,omitempty"`
	UseMinNodes   bool     `json:"useMinNodes,omitempty"`
	Distribution  string   `json:"distribution,omitempty"`
	Hint          string   `json:"hint,omitempty"`
}

// Values of Placement.Segments.
const (
	SegmentsTogether = "consolidate"
	SegmentsApart    = "spread"
)

// Time has the time limit of the job, and limits on its start and end.
type Time struct {
	Limit    int32 `json:"limit,omitempty"`    // minutes, or Unlimited
	Min      int32 `json:"min,omitempty"`      // --time-min, minutes
	Begin    int64 `json:"begin,omitempty"`    // Unix seconds
	Deadline int64 `json:"deadline,omitempty"` // Unix seconds

	// Signal is sent SignalBefore seconds before the time limit (--signal);
	// SignalBatch: only to the batch shell (B:).
	Signal       int32 `json:"signal,omitempty"`
	SignalBefore int32 `json:"signalBeforeSeconds,omitempty"`
	SignalBatch  bool  `json:"signalBatch,omitempty"`
	SignalResv   bool  `json:"signalReservation,omitempty"`
}

// Batch describes the execution of the batch script. Script and environment are
// separate fields of api/v1alpha1.BatchJobSpec, compressed.
type Batch struct {
	WorkDir    string `json:"workDir,omitempty"`
	SubmitHost string `json:"submitHost,omitempty"`
	// SubmitAddress is the IP address of SubmitHost as its own hosts file has it, so that
	// jobs reach a login pod by its name; empty: the file has none.
	SubmitAddress string   `json:"submitAddress,omitempty"`
	SubmitSID     int32    `json:"submitSID,omitempty"` // session id of the submitting command; 0: unknown
	SubmitLine    string   `json:"submitLine,omitempty"`
	Args          []string `json:"args,omitempty"`    // arguments of the script
	Command       string   `json:"command,omitempty"` // absolute path of the script, as squeue %o shows it
	Output        string   `json:"output,omitempty"`  // pattern, unexpanded; empty: slurm-%j.out
	Error         string   `json:"error,omitempty"`
	Input         string   `json:"input,omitempty"`
	OpenMode      string   `json:"openMode,omitempty"` // "a" or "t"
	Export        string   `json:"export,omitempty"`   // as given: ALL, NONE, NIL, list
	Umask         int32    `json:"umask,omitempty"`    // permission bits to clear, plus one; 0: 0022

	Requeue          *bool `json:"requeue,omitempty"` // nil: the cluster's JobRequeue
	NoKill           bool  `json:"noKill,omitempty"`
	KillOnInvalidDep *bool `json:"killOnInvalidDep,omitempty"`
	// Rlimits are the propagated soft limits by name without RLIMIT_; 2^63-1: none.
	Rlimits   map[string]uint64 `json:"rlimits,omitempty"`
	Container map[string]string `json:"container,omitempty"`

	// Group is the group of the job's processes if root set it (--gid); nil: the
	// user's.
	Group *Group `json:"group,omitempty"`

	// Client is the command that waits for an allocation without a script and
	// stays connected to it: "srun" or "salloc". "no-shell" is an allocation
	// without such a command; empty: a batch job.
	Client string `json:"client,omitempty"`
}

// Group is a group of users.
type Group struct {
	Name string `json:"name,omitempty"`
	GID  int64  `json:"gid"`
}

// Dependencies are the dependencies of a job: all must be met, or one if Any is set.
type Dependencies struct {
	Any   bool         `json:"any,omitempty"`
	Items []Dependency `json:"items,omitempty"`
}

// Dependency is one term of --dependency.
type Dependency struct {
	Type    string `json:"type"`              // after, afterok, aftercorr, ..., singleton or expand
	JobID   int64  `json:"jobID,omitempty"`   // 0 for singleton
	Task    *int32 `json:"task,omitempty"`    // array task; nil: the whole job
	AllTask bool   `json:"allTask,omitempty"` // JOBID_*
	Delay   int32  `json:"delay,omitempty"`   // minutes, of after:ID+N
}

// Array is the index set of a job array (--array).
type Array struct {
	Spec string `json:"spec"` // canonical text, as squeue shows it, with %N
	// Indexes are those of Spec in ascending order; they are not stored.
	Indexes []int32 `json:"-"`
	Max     int32   `json:"max,omitempty"` // %N throttle; 0: none
}

// Het marks a component of a heterogeneous job.
type Het struct {
	Offset int32 `json:"offset"`
	Size   int32 `json:"size"`
}

// Mail has the events about which to send mail, and the recipient (--mail-type,
// --mail-user).
type Mail struct {
	Types []string `json:"types,omitempty"`
	User  string   `json:"user,omitempty"`
}
