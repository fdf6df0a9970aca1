// Package wire defines what several processes of Berth share: the names of labels,
// variables and paths, and the messages between agents and the API role. It imports
// nothing, so that every binary can use it.
package wire

import "strconv"

// Labels and annotations of objects that Berth creates or reads.
const (
	LabelJobID     = "berth.hpc/job-id"  // decimal; on BatchJob, PodGroup, JobSet, Pod
	LabelAttempt   = "berth.hpc/attempt" // decimal status.attempt; on PodGroup, JobSet, Pod
	LabelUser      = "berth.hpc/user"    // User object's name
	LabelPartition = "berth.hpc/partition"
	// LabelManaged on Nodes with the value "false" removes a node from the planner's
	// pool. A taint with this key keeps pods of other schedulers off the pool.
	LabelManaged   = "berth.hpc/managed"
	LabelNamespace = "berth.hpc/user-namespace" // on Namespaces of Slurm users: the user's name

	// LabelLeader, with the value "true", marks the scheduler's pod that is the leader
	// and accepts the connections of the API role.
	LabelLeader = "berth.hpc/leader"

	// LabelFeature plus a feature's name, with the value "true", is the label of Nodes
	// that have the feature.
	LabelFeature = "feature.berth.hpc/"

	// LabelTopology on a Node is its position in the network: switches or blocks from
	// the top level to the one the node is connected to ("spine1.leaf3").
	LabelTopology = "berth.hpc/topology"

	// Annotations on Nodes: geometry, and a drain reason.
	AnnotationSockets = "berth.hpc/sockets"
	AnnotationCores   = "berth.hpc/cores-per-socket"
	AnnotationThreads = "berth.hpc/threads-per-core"
	AnnotationWeight  = "berth.hpc/weight"  // nodes with a lower weight are allocated first
	AnnotationState   = "berth.hpc/state"   // "drain", "down"
	AnnotationReason  = "berth.hpc/reason"  // why, by whom, when: "text [user@2026-01-02T03:04:05]"
	AnnotationComment = "berth.hpc/comment" // scontrol update nodename=... comment=
	// AnnotationNotice on a BatchJob of srun or salloc is the last message of scontrol
	// notify, after a number that differs from message to message and a blank.
	AnnotationNotice = "berth.hpc/notice"
	// The node's report: the load of its CPUs (0.25), and free memory in MiB.
	AnnotationLoad       = "berth.hpc/cpu-load"
	AnnotationFreeMemory = "berth.hpc/free-memory"
	AnnotationExtra      = "berth.hpc/extra"    // scontrol update nodename=... extra=
	AnnotationCPUBind    = "berth.hpc/cpu-bind" // scontrol update nodename=... cpubind=
	// AnnotationFeatures is the order in which a Node's features are shown. It adds no
	// features.
	AnnotationFeatures = "berth.hpc/features"
	// AnnotationJob on a bound pod of a workload is the id of the job that represents
	// it. It is written with the binding.
	AnnotationJob = "berth.hpc/job"

	AnnotationName     = "berth.hpc/name"      // on Reservations: the name that users gave
	AnnotationNodeName = "berth.hpc/node-name" // short name, if it cannot be derived

	// AnnotationPodTemplateHash on a job's only pod is the hash of the pod template
	// without the job's id. A job can run in another job's pod with the same hash.
	AnnotationPodTemplateHash = "berth.hpc/pod-template-hash"
	// AnnotationNodeOffset on the pods of a JobSet's replicated job is the number of
	// nodes before its first. The index of a pod's node in the job is this plus the
	// pod's completion index.
	AnnotationNodeOffset = "berth.hpc/node-offset"
	// AnnotationNodes replaces it if the indexes are not consecutive. It lists them
	// (NodeAt); the completion index is the position in the list.
	AnnotationNodes = "berth.hpc/nodes"

	// Finalizer of BatchJobs. The keeper removes it when nothing of the job is left and
	// its accounting record is stored.
	Finalizer = "berth.hpc/job"

	// SchedulerName is the schedulerName of pods.
	SchedulerName = "berth-scheduler"
	// FieldManager is that of everything Berth's scheduler writes.
	FieldManager = "berth-scheduler"
	// SystemNamespace is the namespace of Berth's own objects.
	SystemNamespace = "berth-system"

	// ResourceGRES plus a GRES name (and "-" and a type) is the extended resource that
	// nodes of a local cluster offer for it, such as gres.berth.hpc/gpu.
	ResourceGRES = "gres.berth.hpc/"

	// StateMarker is a file in the state directory of every local cluster.
	StateMarker = "berth-state"
)

