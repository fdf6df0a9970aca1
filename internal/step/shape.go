package step

import "strings"

// Shape is the geometry that a step requests. Zero means not given.
type Shape struct {
	Nodes        int32    `json:"nodes,omitempty"`    // at least
	MaxNodes     int32    `json:"maxNodes,omitempty"` // at most; 0: as many as Nodes
	Tasks        int32    `json:"tasks,omitempty"`
	TasksPerNode int32    `json:"tasksPerNode,omitempty"`
	CPUsPerTask  int32    `json:"cpusPerTask,omitempty"`
	NodeList     []string `json:"nodeList,omitempty"`
	Exclude      []string `json:"exclude,omitempty"`
	Relative     int32    `json:"relative,omitempty"` // index of the first node, plus one
	// NodesGiven means that Nodes was given for the step, not taken from the job.
	NodesGiven   bool   `json:"nodesGiven,omitempty"`
	Overcommit   bool   `json:"overcommit,omitempty"`
	Distribution string `json:"distribution,omitempty"`
	// Hosts names the node of each task, with the distribution "arbitrary".
	Hosts []string `json:"hosts,omitempty"`
	// MemPerNode and MemPerCPU are the memory that the step reserves for itself,
	// in MiB. A step that gives neither reserves none.
	MemPerNode int64 `json:"memPerNode,omitempty"`
	MemPerCPU  int64 `json:"memPerCPU,omitempty"`
	// GPUs, GPUsPerNode and GPUsPerTask are the GPUs that the step reserves for
	// itself. A step that gives none of them sees the job's GPUs; NoGPUs hides
	// those as well.
	GPUs        int32 `json:"gpus,omitempty"`
	GPUsPerNode int32 `json:"gpusPerNode,omitempty"`
	GPUsPerTask int32 `json:"gpusPerTask,omitempty"`
	NoGPUs      bool  `json:"noGPUs,omitempty"`
	// MemPerGPU means that memory is requested for each GPU, so the job must
	// have GPUs.
	MemPerGPU bool `json:"memPerGPU,omitempty"`
	// GRES are the other generic resources that the step reserves for itself.
	GRES []GRES `json:"gres,omitempty"`
}

// GRES is a request for generic resources on each node.
type GRES struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"` // empty: any
	Count int64  `json:"count"`
}

// MemoryOn returns the memory in MiB that the step requests on a node where it
// has the given number of CPUs.
func (s *Shape) MemoryOn(cpus int32) int64 {
	if s.MemPerCPU > 0 {
		return s.MemPerCPU * int64(cpus)
	}
	return s.MemPerNode
}

// RefusedError is the error of a step that cannot run. Lines are Slurm's text
// after "srun: error: ".
type RefusedError struct {
	Lines    []string
	ExitCode uint8 // of srun; 0 means 1
}

func (e *RefusedError) Error() string { return strings.Join(e.Lines, "; ") }

// Refuse returns a RefusedError with the given lines.
func Refuse(lines ...string) error { return &RefusedError{Lines: lines} }
