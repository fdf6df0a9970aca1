package env

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
)

// StepShape is a step and the layout of its tasks.
type StepShape struct {
	ID    int32
	Nodes []StepNode // in the order of the step's node ids

	// JobID is the job id that tasks see, if it is not their own: that of the
	// heterogeneous job. 0: their own.
	JobID int64
	// Joined: the nodes belong to several components, which tasks see as one
	// job.
	Joined bool

	// Name is the step's --job-name, which tasks see as that of the job; empty: none.
	Name         string
	CPUsPerTask  int32  // 0: not given
	TasksPerNode int32  // --ntasks-per-node; 0: not given
	Distribution string // --distribution; empty: not given
	GPUsPerTask  string // --gpus-per-task as given
	TasksPerGPU  int32  // --ntasks-per-gpu; 0: not given
	GPUBind      string // --gpu-bind, or what --ntasks-per-gpu implies; empty: neither was given
	CPUBind      string // --cpu-bind as given; the agent binds
	Ports        string // the reserved ports, as FIRST-LAST; empty: none
	// Preserve keeps the numbers of nodes and tasks of srun's environment
	// (--preserve-env).
	Preserve bool

	// LaunchAddress is the IP address of srun; it may be empty.
	LaunchAddress string
	// Umask is that of srun, as four octal digits for SLURM_UMASK.
	Umask string
}

// StepNode is one node of a step.
type StepNode struct {
	Name  string
	Tasks []int32 // global task numbers, in the order of local ids
}

// Step returns the variables of all tasks of a step on the node in.Welcome.Index.
// They override the environment that srun passes on, and those of Task override
// them (see Merge).
func Step(in Input, s StepShape) []string {
	e := &list{}
	addCommon(e, in)
	names, tasks, total := s.counts()
	perNode := Folded(tasks)
	if s.JobID != 0 {
		e.add("SLURM_JOB_ID", number(s.JobID))
		e.add("SLURM_JOBID", number(s.JobID))
	}
	e.addNonEmpty("SLURM_JOB_NAME", s.Name)
	if s.Joined {
		addJoined(e, in, names)
	}
	if len(in.Welcome.Het) == 0 { // an old name that Slurm's srun still sets
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
	e.addNonEmpty("SLURM_STEP_RESV_PORTS", s.Ports)
	e.addPositive("SLURM_CPUS_PER_TASK", s.CPUsPerTask)
	e.addPositive("SLURM_NTASKS_PER_NODE", s.TasksPerNode)
	e.addNonEmpty("SLURM_GPUS_PER_TASK", s.GPUsPerTask)
	e.addPositive("SLURM_NTASKS_PER_TRES", s.TasksPerGPU)
	switch {
	case s.GPUBind != "":
		e.add("SLURMD_TRES_BIND", "gpu:"+s.GPUBind)
	case s.GPUsPerTask != "":
		e.add("SLURMD_TRES_BIND", "gpu:per_task:"+s.GPUsPerTask[strings.LastIndexByte(s.GPUsPerTask, ':')+1:])
	}
	// A step can use all devices of its job.
	e.addNonEmpty("SLURM_STEP_GPUS", strings.Join(gpuIndexes(in.Welcome.Hosts[in.Welcome.Index]), ","))
	if s.Distribution == "" && !in.outside(s.ID) {
		s.Distribution = s.DefaultDistribution()
	}
	addDistribution(e, s.Distribution)
	e.addNonEmpty("SLURM_UMASK", s.Umask)
	e.add("SRUN_DEBUG", "3") // the level without -v and -Q
	if s.LaunchAddress != "" {
		e.add("SLURM_LAUNCH_NODE_IPADDR", s.LaunchAddress)
		e.add("SLURM_SRUN_COMM_HOST", s.LaunchAddress)
	}
	if port := StepPort(in); port != "" {
		e.add("SLURM_SRUN_COMM_PORT", port)
		e.add("SLURM_STEP_LAUNCHER_PORT", port)
	}
	if in.outside(s.ID) {
		return Without(e.entries, func(name string) bool { return ownVariables[name] })
	}
	return e.entries
}

// outside reports whether the step belongs to an srun that was run outside of any job and
// for which the job was created.
func (in Input) outside(step int32) bool { return step == 0 && in.Job.Batch.Client == "srun" }

// ownVariables are variables of jobs that the tasks of an srun outside of any job do not
// have.
var ownVariables = map[string]bool{
	"SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0": true, "SLURM_NODE_ALIASES": true, "SLURM_MEM_PER_GPU": true,
	"SLURM_MEM_PER_CPU": true, "SLURM_MEM_PER_NODE": true, "SLURM_JOB_GPUS": true,
}

// StepPort returns the port at which the agent of the job's first node, which launches
// the steps, is reached; "" if it is not known.
func StepPort(in Input) string {
	address := in.Welcome.Hosts[0].Address
	return address[strings.LastIndexByte(address, ':')+1:]
}

// counts returns the nodes with the number of tasks on each, and the total. They are
// ordered by node id or, as in Slurm, by name if there are several components.
func (s StepShape) counts() (names []string, tasks []int32, total int) {
	nodes := s.Nodes
	if s.Joined {
		nodes = slices.Clone(nodes)
		slices.SortStableFunc(nodes, func(a, b StepNode) int { return hostlist.Compare(a.Name, b.Name) })
	}
	for _, n := range nodes {
		total += len(n.Tasks)
		if last := len(names) - 1; last >= 0 && names[last] == n.Name { // shared by components
			tasks[last] += int32(len(n.Tasks))
			continue
		}
		names, tasks = append(names, n.Name), append(tasks, int32(len(n.Tasks)))
	}
	return names, tasks, total
}

// addJoined adds the job as tasks of a step in several components see it: it has
// the nodes of the step, and on each the CPUs of all components.
func addJoined(e *list, in Input, names []string) {
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

// DefaultDistribution returns Slurm's distribution without --distribution: cyclic if
// there is a node for each task, otherwise block.
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

// Task returns the variables of one task: the one with local id local on node, an
// index of s.Nodes. It panics if they are out of range. The caller adds
// SLURM_TASK_PID.
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