// MachineKubeconfigs returns the files in which running local clusters leave the
// kubeconfig of the user with this uid: a cluster that root runs, then one of the user's
// own. They depend on nothing that a program or a login may change, such as HOME.
func MachineKubeconfigs(uid int) []string {
	return []string{
		"/run/berth/" + strconv.Itoa(uid) + ".kubeconfig",
		"/run/user/" + strconv.Itoa(uid) + "/berth.kubeconfig",
	}
}

// Options of a job (translate/job.Job.Options) that scrontab sets.
const (
	OptionCron     = "cron"      // its schedule, see translate/value.ParseCron
	OptionCronText = "cron-text" // its lines in the crontab
)

// QueueGroup is the aggregated API (queue.berth.hpc/v1alpha1), cluster-scoped:
// GET jobs, nodes, partitions, clusterinfo; POST operations.
const (
	QueueGroup   = "queue.berth.hpc"
	QueueVersion = "v1alpha1"
	QueueRoot    = "/apis/queue.berth.hpc/v1alpha1"
)

// AttachProtocol is the protocol to which connections to jobs/ID/attach of the queue API
// are upgraded: the frames of internal/step, with the agent of the job's first node.
const AttachProtocol = "berth-step"

// AttachClient is the parameter of such a request with the client's name (step.Open's
// Client). The agent is notified with this name when the client has hung up.
const AttachClient = "client"

// ReasonJobDone is the reason of the Status that refuses to attach to a job that
// has ended.
const ReasonJobDone = "JobDone"

// JobEvent is a line of the answer of jobs/ID/attach without an upgrade: a change of the
// job. Empty lines keep the connection alive.
type JobEvent struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"` // why it is pending, or ended
	// Welcome describes a running job, without keys, script and environment.
	Welcome *Welcome `json:"welcome,omitempty"`
	// Notice is a message of scontrol notify; the event is about nothing else.
	Notice string `json:"notice,omitempty"`
	// Final marks the last event, after the end of the job. Status and Signal are its
	// exit code.
	Final  bool  `json:"final,omitempty"`
	Status int32 `json:"status,omitempty"`
	Signal int32 `json:"signal,omitempty"`
}

// Variables of a pod's container, which the starter or pod admission sets and the agent
// reads.
const (
	EnvJobID      = "BERTH_JOB_ID"
	EnvAttempt    = "BERTH_ATTEMPT"
	EnvNodeOffset = "BERTH_NODE_OFFSET"    // plus EnvPodIndex: the node's index
	EnvNodes      = "BERTH_NODES"          // replaces it, in the form of AnnotationNodes
	EnvPodIndex   = "JOB_COMPLETION_INDEX" // set by the Job controller
	EnvNodeName   = "BERTH_NODE_NAME"      // short name of the planned node, by pod admission
	EnvPodIP      = "BERTH_POD_IP"         // status.podIP by the downward API
	EnvAPI        = "BERTH_API"            // https://host:port of the API role, comma-separated
	EnvAPICA      = "BERTH_API_CA"         // PEM, base64
	EnvSrunProlog = "BERTH_SRUN_PROLOG"    // path of the site's SrunProlog
	EnvSrunEpilog = "BERTH_SRUN_EPILOG"
	EnvBinDir     = "BERTH_BIN" // directory of agent, berth and the links with Slurm's names

	// EnvStepSocket is the path of the Unix socket at which the agent of the node
	// listens; srun inside a job connects to it.
	EnvStepSocket = "BERTH_STEP_SOCKET"

	// EnvCPUBind with the value "none" means that the CPU numbers of the allocation are
	// not the kernel's (process nodes), so that the agent binds no tasks.
	EnvCPUBind = "BERTH_CPU_BIND"
)

