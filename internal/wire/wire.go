// Package wire holds what two processes of Berth must agree on: names of
// labels, variables and paths, and the messages between agents and the API
// role. It imports nothing, so that every binary can afford it.
package wire

// Labels and annotations, on objects that Berth makes.
const (
	LabelJobID     = "berth.hpc/job-id"  // decimal; on BatchJob, PodGroup, JobSet, Pod
	LabelAttempt   = "berth.hpc/attempt" // decimal status.attempt; on PodGroup, JobSet, Pod
	LabelUser      = "berth.hpc/user"    // User object's name
	LabelPartition = "berth.hpc/partition"
	// LabelManaged on Nodes: "false" takes a node out of the planner's pool. A
	// taint with this key keeps other schedulers' pods from a node of the pool.
	LabelManaged   = "berth.hpc/managed"
	LabelNamespace = "berth.hpc/user-namespace" // on Namespaces of Slurm users: the user's name

	// LabelLeader on a pod of the scheduler (value "true"): it leads, and takes
	// the connections of the API role.
	LabelLeader = "berth.hpc/leader"

	// LabelFeature plus a feature's name is a label (value "true") on a Node
	// that has the feature.
	LabelFeature = "feature.berth.hpc/"

	// LabelTopology on a Node is its place in the network: switches or blocks
	// from the widest to the one it hangs on, joined by dots ("spine1.leaf3").
	LabelTopology = "berth.hpc/topology"

	// Annotations on Nodes: geometry, and a drain reason.
	AnnotationSockets = "berth.hpc/sockets"
	AnnotationCores   = "berth.hpc/cores-per-socket"
	AnnotationThreads = "berth.hpc/threads-per-core"
	AnnotationWeight  = "berth.hpc/weight"  // of the node: lighter ones are taken first
	AnnotationState   = "berth.hpc/state"   // "drain", "down"
	AnnotationReason  = "berth.hpc/reason"  // why, by whom, when: "text [user@2026-01-02T03:04:05]"
	AnnotationComment = "berth.hpc/comment" // scontrol update nodename=... comment=
	// AnnotationFeatures lists a Node's features in the order in which they are
	// shown; it gives the Node none.
	AnnotationFeatures = "berth.hpc/features"
	// AnnotationJob on a bound pod of a workload is the number of the job that
	// stands for it. It is written with the binding.
	AnnotationJob = "berth.hpc/job"

	AnnotationName     = "berth.hpc/name"      // on Reservations: the name as users gave it
	AnnotationNodeName = "berth.hpc/node-name" // short name where it cannot be derived

	// AnnotationMold on a job's only pod: a digest of all that the pod is made of but
	// the job's number. Jobs whose pods have the same can run in each other's.
	AnnotationMold = "berth.hpc/mold"
	// AnnotationNodeOffset on the pods of a JobSet's replicated job: the
	// number of nodes before its first; a pod's index among the job's nodes
	// is this plus its completion index.
	AnnotationNodeOffset = "berth.hpc/node-offset"
	// AnnotationNodes, in its place, lists the indexes (NodeAt) where they do not
	// follow each other; the completion index is the place in the list.
	AnnotationNodes = "berth.hpc/nodes"

	// Finalizer on BatchJobs: the keeper removes it when nothing of the job
	// is left and the job is accounted for.
	Finalizer = "berth.hpc/job"

	// SchedulerName is the name pods ask for.
	SchedulerName = "berth-scheduler"
	// FieldManager of everything our scheduler writes.
	FieldManager = "berth-scheduler"
	// SystemNamespace holds what belongs to Berth itself.
	SystemNamespace = "berth-system"

	// ResourceGRES plus a GRES name (and "-" type) is the extended resource
	// a local cluster's nodes offer for it, for example gres.berth.hpc/gpu.
	ResourceGRES = "gres.berth.hpc/"

	// StateMarker is a file in the state folder of every local cluster, beside
	// its kubeconfig.
	StateMarker = "berth-state"
)

// Options of a job (translate/job.Job.Options) that scrontab sets.
const (
	OptionCron     = "cron"      // its schedule, see translate/value.ParseCron
	OptionCronText = "cron-text" // the lines of the crontab that it stands for
)

// QueueGroup is the aggregated API (queue.berth.hpc/v1alpha1), cluster-scoped:
// GET jobs, nodes, partitions, clusterinfo; POST operations.
const (
	QueueGroup   = "queue.berth.hpc"
	QueueVersion = "v1alpha1"
	QueueRoot    = "/apis/queue.berth.hpc/v1alpha1"
)

