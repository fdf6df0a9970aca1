// Package status defines the messages of the queue API: rows of jobs, nodes,
// partitions and accounting records, and requests and responses. It also defines the
// states and reasons of jobs. translate/format prints the rows.
package status

// Job is one row of the queue. Times are Unix seconds (0: unknown), sizes MiB,
// durations seconds unless the name has another unit.
type Job struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	User       string `json:"user"`
	UID        int64  `json:"uid"`
	Group      string `json:"group,omitempty"`
	GID        int64  `json:"gid"`
	Account    string `json:"account,omitempty"`
	QOS        string `json:"qos,omitempty"`
	Partition  string `json:"partition"` // as requested, comma-separated, or the one it runs in
	State      string `json:"state"`     // PENDING, RUNNING, ... (squeue(1))
	Reason     string `json:"reason,omitempty"`
	Dependency string `json:"dependency,omitempty"`
	Priority   int64  `json:"priority"`
	Nice       int32  `json:"nice,omitempty"`

	Submit    int64 `json:"submit"`
	Eligible  int64 `json:"eligible,omitempty"`
	Start     int64 `json:"start,omitempty"` // of a pending job: the planned start
	End       int64 `json:"end,omitempty"`   // of a running job: start plus limit
	TimeLimit int32 `json:"timeLimit"`       // minutes; -1: UNLIMITED
	TimeMin   int32 `json:"timeMin,omitempty"`

	Nodes         int32  `json:"nodes"` // allocated, or the requested minimum
	MaxNodes      int32  `json:"maxNodes,omitempty"`
	CPUs          int32  `json:"cpus"`
	Tasks         int32  `json:"tasks"`
	CPUsPerTask   int32  `json:"cpusPerTask,omitempty"`
	TasksPerNode  int32  `json:"tasksPerNode,omitempty"`
	MinMemory     int64  `json:"minMemory,omitempty"` // MiB per node, or per CPU
	MemoryPerCPU  bool   `json:"memoryPerCPU,omitempty"`
	GRES          string `json:"gres,omitempty"` // --gres text form, per node
	TRES          string `json:"tres,omitempty"` // allocated or requested: cpu=..,mem=..,node=..
	Features      string `json:"features,omitempty"`
	NodeList      string `json:"nodeList,omitempty"` // folded
	PlannedNodes  string `json:"plannedNodes,omitempty"`
	ReqNodes      string `json:"reqNodes,omitempty"`
	ExcNodes      string `json:"excNodes,omitempty"`
	BatchHost     string `json:"batchHost,omitempty"`
	OverSubscribe string `json:"overSubscribe,omitempty"`
	Contiguous    bool   `json:"contiguous,omitempty"`

	Command string `json:"command,omitempty"`
	WorkDir string `json:"workDir,omitempty"`
	StdOut  string `json:"stdOut,omitempty"`
	StdErr  string `json:"stdErr,omitempty"`
	StdIn   string `json:"stdIn,omitempty"`
	Comment string `json:"comment,omitempty"`
	// Message describes why the job could not start or how it ended, if State and
	// Reason are not sufficient.
	Message  string `json:"message,omitempty"`
	ExitCode int32  `json:"exitCode,omitempty"`
	Signal   int32  `json:"signal,omitempty"`
	Requeue  bool   `json:"requeue,omitempty"`
	Restarts int32  `json:"restarts,omitempty"`

	ArrayJobID  int64  `json:"arrayJobID,omitempty"`
	ArrayTaskID string `json:"arrayTaskID,omitempty"` // "3", or "0-9%2" for tasks that are not split off
	ArrayWhole  bool   `json:"arrayWhole,omitempty"`  // the row stands for tasks that are not split off
	HetJobID    int64  `json:"hetJobID,omitempty"`
	HetOffset   int32  `json:"hetOffset,omitempty"`

	Reservation string `json:"reservation,omitempty"`
	Licenses    string `json:"licenses,omitempty"`
	WCKey       string `json:"wckey,omitempty"`

	// More fields of scontrol show job and squeue -O. Names and units are those of
	// scontrol's output.
	SubmitHost     string `json:"submitHost,omitempty"`
	SubmitSID      int32  `json:"submitSID,omitempty"` // session id
	SubmitLine     string `json:"submitLine,omitempty"`
	NoBatch        bool   `json:"noBatch,omitempty"` // salloc, srun: no script
	Accrue         int64  `json:"accrue,omitempty"`
	LastSched      int64  `json:"lastSched,omitempty"`
	Scheduler      string `json:"scheduler,omitempty"` // "Main", "Backfill"
	Deadline       int64  `json:"deadline,omitempty"`
	SuspendTime    int64  `json:"suspendTime,omitempty"`
	PreSuspend     int64  `json:"preSuspend,omitempty"` // seconds run before SuspendTime
	PreemptTime    int64  `json:"preemptTime,omitempty"`
	ResizeTime     int64  `json:"resizeTime,omitempty"`
	DerivedCode    int32  `json:"derivedCode,omitempty"`
	DerivedSignal  int32  `json:"derivedSignal,omitempty"`
	AdminComment   string `json:"adminComment,omitempty"`
	Extra          string `json:"extra,omitempty"`
	MailUser       string `json:"mailUser,omitempty"`
	MailType       string `json:"mailType,omitempty"` // BEGIN,END
	TmpDisk        int64  `json:"tmpDisk,omitempty"`  // MiB
	MinCPUs        int32  `json:"minCPUs,omitempty"`  // a node
	MaxCPUs        int32  `json:"maxCPUs,omitempty"`
	SocketsPerNode int32  `json:"socketsPerNode,omitempty"`
	CoresPerSocket int32  `json:"coresPerSocket,omitempty"`
	ThreadsPerCore int32  `json:"threadsPerCore,omitempty"`
	TasksPerSocket int32  `json:"tasksPerSocket,omitempty"`
	TasksPerCore   int32  `json:"tasksPerCore,omitempty"`
	CoreSpec       int32  `json:"coreSpec,omitempty"`
	TRESReq        string `json:"tresReq,omitempty"` // as TRES, requested
	TRESPerJob     string `json:"tresPerJob,omitempty"`
	TRESPerSocket  string `json:"tresPerSocket,omitempty"`
	TRESPerTask    string `json:"tresPerTask,omitempty"`
	MemPerTRES     string `json:"memPerTRES,omitempty"`
	CPUsPerTRES    string `json:"cpusPerTRES,omitempty"`
	TRESBind       string `json:"tresBind,omitempty"`
	TRESFreq       string `json:"tresFreq,omitempty"`
	TasksPerTRES   int32  `json:"tasksPerTRES,omitempty"`
	CPUFreq        string `json:"cpuFreq,omitempty"` // as scontrol shows it
	Power          string `json:"power,omitempty"`
	MCSLabel       string `json:"mcsLabel,omitempty"`    // as given: nothing depends on it
	EnforceBind    string `json:"enforceBind,omitempty"` // Yes or No: --gres-flags
	KillInvalid    string `json:"killInvalid,omitempty"` // Yes or No: --kill-on-invalid-dep
	SpreadJob      bool   `json:"spreadJob,omitempty"`
	DelayBoot      int64  `json:"delayBoot,omitempty"` // seconds
	Prefer         string `json:"prefer,omitempty"`
	ClusterFeature string `json:"clusterFeature,omitempty"` // --cluster-constraint
	Network        string `json:"network,omitempty"`
	Switches       int32  `json:"switches,omitempty"`
	SwitchesWait   int32  `json:"switchesWait,omitempty"` // seconds
	Container      string `json:"container,omitempty"`
	Profile        string `json:"profile,omitempty"`
	ArrayMax       int32  `json:"arrayMax,omitempty"`  // %N
	HetJobSet      string `json:"hetJobSet,omitempty"` // "87-89"
	// Layout is the allocation on each node: "NAME CPUIDS MEM GRES" in the order
	// of the job's nodes, separated by ";". GRES is like gpu:tesla:1(IDX:0).
	Layout string `json:"layout,omitempty"`

	// Cluster is the job's cluster in a list of a federation's jobs. Servers do not set it.
	Cluster string `json:"-"`

	// Namespace and Object identify the BatchJob.
	Namespace string `json:"namespace,omitempty"`
	Object    string `json:"object,omitempty"`
}

