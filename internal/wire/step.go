package wire

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