// AttachProtocol is what a connection to jobs/ID/attach of the queue API is
// upgraded to: the frames of internal/step, with the agent of the job's first
// node.
const AttachProtocol = "berth-step"

// AttachClient is the parameter of such a request with what the client calls
// itself (step.Open's Client): the agent is told of it when it is known that the
// client has hung up.
const AttachClient = "client"

// ReasonJobDone is the reason of the Status that refuses to attach to a job that
// has ended.
const ReasonJobDone = "JobDone"

// JobEvent is one line of what jobs/ID/attach tells about a job that is waited
// for. Empty lines are signs of life.
type JobEvent struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"` // why it is pending, or ended
	// Welcome describes a running job, without keys, script and environment.
	Welcome *Welcome `json:"welcome,omitempty"`
	// Final: the job is over, and this is the last event. Status and Signal
	// are its exit code.
	Final  bool  `json:"final,omitempty"`
	Status int32 `json:"status,omitempty"`
	Signal int32 `json:"signal,omitempty"`
}

// Variables in the environment of a pod's container, set by the starter or by
// pod admission, read by the agent.
const (
	EnvJobID      = "BERTH_JOB_ID"
	EnvAttempt    = "BERTH_ATTEMPT"
	EnvNodeOffset = "BERTH_NODE_OFFSET"    // plus EnvPodIndex: the node's index
	EnvNodes      = "BERTH_NODES"          // in its place: as AnnotationNodes
	EnvPodIndex   = "JOB_COMPLETION_INDEX" // set by the Job controller
	EnvNodeName   = "BERTH_NODE_NAME"      // short name of the planned node, by pod admission
	EnvPodIP      = "BERTH_POD_IP"         // status.podIP by the downward API
	EnvAPI        = "BERTH_API"            // https://host:port of the API role, comma-separated
	EnvAPICA      = "BERTH_API_CA"         // PEM, base64
	EnvSrunProlog = "BERTH_SRUN_PROLOG"    // path of the site's SrunProlog
	EnvSrunEpilog = "BERTH_SRUN_EPILOG"
	EnvBinDir     = "BERTH_BIN" // folder of agent, berth and the Slurm-named links

	// EnvStepSocket tells the job's processes where node's agent listens
	// (a unix socket); srun inside a job dials it.
	EnvStepSocket = "BERTH_STEP_SOCKET"

	// EnvCPUBind with the value "none" tells the agent that CPU numbers of
	// the allocation are not the kernel's (process nodes), so that it pins
	// nothing.
	EnvCPUBind = "BERTH_CPU_BIND"
)

// AgentPrepare as its first argument lets the agent prepare a pod and end:
//
//	agent prepare -hosts=FILE [-names=DIR -user=NAME:UID:GID:HOME:SHELL [-group=NAME:GID]...] [-bin=DIR] [-- DIR...]
//
// copies /etc/hosts to FILE and the agent's own folder to DIR, writes the
// image's passwd(5) and group(5) with the user and the groups into DIR, and
// fails with a line for each DIR after -- that the process cannot see.
const AgentPrepare = "prepare"

// Names of the files that -names writes.
const (
	PasswdName = "passwd"
	GroupName  = "group"
)

// Paths inside a pod.
const (
	// TokenPath is the token of the pod's ServiceAccount; the agent shows it
	// to the API role, and the commands show it to the API server.
	TokenPath = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	// TerminationLog takes the agent's last Report as JSON, for the case that
	// the API role cannot be reached.
	TerminationLog = "/dev/termination-log"
	// PMIxServer is the program in the folder of agent and commands that speaks
	// PMIx; it is not there where Berth was built without OpenPMIx.
	PMIxServer = "pmix-server"

	// DefaultBinDir is where the agent's folder is mounted unless a Partition
	// says otherwise.
	DefaultBinDir = "/berth/bin"

	// RunDir is a folder of the pod's own, on kubelets, from which programs can
	// be run: an image may have no folder that the user may write to.
	RunDir = "/berth/run"
	// MountsFile is the file in RunDir that says what a job's own mounts must be:
	// AgentPrepare writes it, and the agent compares.
	MountsFile = "mounts"
)

// The agents' side of the API role: JSON over HTTPS, bearer token of the pod.
// Every path takes POST. A 503 or a broken connection means: try again (after
// a pause that grows to 5 s); a 4xx is final.
const (
	PathHello    = "/agent/v1/hello"    // Hello -> Welcome, when the whole gang has said hello
	PathCommands = "/agent/v1/commands" // CommandQuery -> Commands, held up to 60 s
	PathReport   = "/agent/v1/report"   // Report -> ReportAnswer
	PathNext     = "/agent/v1/next"     // NextQuery -> Welcome of the next job, or 410
	PathSteps    = "/agent/v1/steps"    // StepReport -> {}
)