// Node is one node of the pool.
type Node struct {
	Name       string   `json:"name"`
	Address    string   `json:"address,omitempty"`
	Partitions []string `json:"partitions,omitempty"`
	State      string   `json:"state"` // base state: IDLE, MIXED, ALLOCATED, DOWN, UNKNOWN
	// Flags besides the state: CLOUD, POWER_DOWN, POWERED_DOWN, POWERING_DOWN, POWERING_UP, DRAIN,
	// COMPLETING, NOT_RESPONDING, RESERVED, PLANNED, MAINTENANCE.
	Flags    []string `json:"flags,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	ReasonBy string   `json:"reasonBy,omitempty"`
	ReasonAt int64    `json:"reasonAt,omitempty"`
	// DeviceTrouble says which of the node's devices cannot be used.
	DeviceTrouble string `json:"deviceTrouble,omitempty"`

	Host           string   `json:"host,omitempty"`           // NodeHostName; empty: Name
	Weight         int32    `json:"weight,omitempty"`         // 0: 1
	Load           int32    `json:"load,omitempty"`           // of the CPUs, in hundredths; 0: unknown
	FreeMem        int64    `json:"freeMem,omitempty"`        // MiB; 0: unknown
	ActiveFeatures []string `json:"activeFeatures,omitempty"` // empty: Features
	Port           int32    `json:"port,omitempty"`
	Owner          string   `json:"owner,omitempty"`
	Extra          string   `json:"extra,omitempty"`
	CPUBind        string   `json:"cpuBind,omitempty"`    // how tasks are bound by default
	AgentStart     int64    `json:"agentStart,omitempty"` // SlurmdStartTime
	LastBusy       int64    `json:"lastBusy,omitempty"`
	NextState      string   `json:"nextState,omitempty"` // after a reboot
	Reservation    string   `json:"reservation,omitempty"`

	CPUs      int32    `json:"cpus"`
	CPUsAlloc int32    `json:"cpusAlloc"`
	Sockets   int32    `json:"sockets"`
	Cores     int32    `json:"cores"` // a socket
	Threads   int32    `json:"threads"`
	Memory    int64    `json:"memory"` // MiB
	MemAlloc  int64    `json:"memAlloc"`
	TmpDisk   int64    `json:"tmpDisk,omitempty"`
	Features  []string `json:"features,omitempty"`
	GRES      string   `json:"gres,omitempty"`
	GRESUsed  string   `json:"gresUsed,omitempty"`
	// GRESDevices is GRESUsed with the numbers of the devices: gpu:tesla:1(IDX:0); empty: not
	// known.
	GRESDevices string `json:"gresDevices,omitempty"`
	Boot        int64  `json:"boot,omitempty"`
	Version     string `json:"version,omitempty"`
	OS          string `json:"os,omitempty"`
	Arch        string `json:"arch,omitempty"`
	Comment     string `json:"comment,omitempty"`
	// Object is the name of the Kubernetes node, if it is not Name.
	Object string `json:"object,omitempty"`
}

// Partition is one partition.
type Partition struct {
	Name              string   `json:"name"`
	Default           bool     `json:"default,omitempty"`
	State             string   `json:"state"`       // UP, DOWN, DRAIN, INACTIVE
	MaxTime           int32    `json:"maxTime"`     // minutes; -1: UNLIMITED
	DefaultTime       int32    `json:"defaultTime"` // minutes; -1: UNLIMITED; 0: none
	MinNodes          int32    `json:"minNodes"`
	MaxNodes          int32    `json:"maxNodes"` // 0: UNLIMITED
	Nodes             []string `json:"nodes"`
	OverSubscribe     string   `json:"overSubscribe,omitempty"`
	PriorityTier      int32    `json:"priorityTier"`
	PriorityJobFactor int32    `json:"priorityJobFactor"`
	AllowAccounts     []string `json:"allowAccounts,omitempty"`
	AllowGroups       []string `json:"allowGroups,omitempty"`
	AllowQOS          []string `json:"allowQOS,omitempty"`
	Hidden            bool     `json:"hidden,omitempty"`
	RootOnly          bool     `json:"rootOnly,omitempty"`
	ReqResv           bool     `json:"reqResv,omitempty"`

	DenyAccounts  []string `json:"denyAccounts,omitempty"`
	DenyQOS       []string `json:"denyQOS,omitempty"`
	QOS           string   `json:"qos,omitempty"`
	ExclusiveUser bool     `json:"exclusiveUser,omitempty"`
	GraceTime     int32    `json:"graceTime,omitempty"`      // seconds
	MaxCPUs       int32    `json:"maxCPUsPerNode,omitempty"` // 0: UNLIMITED
	PreemptMode   string   `json:"preemptMode,omitempty"`
	OverTimeLimit int32    `json:"overTimeLimit,omitempty"` // minutes
	// Memory defaults and limits, MiB; 0: UNLIMITED.
	DefMemPerCPU  int64 `json:"defMemPerCPU,omitempty"`
	DefMemPerNode int64 `json:"defMemPerNode,omitempty"`
	MaxMemPerCPU  int64 `json:"maxMemPerCPU,omitempty"`
	MaxMemPerNode int64 `json:"maxMemPerNode,omitempty"`
}
