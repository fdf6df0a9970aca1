package wire

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
	// empty: unknown, or the numbers are not those of the allocation (EnvCPUBind).
	CPUs string `json:"cpus,omitempty"`
}

// AgentInfo is what the Keeper records about an agent: Address and CPUs of its Hello.
type AgentInfo struct{ Address, CPUs string }

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

	// NodeTimeout is how many seconds another node of the job may not respond until it is
	// considered lost; 0: 45.
	NodeTimeout int32 `json:"nodeTimeout,omitempty"`

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

	// Traceparent is the job's place in a trace, for what runs in it; "": it is not traced.
	Traceparent string `json:"traceparent,omitempty"`

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
	// Topology names the switches above the host, level by level from the top to the leaf,
	// separated by dots; empty: none is known.
	Topology string `json:"topology,omitempty"`
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
