package env

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// Input is what the environment of a job depends on.
type Input struct {
	// Welcome is the API role's answer to the agent on this node (w.Index).
	Welcome *wire.Welcome
	// Job is the neutral Job that Welcome carries as JSON.
	Job *job.Job
}

// Batch gives the variables that the batch script has beside its submission
// environment: lay them over that by Merge. SLURM_TASK_PID, the pid of the
// process itself, is the caller's to add. An Index out of range of the hosts
// panics.
func Batch(in Input) []string {
	w := in.Welcome
	e := &list{}
	e.add("ENVIRONMENT", "BATCH")
	e.add("HOSTNAME", w.Hosts[w.Index].Name)
	e.add("TMPDIR", "/tmp")
	common(e, in)
	e.add("SLURM_NNODES", count(len(w.Hosts)))
	e.add("SLURM_TASKS_PER_NODE", Folded(batchTasks(in)))
	e.add("SLURM_NODEID", count(int(w.Index)))
	e.add("SLURM_PROCID", "0")
	e.add("SLURM_LOCALID", "0")
	e.add("SLURM_GTIDS", "0")
	shape(e, in)
	het(e, in)
	return e.entries
}

// Allocation gives the variables of a command that salloc runs outside the
// allocation: lay them over salloc's own environment by Merge.
func Allocation(in Input) []string {
	e := &list{}
	if len(in.Welcome.Het) > 0 {
		hetAllocation(e, in)
		return e.entries
	}
	common(e, in)
	e.entries = Without(e.entries, func(name string) bool { return ofNode[name] })
	e.add("SLURM_NNODES", count(len(in.Welcome.Hosts)))
	e.add("SLURM_TASKS_PER_NODE", Folded(batchTasks(in)))
	shape(e, in)
	return e.entries
}

// ofNode are the variables that only a process on a node of the job has.
var ofNode = map[string]bool{
	"SLURM_JOB_UID": true, "SLURM_JOB_GID": true, "SLURM_JOB_USER": true, "SLURM_CPUS_ON_NODE": true,
	"SLURMD_NODENAME": true, "SLURM_TOPOLOGY_ADDR": true, "SLURM_TOPOLOGY_ADDR_PATTERN": true,
	"SLURM_RESTART_COUNT": true, "SLURM_GPUS_ON_NODE": true, "SLURM_JOB_GPUS": true,
	"CUDA_VISIBLE_DEVICES": true, "ROCR_VISIBLE_DEVICES": true, "GPU_DEVICE_ORDINAL": true, "ZE_AFFINITY_MASK": true,
}

// list collects NAME=value entries.
type list struct{ entries []string }

func (e *list) add(name, v string) { e.entries = append(e.entries, name+"="+v) }

// some adds a variable that Slurm sets only when there is something to say.
func (e *list) some(name, v string) {
	if v != "" {
		e.add(name, v)
	}
}

// positive adds a count that was given.
func (e *list) positive(name string, n int32) {
	if n > 0 {
		e.add(name, count(int(n)))
	}
}