// AgentPrepare as the agent's first argument prepares a pod:
//
//	agent prepare -hosts=FILE [-names=DIR -user=NAME:UID:GID:HOME:SHELL [-group=NAME:GID]...] [-bin=DIR] [-- DIR...]
//
// copies /etc/hosts to FILE and the agent's own directory to DIR, writes the image's
// passwd(5) and group(5) with the user and the groups to DIR, and fails with a line for
// each DIR after -- that the process cannot see.
const AgentPrepare = "prepare"

// Names of the files that -names writes.
const (
	PasswdName = "passwd"
	GroupName  = "group"
)

// Paths inside a pod.
const (
	// TokenPath is the token of the pod's ServiceAccount, with which the agent
	// authenticates to the API role and the commands to the API server.
	TokenPath = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	// TerminationLog is the file to which the agent writes its last Report as JSON, in
	// case the API role cannot be reached.
	TerminationLog = "/dev/termination-log"
	// PMIxServer is the program beside the agent that serves PMIx. It is missing if
	// Berth was built without OpenPMIx.
	PMIxServer = "pmix-server"

	// DefaultBinDir is where the agent's directory is mounted, unless the Partition
	// names another path.
	DefaultBinDir = "/berth/bin"

	// RunDir is a directory of the pod, on kubelets, from which programs can be
	// executed: an image may have no directory that the user may write to.
	RunDir = "/berth/run"
	// MountsFile is the file in RunDir with the identities of the job's own mounts.
	// AgentPrepare writes it, and the agent compares it with the mounts.
	MountsFile = "mounts"
)

// The API role's paths for agents: POST of JSON over HTTPS, with the pod's bearer token.
// After a 503 or a broken connection the agent retries with a backoff of up to 5 s; a
// 4xx is final.
const (
	PathHello    = "/agent/v1/hello"    // Hello -> Welcome, when all agents of the job have sent it
	PathCommands = "/agent/v1/commands" // CommandQuery -> Commands, held up to 60 s
	PathReport   = "/agent/v1/report"   // Report -> ReportAnswer
	PathNext     = "/agent/v1/next"     // NextQuery -> Welcome of the next job, or 410
	PathSteps    = "/agent/v1/steps"    // StepReport -> {}
)

// Hello is an agent's first message. The server knows job, attempt and index from the
// pod; they are repeated to detect mistakes.
type Hello struct {
	JobID   int64  `json:"jobID"`
	Attempt int32  `json:"attempt"`
	Index   int32  `json:"index"`
	Address string `json:"address"` // host:port at which the agent accepts connections of other agents
	// CPUs is the list of CPUs on which the kernel lets the agent run, such as "0-3";
	// empty: unknown.
	CPUs string `json:"cpus,omitempty"`
}