// Hello is an agent's first word. The server knows job, attempt and index from
// the pod; they are repeated here to catch a mix-up.
type Hello struct {
	JobID   int64  `json:"jobID"`
	Attempt int32  `json:"attempt"`
	Index   int32  `json:"index"`
	Address string `json:"address"` // host:port where the agent takes connections of other agents
	// CPUs is the set the agent may run on (a list such as "0-3"), from the
	// kernel; empty: unknown.
	CPUs string `json:"cpus,omitempty"`
}

// Welcome is the answer to Hello: everything the agent needs to know.
type Welcome struct {
	JobID   int64  `json:"jobID"`
	Attempt int32  `json:"attempt"`
	Index   int32  `json:"index"`
	Hosts   []Host `json:"hosts"` // in the order of SLURM_NODEID

	// Certificate and Key (PEM) authenticate the agents of this job to each
	// other: both sides of every connection show exactly this certificate.
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

	// Unpropagated are resource limits, without RLIMIT_, that steps do not take
	// over from srun unless they ask for it.
	Unpropagated []string `json:"unpropagated,omitempty"`

	// Het are the components of a heterogeneous job, this one included, in their
	// order; empty: the job is none. All agents of all components have the same
	// certificate.
	Het []HetComponent `json:"het,omitempty"`
	// Array: the array the job is a task of; nil: none.
	Array *ArrayTask `json:"array,omitempty"`

	// Site are the programs that the site runs around jobs; nil: none.
	Site *Site `json:"site,omitempty"`

	// Job is the neutral Job (translate/job.Job) as JSON. Script and
	// Environment are those of the BatchJob, still compressed; the batch host
	// alone gets them.
	Job         []byte `json:"job"`
	Script      []byte `json:"script,omitempty"`
	Environment []byte `json:"environment,omitempty"`

	// KubeHost is the API server's URL as pods reach it (the commands inside
	// the job use it with the pod's token and CA).
	KubeHost  string `json:"kubeHost,omitempty"`
	Namespace string `json:"namespace"`
}

// Site are the site's programs around jobs, each a path or the text of a script
// ("#!..."); empty: none. Timeout bounds Prolog and Epilog, in seconds.
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

// Host is one node of a job, as every agent of the job knows it.
type Host struct {
	Name    string `json:"name"`    // short node name: SLURMD_NODENAME, hostname
	Address string `json:"address"` // host:port of the agent there
	CPUs    int32  `json:"cpus"`
	CPUIDs  string `json:"cpuIDs,omitempty"`
	Memory  int64  `json:"memory,omitempty"` // MiB
	Tasks   int32  `json:"tasks,omitempty"`
	// GRES by "gpu" or "gpu:a100", with indexes where known.
	GRES []HostGRES `json:"gres,omitempty"`
}

// HostGRES is a count of one generic resource on a host.
type HostGRES struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
	Count   int64  `json:"count"`
	Indexes string `json:"indexes,omitempty"`
}

// ReportAnswer answers a Report. Next: ask for another job to run in the same pod
// (PathNext).
type ReportAnswer struct {
	Next bool `json:"next,omitempty"`
}

// NextQuery names the job that the agent has reported the end of.
type NextQuery struct {
	JobID   int64 `json:"jobID"`
	Attempt int32 `json:"attempt"`
}

// CommandQuery asks for the commands after sequence number After.
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
	CommandTerminate = "terminate" // end the job: SIGTERM, KillWait, SIGKILL
	CommandLimit     = "limit"     // the job's time limit now ends at EndTime; that of Steps is Minutes
	CommandNotify    = "notify"    // write Text to the job's standard error
	// CommandComplete ends a job without a script: what it was made for is
	// over, with Status and Code as its exit code (wait(2)'s two parts).
	CommandComplete = "complete"
	// CommandHungUp tells that Client, whose connection the agent has lost, will
	// not come back for it.
	CommandHungUp = "hungup"
)

