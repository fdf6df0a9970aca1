package env

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
)

// StepShape is a step and where its tasks are.
type StepShape struct {
	ID    int32
	Nodes []StepNode // in the order of the step's node ids

	// JobID is the job as tasks are told of it, where that is not their own:
	// that of a heterogeneous job's first component. 0: their own.
	JobID int64
	// Joined: the nodes are of several components, which the tasks are to see
	// as one job.
	Joined bool

	Name         string // that the step was given (--job-name), which its tasks take for the job's; empty: none
	CPUsPerTask  int32  // 0: not given
	TasksPerNode int32  // --ntasks-per-node; 0: not given
	Distribution string // --distribution; empty: not given
	GPUsPerTask  string // --gpus-per-task as given
	CPUBind      string // --cpu-bind as given; the agent binds, nothing is set
	Ports        string // that the step has to itself, as FIRST-LAST; empty: none
	// Preserve leaves the number of nodes and tasks as srun's own environment has
	// them (--preserve-env).
	Preserve bool

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
	names, tasks, total := s.counts()
	perNode := Folded(tasks)
	if s.JobID != 0 {
		e.add("SLURM_JOB_ID", number(s.JobID))
		e.add("SLURM_JOBID", number(s.JobID))
	}
	e.some("SLURM_JOB_NAME", s.Name)
	if s.Joined {
		joined(e, in, names)
	}
	if len(in.Welcome.Het) == 0 { // an older name, which Slurm's srun still sets
		e.add("SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0", foldedCPUs(in.Welcome.Hosts))
	}
	id := number(s.ID)
	e.add("SLURM_STEP_ID", id)
	e.add("SLURM_STEPID", id)
	e.add("SLURM_STEP_NODELIST", hostlist.Fold(names))
	e.add("SLURM_STEP_NUM_NODES", count(len(s.Nodes)))
	e.add("SLURM_STEP_NUM_TASKS", count(total))
	e.add("SLURM_STEP_TASKS_PER_NODE", perNode)
	if !s.Preserve {
		e.add("SLURM_NNODES", count(len(s.Nodes)))
		e.add("SLURM_NTASKS", count(total))
		e.add("SLURM_NPROCS", count(total))
		e.add("SLURM_TASKS_PER_NODE", perNode)
	}
	e.some("SLURM_STEP_RESV_PORTS", s.Ports)
	e.positive("SLURM_CPUS_PER_TASK", s.CPUsPerTask)
	e.positive("SLURM_NTASKS_PER_NODE", s.TasksPerNode)
	e.some("SLURM_GPUS_PER_TASK", s.GPUsPerTask)
	// A step has all of its job's devices.
	e.some("SLURM_STEP_GPUS", strings.Join(gpuIndexes(in.Welcome.Hosts[in.Welcome.Index]), ","))
	if s.Distribution == "" {
		s.Distribution = s.DefaultDistribution()
	}
	distribution(e, s.Distribution)
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

// counts gives the nodes and how many tasks each has, and the number of tasks:
// by the nodes' ids, or, over several components, by the nodes' names, as
// Slurm does there.
func (s StepShape) counts() (names []string, tasks []int32, total int) {
	nodes := s.Nodes
	if s.Joined {
		nodes = slices.Clone(nodes)
		slices.SortStableFunc(nodes, func(a, b StepNode) int { return hostlist.Compare(a.Name, b.Name) })
	}
	for _, n := range nodes {
		total += len(n.Tasks)
		if last := len(names) - 1; last >= 0 && names[last] == n.Name { // components that share it
			tasks[last] += int32(len(n.Tasks))
			continue
		}
		names, tasks = append(names, n.Name), append(tasks, int32(len(n.Tasks)))
	}
	return names, tasks, total
}

// joined adds the job as tasks see it whose step is in several components: it
// has the nodes of the step, names, and on each what the components have.
func joined(e *list, in Input, names []string) {
	e.add("SLURM_HET_SIZE", count(len(in.Welcome.Het)))
	e.add("SLURM_PACK_SIZE", count(len(in.Welcome.Het)))
	cpus := make([]int32, len(names))
	for _, c := range in.Welcome.Het {
		for _, h := range c.Hosts {
			if i := slices.Index(names, h.Name); i >= 0 {
				cpus[i] += h.CPUs
			}
		}
	}
	list := hostlist.Fold(names)
	e.add("SLURM_JOB_NODELIST", list)
	e.add("SLURM_NODELIST", list)
	e.add("SLURM_JOB_NUM_NODES", count(len(names)))
	e.add("SLURM_JOB_CPUS_PER_NODE", Folded(cpus))
}

// DefaultDistribution names what Slurm does without --distribution: one task
// after the other over the nodes when there are enough of them, else by blocks.
func (s StepShape) DefaultDistribution() string {
	total := 0
	for _, n := range s.Nodes {
		total += len(n.Tasks)
	}
	if total <= len(s.Nodes) {
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
