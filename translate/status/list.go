package status

// JobList is the response to GET jobs.
type JobList struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Time       int64  `json:"time"` // the server's clock, Unix seconds
	// UnknownUsers are those in the query that do not exist.
	UnknownUsers []string `json:"unknownUsers,omitempty"`
	Items        []Job    `json:"items"`
}

// Types of a JobEvent.
const (
	EventSync = "SYNC" // Items are the jobs that match; they replace all earlier ones
	EventMore = "MORE" // Items continue those of the previous event
	EventDiff = "DIFF" // Items are new or changed; Gone no longer match
	EventMark = "MARK" // nothing has changed for a while
)

// JobEvent is one line of a watch (GET jobs?watch=true with the parameters of GET
// jobs). The first event is a SYNC, or a DIFF if since names a revision whose changes
// are still stored. An event may combine several changes; it then has the latest
// state of each job.
type JobEvent struct {
	Type     string  `json:"type"`
	Revision string  `json:"revision"` // for since, to resume after this event; empty: MORE events follow
	Time     int64   `json:"time"`     // the server's clock, Unix seconds
	Items    []Job   `json:"items,omitempty"`
	Gone     []int64 `json:"gone,omitempty"` // ids
}

// Step is one step of a running job.
type Step struct {
	ID        string `json:"id"` // "12.0", "12.batch", "12_3.0", "12+1.0"
	JobID     int64  `json:"jobID"`
	Number    int64  `json:"number"` // -5: batch, -4: extern, -6: interactive
	Name      string `json:"name"`
	User      string `json:"user"`
	UID       int64  `json:"uid"`
	Partition string `json:"partition"`
	State     string `json:"state"`
	Start     int64  `json:"start"`     // Unix seconds
	TimeLimit int32  `json:"timeLimit"` // minutes; -1: UNLIMITED
	Nodes     int32  `json:"nodes"`
	NodeList  string `json:"nodeList"` // folded
	CPUs      int32  `json:"cpus"`
	Tasks     int32  `json:"tasks"`
	CPUFreq   string `json:"cpuFreq,omitempty"`
	TRES      string `json:"tres,omitempty"` // cpu=1,mem=100M,node=1
	GRES      string `json:"gres,omitempty"` // TresPerNode
	Dist      string `json:"dist,omitempty"`
	Container string `json:"container,omitempty"`
	// SrunHost and SrunPID identify the srun that launched it.
	SrunHost string `json:"srunHost,omitempty"`
	SrunPID  int64  `json:"srunPID,omitempty"`

	ArrayJobID  int64  `json:"arrayJobID,omitempty"`
	ArrayTaskID string `json:"arrayTaskID,omitempty"`
	HetJobID    int64  `json:"hetJobID,omitempty"`
	HetOffset   int32  `json:"hetOffset,omitempty"`
}

// StepList is the response to GET steps?id=12,12.0&user=...&partition=...&nodes=...
type StepList struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Time       int64  `json:"time"` // the server's clock, Unix seconds
	// UnknownUsers are those in the query that do not exist.
	UnknownUsers []string `json:"unknownUsers,omitempty"`
	Items        []Step   `json:"items"`
}

// Reservation is one reservation of nodes.
type Reservation struct {
	Name  string   `json:"name"`
	State string   `json:"state"` // ACTIVE, INACTIVE
	Start int64    `json:"start"` // Unix seconds
	End   int64    `json:"end"`
	Nodes []string `json:"nodes"`
	CPUs  int32    `json:"cpus"` // cores
	// Cores are those of each node, unless it has whole nodes.
	Cores      []NodeCores `json:"cores,omitempty"`
	Features   string      `json:"features,omitempty"`
	Partition  string      `json:"partition,omitempty"`
	Flags      []string    `json:"flags,omitempty"`
	TRES       string      `json:"tres,omitempty"`
	Users      []string    `json:"users,omitempty"`
	Groups     []string    `json:"groups,omitempty"`
	Accounts   []string    `json:"accounts,omitempty"`
	Licenses   string      `json:"licenses,omitempty"`
	MaxStartIn int32       `json:"maxStartDelay,omitempty"` // seconds
	PurgeComp  int32       `json:"purgeComp,omitempty"`     // seconds
}