// Welcome is the answer to Hello. It describes the job to the agent.
type Welcome struct {
	JobID   int64  `json:"jobID"`
	Attempt int32  `json:"attempt"`
	Index   int32  `json:"index"`
	Hosts   []Host `json:"hosts"` // in the order of SLURM_NODEID

	// Certificate and Key (PEM) authenticate the agents of this job to each other: both
	// sides of every connection present exactly this certificate.
	Certificate string `json:"certificate"`
	Key         string `json:"key"`

	UID       int64  `json:"uid"`
	GID       int64  `json:"gid"`
	User      string `json:"user"`
	Group     string `json:"group,omitempty"`
	Home      string `json:"home,omitempty"`
	Shell     string `json:"shell,omitempty"`
	Account   string `json:"account,omitempty"`
	Partition string `json:"partition"`
	QOS       string `json:"qos,omitempty"`

	ClusterName string `json:"clusterName"`
	Restarts    int32  `json:"restarts"`
	StartTime   int64  `json:"startTime"` // Unix seconds
	EndTime     int64  `json:"endTime"`   // Unix seconds; 0: no limit
	KillWait    int32  `json:"killWait"`  // seconds

	// Unpropagated are the resource limits, without RLIMIT_, that steps inherit from
	// srun only with --propagate.
	Unpropagated []string `json:"unpropagated,omitempty"`

	// Het are the components of a heterogeneous job in order, including this one;
	// empty for other jobs. All agents of all components have the same certificate.
	Het []HetComponent `json:"het,omitempty"`
	// Array is the array of which the job is a task; nil: none.
	Array *ArrayTask `json:"array,omitempty"`

	// Site are the site's prologs and epilogs; nil: none.
	Site *Site `json:"site,omitempty"`

	// Job is the neutral Job (translate/job.Job) as JSON. Script and Environment are
	// those of the BatchJob, compressed; only the batch host gets them.
	Job []byte `json:"job"`
	// DefaultMemory: the memory in Job is the default of the partition or the cluster.
	DefaultMemory bool   `json:"defaultMemory,omitempty"`
	Script        []byte `json:"script,omitempty"`
	Environment   []byte `json:"environment,omitempty"`

	// KubeHost is the URL at which pods reach the API server. Commands inside the job
	// use it with the pod's token and CA.
	KubeHost  string `json:"kubeHost,omitempty"`
	Namespace string `json:"namespace"`
}

// Site are the site's prologs and epilogs, each a path or the text of a script
// ("#!..."); empty: none. Timeout is the limit of Prolog and Epilog in seconds.
type Site struct {
	Prolog     string `json:"prolog,omitempty"`
	Epilog     string `json:"epilog,omitempty"`
	TaskProlog string `json:"taskProlog,omitempty"`
	TaskEpilog string `json:"taskEpilog,omitempty"`
	SrunProlog string `json:"srunProlog,omitempty"`
	SrunEpilog string `json:"srunEpilog,omitempty"`
	Timeout    int32  `json:"timeout"`
}

// HetComponent is one component of a heterogeneous job.
type HetComponent struct {
	JobID     int64  `json:"jobID"`
	Hosts     []Host `json:"hosts"`
	Partition string `json:"partition,omitempty"`
	Account   string `json:"account,omitempty"`
	QOS       string `json:"qos,omitempty"`
	Job       []byte `json:"job"` // translate/job.Job as JSON
	// DefaultMemory: as in Welcome.
	DefaultMemory bool `json:"defaultMemory,omitempty"`
}

// ArrayTask is a task of an array; Count, Min, Max and Step are the array's.
type ArrayTask struct {
	JobID int64 `json:"jobID"` // the array's
	Index int32 `json:"index"`
	Count int32 `json:"count"`
	Min   int32 `json:"min"`
	Max   int32 `json:"max"`
	Step  int32 `json:"step"`
}

// Host describes a node of a job to the job's agents.
type Host struct {
	Name    string `json:"name"`    // short node name: SLURMD_NODENAME, hostname
	Address string `json:"address"` // host:port of the agent there
	CPUs    int32  `json:"cpus"`
	CPUIDs  string `json:"cpuIDs,omitempty"`
	Memory  int64  `json:"memory,omitempty"` // MiB
	Tasks   int32  `json:"tasks,omitempty"`
	// GRES are the generic resources, with indexes if they are known.
	GRES []HostGRES `json:"gres,omitempty"`
}

// HostGRES is a count of one generic resource on a host.
type HostGRES struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
	Count   int64  `json:"count"`
	Indexes string `json:"indexes,omitempty"`
}

// ReportAnswer answers a Report. With Next the agent requests another job for the pod
// (PathNext).
type ReportAnswer struct {
	Next bool `json:"next,omitempty"`
}

// NextQuery names the job whose end the agent has reported.
type NextQuery struct {
	JobID   int64 `json:"jobID"`
	Attempt int32 `json:"attempt"`
}