func count(n int) string                 { return strconv.Itoa(n) }
func number[N int32 | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// foldedCPUs are the CPUs on each node, as Slurm writes such lists.
func foldedCPUs(hosts []wire.Host) string {
	cpus := make([]int32, len(hosts))
	for i, h := range hosts {
		cpus[i] = h.CPUs
	}
	return Folded(cpus)
}

// common adds what the batch script and every task of a step have.
func common(e *list, in Input) {
	w := in.Welcome
	here := w.Hosts[w.Index]
	names := make([]string, len(w.Hosts))
	for i, h := range w.Hosts {
		names[i] = h.Name
	}
	nodes := hostlist.Fold(names)
	id := number(w.JobID)
	e.add("SLURM_JOB_ID", id)
	e.add("SLURM_JOBID", id)
	e.some("SLURM_JOB_NAME", in.Job.Name)
	e.add("SLURM_JOB_PARTITION", w.Partition)
	e.some("SLURM_JOB_ACCOUNT", w.Account)
	e.some("SLURM_JOB_QOS", w.QOS)
	e.some("SLURM_JOB_RESERVATION", in.Job.Reservation)
	e.add("SLURM_JOB_UID", number(w.UID))
	e.add("SLURM_JOB_GID", number(w.GID))
	e.add("SLURM_JOB_USER", w.User)
	e.add("SLURM_CLUSTER_NAME", w.ClusterName)
	e.add("SLURM_JOB_NODELIST", nodes)
	e.add("SLURM_NODELIST", nodes)
	e.add("SLURM_JOB_NUM_NODES", count(len(w.Hosts)))
	e.add("SLURM_JOB_CPUS_PER_NODE", foldedCPUs(w.Hosts))
	e.add("SLURM_CPUS_ON_NODE", number(here.CPUs))
	e.add("SLURMD_NODENAME", here.Name)
	e.add("SLURM_TOPOLOGY_ADDR", here.Name)
	e.add("SLURM_TOPOLOGY_ADDR_PATTERN", "node")
	e.add("SLURM_NODE_ALIASES", "(null)")
	if w.Restarts > 0 {
		e.add("SLURM_RESTART_COUNT", number(w.Restarts))
	}
	devices(e, here)
	array(e, in)
	memory(e, in.Job.Shape)
}

// devices adds the GPUs of this node, with the indexes where they are known.
func devices(e *list, here wire.Host) {
	total, ids := gpuCount(here), gpuIndexes(here)
	if total == 0 {
		return
	}
	e.add("SLURM_GPUS_ON_NODE", number(total))
	if len(ids) > 0 {
		joined := strings.Join(ids, ",")
		e.add("SLURM_JOB_GPUS", joined)
		for _, name := range []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"} {
			e.add(name, joined)
		}
	}
}

// gpuIndexes are the numbers of the GPUs of this node, where known.
func gpuIndexes(here wire.Host) []string {
	var ids []string
	for _, g := range here.GRES {
		if g.Name == "gpu" {
			ids = append(ids, indexes(g.Indexes)...)
		}
	}
	return ids
}

// indexes expands a list such as 0-2,5.
func indexes(s string) []string {
	ids, err := hostlist.Expand("[" + s + "]")
	if err != nil {
		return nil
	}
	return ids
}

func array(e *list, in Input) {
	a := in.Welcome.Array
	if a == nil {
		return
	}
	e.add("SLURM_ARRAY_JOB_ID", number(a.JobID))
	e.add("SLURM_ARRAY_TASK_ID", number(a.Index))
	e.add("SLURM_ARRAY_TASK_COUNT", number(a.Count))
	e.add("SLURM_ARRAY_TASK_MIN", number(a.Min))
	e.add("SLURM_ARRAY_TASK_MAX", number(a.Max))
	e.add("SLURM_ARRAY_TASK_STEP", number(a.Step))
}

// memory is set when it was asked for or a default holds (admission writes
// defaults into the job). --mem=0 sets none, as Slurm's does for a whole node.
func memory(e *list, s job.Shape) {
	switch {
	case s.MemPerNode != nil:
		if *s.MemPerNode > 0 {
			e.add("SLURM_MEM_PER_NODE", number(*s.MemPerNode))
		}
	case s.MemPerCPU != nil:
		if *s.MemPerCPU > 0 {
			e.add("SLURM_MEM_PER_CPU", number(*s.MemPerCPU))
		}
	case s.MemPerGPU != nil:
		e.add("SLURM_MEM_PER_GPU", number(*s.MemPerGPU))
	}
}