// NodeCores are cores of a node, "0-1,3".
type NodeCores struct {
	Node string `json:"node"`
	IDs  string `json:"ids"`
}

// ReservationList is the response to GET reservations.
type ReservationList struct {
	Kind       string        `json:"kind"`
	APIVersion string        `json:"apiVersion"`
	Items      []Reservation `json:"items"`
}

// License is a cluster-wide license.
type License struct {
	Name     string `json:"name"`
	Total    int32  `json:"total"`
	Used     int32  `json:"used"`
	Reserved int32  `json:"reserved"`
}

// LicenseList is the response to GET licenses.
type LicenseList struct {
	Kind       string    `json:"kind"`
	APIVersion string    `json:"apiVersion"`
	Items      []License `json:"items"`
}

// Switch is a switch above nodes or, in a block topology, a block.
type Switch struct {
	Name      string `json:"name"`
	Level     int32  `json:"level"` // 0: no switches are below it
	LinkSpeed int64  `json:"linkSpeed"`
	Nodes     string `json:"nodes,omitempty"`    // folded: all nodes below it
	Switches  string `json:"switches,omitempty"` // folded: the switches directly below it
}

// Topology is the response to GET topology.
type Topology struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Type       string   `json:"type"` // tree, block
	Items      []Switch `json:"items"`
	// Problems says what is wrong in the description of the network, one sentence each.
	Problems []string `json:"problems,omitempty"`
}

// NodeList is the response to GET nodes.
type NodeList struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Items      []Node `json:"items"`
}

// NodeEvent is one line of a watch of the nodes (GET nodes?watch=true). The first is
// a SYNC with all nodes. A DIFF has new, changed and deleted nodes; a MARK means that
// nothing has changed for a while.
type NodeEvent struct {
	Type  string   `json:"type"`
	Time  int64    `json:"time"` // the server's clock, Unix seconds
	Items []Node   `json:"items,omitempty"`
	Gone  []string `json:"gone,omitempty"` // names
}

// PodList is the response to GET jobs/ID/pods: the pods of a job, failing ones first.
type PodList struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Time       int64  `json:"time"` // the server's clock, Unix seconds
	// Count is the number of pods of the job; Items may have fewer.
	Count int   `json:"count"`
	Items []Pod `json:"items"`
}

// Pod is one pod of a job.
type Pod struct {
	Name    string `json:"name"`
	Node    string `json:"node,omitempty"`
	Phase   string `json:"phase"` // of Kubernetes: Pending, Running, ...
	Ready   bool   `json:"ready,omitempty"`
	Reason  string `json:"reason,omitempty"`  // why it does not run: ImagePullBackOff, OutOfcpu, ...
	Message string `json:"message,omitempty"` // description of Reason
	// Restarts is that of its containers.
	Restarts int32 `json:"restarts,omitempty"`
	// CPU and Memory are the usage from the metrics API at the time Measured, in
	// Unix seconds; 0: not measured.
	Measured int64 `json:"measured,omitempty"`
	CPU      int64 `json:"cpu,omitempty"`    // thousandths of a CPU
	Memory   int64 `json:"memory,omitempty"` // bytes
	// Events are those about the pod, newest last.
	Events []PodEvent `json:"events,omitempty"`
}

// PodEvent is a Kubernetes event about a pod.
type PodEvent struct {
	Time    int64  `json:"time"` // of the last one, Unix seconds
	Type    string `json:"type"` // Normal, Warning
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   int32  `json:"count,omitempty"` // number of occurrences; 0: one
}

// PartitionList is the response to GET partitions.
type PartitionList struct {
	Kind       string      `json:"kind"`
	APIVersion string      `json:"apiVersion"`
	Items      []Partition `json:"items"`
}

// Script is the response to GET scripts?id=12.
type Script struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	// Script is the script of the BatchJob, compressed with zstd. Error is an
	// error text of Slurm, empty for success.
	Script []byte `json:"script,omitempty"`
	// Environment has NUL-terminated variables and is compressed too.
	Environment []byte `json:"environment,omitempty"`
	Error       string `json:"error,omitempty"`
}