// CommandQuery requests the commands after sequence number After.
type CommandQuery struct {
	After int64 `json:"after"`
}

// Commands answers a CommandQuery; it may be empty.
type Commands struct {
	Items []Command `json:"items"`
}

// Kinds of Command.
const (
	CommandSignal    = "signal"    // send Signal to the job's processes
	CommandTerminate = "terminate" // terminate the job: SIGTERM, and SIGKILL after KillWait
	CommandLimit     = "limit"     // the job's time limit now ends at EndTime; that of Steps is Minutes
	CommandNotify    = "notify"    // write Text to the job's standard error
	// CommandComplete ends a job without a script, with Status as its exit code.
	CommandComplete = "complete"
	// CommandHungUp reports that Client, whose connection broke, will not reconnect.
	CommandHungUp = "hungup"
)

// Command is a command of the API role to the agent of the batch host.
type Command struct {
	Seq    int64  `json:"seq"`
	Kind   string `json:"kind"`
	Signal int32  `json:"signal,omitempty"`
	Batch  bool   `json:"batch,omitempty"` // the batch shell only
	Full   bool   `json:"full,omitempty"`  // batch shell and steps
	// Every sends SIGSTOP or SIGCONT to every process in the job's pods, including
	// those that left their session (scontrol suspend and resume).
	Every bool `json:"every,omitempty"`
	// Steps are the steps to which a signal is sent; empty: all.
	Steps []int32 `json:"steps,omitempty"`
	// End cancels the steps in place of sending the signal. By is the user who cancels
	// them.
	End bool   `json:"end,omitempty"`
	By  string `json:"by,omitempty"`
	// Status of a complete: the exit code.
	Status int32 `json:"status,omitempty"`
	// EndTime of a limit, in Unix seconds; 0: none. A limit with Steps has Minutes from
	// their start instead; -1: none. Text of a notify.
	EndTime int64  `json:"endTime,omitempty"`
	Minutes int32  `json:"minutes,omitempty"`
	Text    string `json:"text,omitempty"`
	// Client of a hungup, as in step.Open.
	Client string `json:"client,omitempty"`
	// Reason of a terminate, by the state of the job or step: "CANCELLED",
	// "TIMEOUT", "PREEMPTED", "REQUEUE", "NODE_FAIL".
	Reason string `json:"reason,omitempty"`
}

// Report kinds.
const (
	ReportEnded  = "ended"  // the batch script and all steps have ended
	ReportFailed = "failed" // the job could not be started; Message is the reason
	// The site's prolog or epilog failed on the agent's node, which need not be the
	// batch host; Message is the error.
	ReportProlog = "prolog"
	ReportEpilog = "epilog"
)

// Report is a report of the batch host's agent about its job.
type Report struct {
	JobID   int64  `json:"jobID"`
	Attempt int32  `json:"attempt"`
	Kind    string `json:"kind"`
	// Status and Signal of the batch script, as Slurm's ExitCode pair.
	Status  int32 `json:"status"`
	Signal  int32 `json:"signal"`
	Derived int32 `json:"derived"` // highest exit code of the steps
	// DerivedSignal is the highest signal that ended a task with that code.
	DerivedSignal int32 `json:"derivedSignal,omitempty"`

	Message string `json:"message,omitempty"`
	Start   int64  `json:"start,omitempty"` // Unix nanoseconds
	End     int64  `json:"end,omitempty"`   // Unix nanoseconds
	// OutOfMemory means that the kernel killed a process of the job for memory.
	OutOfMemory bool `json:"outOfMemory,omitempty"`
	// Stopped means that the agent got SIGTERM, which a kubelet sends to a pod that is
	// deleted or evicted.
	Stopped bool `json:"stopped,omitempty"`
	// LostNode is the last node that was lost while a step ran there, and LostFor the
	// time from then to End. Empty: none.
	LostNode string `json:"lostNode,omitempty"`
	LostFor  int64  `json:"lostFor,omitempty"` // nanoseconds
	// Steps are records that no StepReport has contained.
	Steps []StepRecord `json:"steps,omitempty"`
}