// Command is something the API role wants the batch host's agent to do.
type Command struct {
	Seq    int64  `json:"seq"`
	Kind   string `json:"kind"`
	Signal int32  `json:"signal,omitempty"`
	Batch  bool   `json:"batch,omitempty"` // the batch shell only
	Full   bool   `json:"full,omitempty"`  // batch shell and steps
	// Every: SIGSTOP or SIGCONT is for every process in the job's pods, also those
	// that left their session (scontrol suspend and resume).
	Every bool `json:"every,omitempty"`
	// Steps are the only steps that a signal is for; empty: all.
	Steps []int32 `json:"steps,omitempty"`
	// End: the steps end, whatever they make of the signal, and say why. By is
	// the user who wants it.
	End bool   `json:"end,omitempty"`
	By  string `json:"by,omitempty"`
	// Status of a complete: the exit code.
	Status int32 `json:"status,omitempty"`
	// EndTime of a limit, Unix seconds; 0: none. Of a limit with Steps, which
	// counts from their start, Minutes; -1: none. Text of a notify.
	EndTime int64  `json:"endTime,omitempty"`
	Minutes int32  `json:"minutes,omitempty"`
	Text    string `json:"text,omitempty"`
	// Client of a hungup, as step.Open names it.
	Client string `json:"client,omitempty"`
	// Reason of a terminate, as the job's output names it: "CANCELLED",
	// "TIMEOUT", "PREEMPTED", "REQUEUE", "NODE_FAIL".
	Reason string `json:"reason,omitempty"`
}

// Report kinds.
const (
	ReportEnded  = "ended"  // the batch script and all steps are over
	ReportFailed = "failed" // the job could not be started; Message says why
	// The site's prolog or epilog failed on the agent's node, which need not be
	// the batch host; Message says how.
	ReportProlog = "prolog"
	ReportEpilog = "epilog"
)

// Report is what the batch host's agent tells about its job.
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
	// OutOfMemory: the kernel killed a process of the job for memory.
	OutOfMemory bool `json:"outOfMemory,omitempty"`
	// Stopped: the agent was told by SIGTERM to end the job, as a kubelet
	// does with a pod that is deleted or evicted.
	Stopped bool `json:"stopped,omitempty"`
	// LostNode is the node of the job that stopped answering last while a
	// step ran there, and LostFor how long before End that was noticed.
	// Empty: none did.
	LostNode string `json:"lostNode,omitempty"`
	LostFor  int64  `json:"lostFor,omitempty"` // nanoseconds
	// Steps is what no StepReport has told yet.
	Steps []StepRecord `json:"steps,omitempty"`
}

// Numbers of steps that are none of srun's (Slurm shows them as names).
const (
	StepBatch       int32 = -5 // the batch script: JOB.batch
	StepExtern      int32 = -4 // JOB.extern
	StepInteractive int32 = -6 // JOB.interactive
)

// StepReport is what the batch host's agent tells about steps: those that
// began, ended, or used more since the last one. A record replaces what was
// said before about the same step.
type StepReport struct {
	JobID   int64        `json:"jobID"`
	Attempt int32        `json:"attempt"`
	Steps   []StepRecord `json:"steps"`
}

// StepRecord is one step of a job. It comes from the job's own agents, which
// share the user's uid: it is accounted, and nothing that is fair or limited
// rests on it.
type StepRecord struct {
	ID    int32    `json:"id"` // SLURM_STEP_ID, or one of the numbers above
	Name  string   `json:"name"`
	Nodes []string `json:"nodes"` // in the order of the step's node ids
	Tasks int32    `json:"tasks"`
	CPUs  int32    `json:"cpus"`
	// Memory is what the step may have, in MiB; 0: not known.
	Memory int64 `json:"memory,omitempty"`
	// Layout is --distribution as the step had it.
	Layout string `json:"layout,omitempty"`
	// SrunHost and SrunPID are of the srun that asked for it, as that says.
	SrunHost string `json:"srunHost,omitempty"`
	SrunPID  int64  `json:"srunPID,omitempty"`
	// State is RUNNING, COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL or
	// OUT_OF_MEMORY.
	State string `json:"state"`
	Start int64  `json:"start"`         // Unix nanoseconds
	End   int64  `json:"end,omitempty"` // Unix nanoseconds; 0: it runs
	// Status and Signal: of the task with the highest exit code.
	Status    int32 `json:"status"`
	Signal    int32 `json:"signal"`
	TimeLimit int32 `json:"timeLimit,omitempty"` // minutes; 0: the job's
	// KilledBy is the user who cancelled this step by itself.
	KilledBy string `json:"killedBy,omitempty"`
	Usage    Usage  `json:"usage,omitzero"`
}

// Usage is what the processes of a step have used so far. Of the maxima, Node
// is an index of StepRecord.Nodes and Task the task's number; where the kernel
// tells only of a whole node, Task is the first there.
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
