package env

import (
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
)

// StepShape is a step and where its tasks are.
type StepShape struct {
	ID    int32
	Nodes []StepNode // in the order of the step's node ids

	CPUsPerTask  int32  // 0: not given
	TasksPerNode int32  // --ntasks-per-node; 0: not given
	Distribution string // --distribution; empty: not given
	GPUsPerTask  string // --gpus-per-task as given
	CPUBind      string // --cpu-bind as given; the agent binds, nothing is set

	// LaunchAddress is the IP address of srun's end, Port its port; both may
	// be empty.
	LaunchAddress string
	Port          int
	// Umask of srun; SLURM_UMASK has it with four octal digits.
	Umask string
}

// StepNode is one node of a step.
type StepNode struct {
	Name  string
	Tasks []int32 // global task numbers, in the order of local ids
}

// Step gives the variables that all tasks of a step have on the node of
// in.Welcome.Index, beside the environment that srun hands on: lay them over
// that by Merge, and over them those of Task.
func Step(in Input, s StepShape) []string {
	e := &list{}
	common(e, in)
	names := make([]string, len(s.Nodes))
	tasks := make([]int32, len(s.Nodes))
	total := 0
	for i, n := range s.Nodes {
		names[i], tasks[i] = n.Name, int32(len(n.Tasks))
		total += len(n.Tasks)
	}
	perNode := Folded(tasks)
	id := number(s.ID)
	e.add("SLURM_STEP_ID", id)
	e.add("SLURM_STEPID", id)
	e.add("SLURM_STEP_NODELIST", hostlist.Fold(names))
	e.add("SLURM_STEP_NUM_NODES", count(len(s.Nodes)))
	e.add("SLURM_STEP_NUM_TASKS", count(total))
	e.add("SLURM_STEP_TASKS_PER_NODE", perNode)
	e.add("SLURM_NNODES", count(len(s.Nodes)))
	e.add("SLURM_NTASKS", count(total))
	e.add("SLURM_NPROCS", count(total))
	e.add("SLURM_TASKS_PER_NODE", perNode)
	e.positive("SLURM_CPUS_PER_TASK", s.CPUsPerTask)
	e.positive("SLURM_NTASKS_PER_NODE", s.TasksPerNode)
	e.some("SLURM_GPUS_PER_TASK", s.GPUsPerTask)
	// A step has all of its job's devices.
	e.some("SLURM_STEP_GPUS", strings.Join(gpuIndexes(in.Welcome.Hosts[in.Welcome.Index]), ","))
	distribution(e, s.distribution(total))
	e.some("SLURM_UMASK", s.Umask)
	e.add("SRUN_DEBUG", "3") // what srun without -v and -Q says
	if s.LaunchAddress != "" {
		e.add("SLURM_LAUNCH_NODE_IPADDR", s.LaunchAddress)
		e.add("SLURM_SRUN_COMM_HOST", s.LaunchAddress)
	}
	if s.Port != 0 {
		e.add("SLURM_SRUN_COMM_PORT", count(s.Port))
		e.add("SLURM_STEP_LAUNCHER_PORT", count(s.Port))
	}
	return e.entries
}

// distribution names what Slurm does without --distribution: one task after
// the other over the nodes when there are enough of them, else by blocks.
func (s StepShape) distribution(total int) string {
	switch {
	case s.Distribution != "":
		return s.Distribution
	case total <= len(s.Nodes):
		return "cyclic"
	}
	return "block"
}

// Task gives the variables that only one task has: the one with number local
// among those of node (an index of s.Nodes). Out of range panics.
// SLURM_TASK_PID is the caller's to add.
func Task(s StepShape, node, local int) []string {
	n := s.Nodes[node]
	ids := make([]string, len(n.Tasks))
	for i, t := range n.Tasks {
		ids[i] = number(t)
	}
	return []string{
		"SLURM_PROCID=" + ids[local],
		"SLURM_LOCALID=" + count(local),
		"SLURM_NODEID=" + count(node),
		"SLURM_GTIDS=" + strings.Join(ids, ","),
	}
}