// Numbers of steps that srun did not create. Slurm shows them as names.
const (
	StepBatch       int32 = -5 // the batch script: JOB.batch
	StepExtern      int32 = -4 // JOB.extern
	StepInteractive int32 = -6 // JOB.interactive
)

// StepReport is a report of the batch host's agent about steps that have changed since
// the last one. A record replaces earlier ones of the same step.
type StepReport struct {
	JobID   int64        `json:"jobID"`
	Attempt int32        `json:"attempt"`
	Steps   []StepRecord `json:"steps"`
}

// StepRecord describes a step of a job. It comes from the job's own agents, which have
// the user's uid: it is stored for accounting, but fairness and limits do not depend on
// it.
type StepRecord struct {
	ID    int32    `json:"id"` // SLURM_STEP_ID, or one of the numbers above
	Name  string   `json:"name"`
	Nodes []string `json:"nodes"` // in the order of the step's node ids
	Tasks int32    `json:"tasks"`
	CPUs  int32    `json:"cpus"`
	// Memory is the memory that the step may use, in MiB; 0: unknown.
	Memory int64 `json:"memory,omitempty"`
	// GPUs is the number of GPUs that the step may use, where they are known.
	GPUs int32 `json:"gpus,omitempty"`
	// Layout is the step's --distribution.
	Layout string `json:"layout,omitempty"`
	// SrunHost and SrunPID identify the srun process, by its own account.
	SrunHost string `json:"srunHost,omitempty"`
	SrunPID  int64  `json:"srunPID,omitempty"`
	// State is RUNNING, COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL or
	// OUT_OF_MEMORY.
	State string `json:"state"`
	Start int64  `json:"start"`         // Unix nanoseconds
	End   int64  `json:"end,omitempty"` // Unix nanoseconds; 0: it runs
	// Status and Signal are those of the task with the highest exit code.
	Status    int32 `json:"status"`
	Signal    int32 `json:"signal"`
	TimeLimit int32 `json:"timeLimit,omitempty"` // minutes; 0: the job's
	// KilledBy is the user who cancelled this step, but not the job.
	KilledBy string `json:"killedBy,omitempty"`
	Usage    Usage  `json:"usage,omitzero"`
}

// Usage is what the processes of a step have used so far. For maxima, Node is an index in
// StepRecord.Nodes and Task the number of the task.
type Usage struct {
	UserCPU   int64 `json:"userCPU,omitempty"`   // microseconds
	SystemCPU int64 `json:"systemCPU,omitempty"` // microseconds

	MaxRSS     int64 `json:"maxRSS,omitempty"` // bytes, of one task
	MaxRSSNode int32 `json:"maxRSSNode,omitempty"`
	MaxRSSTask int32 `json:"maxRSSTask,omitempty"`
	TotalRSS   int64 `json:"totalRSS,omitempty"` // bytes, sum of the tasks' maxima

	MaxVMSize     int64 `json:"maxVMSize,omitempty"` // bytes, of one task
	MaxVMSizeNode int32 `json:"maxVMSizeNode,omitempty"`
	MaxVMSizeTask int32 `json:"maxVMSizeTask,omitempty"`
	TotalVMSize   int64 `json:"totalVMSize,omitempty"`

	MinCPU     int64 `json:"minCPU,omitempty"` // microseconds, the least of a task
	MinCPUNode int32 `json:"minCPUNode,omitempty"`
	MinCPUTask int32 `json:"minCPUTask,omitempty"`

	MaxPages     int64 `json:"maxPages,omitempty"` // major faults of one task
	MaxPagesNode int32 `json:"maxPagesNode,omitempty"`
	MaxPagesTask int32 `json:"maxPagesTask,omitempty"`
	TotalPages   int64 `json:"totalPages,omitempty"`

	DiskRead  int64 `json:"diskRead,omitempty"`  // bytes, all tasks
	DiskWrite int64 `json:"diskWrite,omitempty"` // bytes, all tasks
}
