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

// Usage is what the processes of a step have used so far.
type Usage struct {
	UserCPU   int64 `json:"userCPU,omitempty"`   // microseconds
	SystemCPU int64 `json:"systemCPU,omitempty"` // microseconds

	CPU       Measure `json:"cpu,omitzero"`       // microseconds
	RSS       Measure `json:"rss,omitzero"`       // bytes, the maximum of each task
	VMSize    Measure `json:"vmSize,omitzero"`    // bytes
	Pages     Measure `json:"pages,omitzero"`     // major faults
	DiskRead  Measure `json:"diskRead,omitzero"`  // bytes
	DiskWrite Measure `json:"diskWrite,omitzero"` // bytes
}

// Measure is the usage of one resource by the tasks of a step: the sum, and the tasks that
// used the most and the least.
type Measure struct {
	Total int64   `json:"total,omitempty"`
	Max   Extreme `json:"max,omitzero"`
	Min   Extreme `json:"min,omitzero"`
}

// Extreme is the usage of one task.
type Extreme struct {
	Amount int64 `json:"amount,omitempty"`
	Node   int32 `json:"node,omitempty"` // index in StepRecord.Nodes
	Task   int32 `json:"task,omitempty"` // number of the task
}