// shape adds the variables of options, which are there only when the option
// was given.
func shape(e *list, in Input) {
	s := in.Job.Shape
	if n := in.tasks(); n > 0 {
		e.add("SLURM_NTASKS", number(n))
		e.add("SLURM_NPROCS", number(n))
	}
	e.positive("SLURM_NTASKS_PER_NODE", s.TasksPerNode)
	e.positive("SLURM_NTASKS_PER_SOCKET", s.TasksPerSocket)
	e.positive("SLURM_NTASKS_PER_CORE", s.TasksPerCore)
	e.positive("SLURM_NTASKS_PER_GPU", s.TasksPerGPU)
	e.positive("SLURM_CPUS_PER_TASK", s.CPUsPerTask)
	e.positive("SLURM_CPUS_PER_GPU", s.CPUsPerGPU)
	e.positive("SLURM_THREADS_PER_CORE", s.ThreadsPerCore)
	if s.Overcommit {
		e.add("SLURM_OVERCOMMIT", "1")
	}
	if _, unasked := in.Job.Options["gpus"]; !unasked { // else --ntasks-per-gpu has found out how many
		e.some("SLURM_GPUS", gpus(s.GRES, job.PerJob))
	}
	e.some("SLURM_GPUS_PER_NODE", in.Job.Options["gpus-per-node"])
	e.some("SLURM_GPUS_PER_TASK", gpus(s.GRES, job.PerTask))
	e.some("SLURM_GPUS_PER_SOCKET", gpus(s.GRES, job.PerSocket))
	distribution(e, in.Job.Placement.Distribution)
	hint(e, in.Job.Placement.Hint)
	if bind := in.Job.Options["mem-bind"]; bind != "" {
		e.add("SLURM_MEM_BIND", bind)
		e.add("SLURM_MEM_BIND_VERBOSE", "quiet")
	}
	e.some("SLURM_CPU_FREQ_REQ", title(in.Job.Options["cpu-freq"]))
	e.some("SLURM_GPU_BIND", in.Job.Options["gpu-bind"])
	e.some("SLURM_GPU_FREQ", in.Job.Options["gpu-freq"])
	e.some("SLURM_ACCTG_FREQ", in.Job.Options["acctg-freq"])
	e.some("SLURM_OPEN_MODE", in.Job.Batch.OpenMode)
	e.some("SLURM_PROFILE", profile(in.Job.Options["profile"]))
	e.some("SLURM_JOB_DEPENDENCY", value.FormatDependencies(in.Job.Dependencies))
}

// distribution has the size of planes in a variable of its own.
func distribution(e *list, given string) {
	kind, size, plane := strings.Cut(given, "=")
	e.some("SLURM_DISTRIBUTION", kind)
	if plane {
		e.add("SLURM_DIST_PLANESIZE", size)
	}
}

// hint implies one thread of each core, unless it asks for more.
func hint(e *list, given string) {
	e.some("SLURM_HINT", given)
	if given != "" && !slices.Contains(strings.Split(given, ","), "multithread") {
		e.add("SLURM_THREADS_PER_CORE", "1")
	}
}

func title(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// tasks is the number of tasks as far as options determine it; 0: they do not.
func (in Input) tasks() int32 {
	s := in.Job.Shape
	switch {
	case s.Tasks > 0:
		return s.Tasks
	case s.TasksPerNode > 0:
		return s.TasksPerNode * int32(len(in.Welcome.Hosts))
	case s.TasksPerGPU > 0:
		var gpus int64
		for _, h := range in.Welcome.Hosts {
			gpus += gpuCount(h)
		}
		return s.TasksPerGPU * int32(gpus)
	}
	return 0
}

func gpuCount(h wire.Host) (n int64) {
	for _, g := range h.GRES {
		if g.Name == "gpu" {
			n += g.Count
		}
	}
	return n
}

// profile is what SLURM_PROFILE says for a --profile.
func profile(given string) string {
	switch strings.ToLower(given) {
	case "":
		return ""
	case "none":
		return "None"
	case "all":
		return "All"
	}
	return given
}

// gpus writes the GPUs asked for in one scope, as the option took them.
func gpus(list []job.GRES, per string) string {
	var parts []string
	for _, g := range list {
		if g.Name != "gpu" || g.Per != per {
			continue
		}
		text := number(g.Count)
		if g.Type != "" {
			text = g.Type + ":" + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ",")
}

// batchTasks is the number of tasks on each node: what the plan says, or, for
// a job that named no number of tasks, as many as the CPUs allow.
func batchTasks(in Input) []int32 {
	s := in.Job.Shape
	out := make([]int32, len(in.Welcome.Hosts))
	for i, h := range in.Welcome.Hosts {
		out[i] = h.Tasks
		if s.Tasks == 0 || h.Tasks == 0 {
			out[i] = max(1, h.CPUs/max(1, s.CPUsPerTask))
		}
	}
	return out
}

// Folded writes counts as Slurm does: 2(x3),1.
func Folded(counts []int32) string {
	var b strings.Builder
	for i := 0; i < len(counts); {
		end := i
		for end < len(counts) && counts[end] == counts[i] {
			end++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(number(counts[i]))
		if end-i > 1 {
			b.WriteString("(x" + count(end-i) + ")")
		}
		i = end
	}
	return b.String()
}
