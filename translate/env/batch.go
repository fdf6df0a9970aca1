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

// Input is everything that the environment of a job depends on.
type Input struct {
	// Welcome is the API role's answer to the agent on this node (w.Index).
	Welcome *wire.Welcome
	// Job is the neutral Job that Welcome contains as JSON.
	Job *job.Job
	// API is the URL of the API role; empty: unknown.
	API string
}

// Batch returns the variables of the batch script that override its submission
// environment (see Merge). The caller adds SLURM_TASK_PID, the pid of the process.
// Batch panics if the Index is out of range of the hosts.
func Batch(in Input) []string {
	w := in.Welcome
	e := &list{}
	e.add("ENVIRONMENT", "BATCH")
	e.add("HOSTNAME", w.Hosts[w.Index].Name)
	e.add("TMPDIR", "/tmp")
	addCommon(e, in)
	e.add("SLURM_NNODES", count(len(w.Hosts)))
	e.add("SLURM_TASKS_PER_NODE", Folded(batchTasks(in)))
	e.add("SLURM_NODEID", count(int(w.Index)))
	e.add("SLURM_PROCID", "0")
	e.add("SLURM_LOCALID", "0")
	e.add("SLURM_GTIDS", "0")
	addShape(e, in)
	addComponents(e, in)
	return e.entries
}

// Allocation returns the variables of a command that salloc runs outside the
// allocation. They override salloc's own environment (see Merge).
func Allocation(in Input) []string {
	e := &list{}
	if len(in.Welcome.Het) > 0 {
		addHetAllocation(e, in)
		return e.entries
	}
	addCommon(e, in)
	if in.Welcome.DefaultMemory {
		e.dropMemory()
	}
	e.entries = Without(e.entries, func(name string) bool { return nodeVariables[name] })
	e.add("SLURM_NNODES", count(len(in.Welcome.Hosts)))
	e.add("SLURM_TASKS_PER_NODE", Folded(batchTasks(in)))
	addShape(e, in)
	return e.entries
}

// nodeVariables are the variables that only processes on a node of the job have.
var nodeVariables = map[string]bool{
	"SLURM_JOB_UID": true, "SLURM_JOB_GID": true, "SLURM_JOB_USER": true, "SLURM_CPUS_ON_NODE": true,
	"SLURMD_NODENAME": true, "SLURM_TOPOLOGY_ADDR": true, "SLURM_TOPOLOGY_ADDR_PATTERN": true,
	"SLURM_RESTART_COUNT": true, "SLURM_GPUS_ON_NODE": true, "SLURM_SHARDS_ON_NODE": true, "SLURM_JOB_GPUS": true,
	"CUDA_VISIBLE_DEVICES": true, "ROCR_VISIBLE_DEVICES": true, "GPU_DEVICE_ORDINAL": true, "ZE_AFFINITY_MASK": true,
}

// list collects NAME=value entries.
type list struct{ entries []string }

func (e *list) add(name, v string) { e.entries = append(e.entries, name+"="+v) }

// addNonEmpty adds a variable that Slurm omits if its value is empty.
func (e *list) addNonEmpty(name, v string) {
	if v != "" {
		e.add(name, v)
	}
}

// addPositive adds a count if it is set.
func (e *list) addPositive(name string, n int32) {
	if n > 0 {
		e.add(name, count(int(n)))
	}
}

func count(n int) string                 { return strconv.Itoa(n) }
func number[N int32 | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// foldedCPUs returns the numbers of CPUs on the nodes in Slurm's short form.
func foldedCPUs(hosts []wire.Host) string {
	cpus := make([]int32, len(hosts))
	for i, h := range hosts {
		cpus[i] = h.CPUs
	}
	return Folded(cpus)
}

// workingCluster returns the cluster as Slurm's commands name it in a job's environment:
// its name, the address and port of its service, the version of the protocol and the number
// of the select plugin. The last two are those of Slurm 22.05 with cons_tres.
func workingCluster(name, api string) string {
	_, address, found := strings.Cut(strings.TrimSuffix(api, "/"), "://")
	if !found {
		return ""
	}
	return name + ":" + address + ":9728:109"
}

// addCommon adds the variables of both batch scripts and tasks.
func addCommon(e *list, in Input) {
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
	e.addNonEmpty("SLURM_JOB_NAME", in.Job.Name)
	e.add("SLURM_JOB_PARTITION", w.Partition)
	e.addNonEmpty("SLURM_JOB_ACCOUNT", w.Account)
	e.addNonEmpty("SLURM_JOB_QOS", w.QOS)
	e.addNonEmpty("SLURM_JOB_RESERVATION", in.Job.Reservation)
	e.add("SLURM_JOB_UID", number(w.UID))
	e.add("SLURM_JOB_GID", number(w.GID))
	e.add("SLURM_JOB_USER", w.User)
	e.add("SLURM_CLUSTER_NAME", w.ClusterName)
	e.addNonEmpty("SLURM_WORKING_CLUSTER", workingCluster(w.ClusterName, in.API))
	e.add("SLURM_JOB_NODELIST", nodes)
	e.add("SLURM_NODELIST", nodes)
	e.add("SLURM_JOB_NUM_NODES", count(len(w.Hosts)))
	e.add("SLURM_JOB_CPUS_PER_NODE", foldedCPUs(w.Hosts))
	e.add("SLURM_CPUS_ON_NODE", number(here.CPUs))
	e.add("SLURMD_NODENAME", here.Name)
	addTopology(e, here)
	e.add("SLURM_NODE_ALIASES", "(null)")
	if w.Restarts > 0 {
		e.add("SLURM_RESTART_COUNT", number(w.Restarts))
	}
	addDevices(e, here)
	addArray(e, in)
	addMemory(e, in.Job.Shape)
}

// addTopology adds the place of this node in the network, and what each part of it is.
func addTopology(e *list, here wire.Host) {
	address, pattern := here.Name, "node"
	if path := here.Topology; path != "" {
		address = path + "." + address
		pattern = strings.Repeat("switch.", strings.Count(path, ".")+1) + pattern
	}
	e.add("SLURM_TOPOLOGY_ADDR", address)
	e.add("SLURM_TOPOLOGY_ADDR_PATTERN", pattern)
}

// addDevices adds the GPUs of this node, with their indexes if they are known.
func addDevices(e *list, here wire.Host) {
	if shards := countOf(here, "shard"); shards > 0 {
		e.add("SLURM_SHARDS_ON_NODE", number(shards))
	}
	total, ids := countOf(here, "gpu"), gpuIndexes(here)
	if total == 0 {
		return
	}
	e.add("SLURM_GPUS_ON_NODE", number(total))
	if len(ids) > 0 {
		joined := strings.Join(ids, ",")
		e.add("SLURM_JOB_GPUS", joined)
		for _, name := range []string{
			"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
		} {
			e.add(name, joined)
		}
	}
}

// gpuIndexes returns the indexes of the GPUs of this node, as far as they are known.
func gpuIndexes(here wire.Host) []string {
	var ids []string
	for _, g := range here.GRES {
		if g.Name == "gpu" {
			ids = append(ids, indexes(g.Indexes)...)
		}
	}
	return ids
}

// indexes returns the numbers in a list such as 0-2,5.
func indexes(s string) []string {
	ids, err := hostlist.Expand("[" + s + "]")
	if err != nil {
		return nil
	}
	return ids
}

// addArray adds the variables of an array task.
func addArray(e *list, in Input) {
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

// addMemory adds the memory that was requested or that is the default (admission
// stores defaults in the job). As in Slurm, --mem=0 sets no variable.
func addMemory(e *list, s job.Shape) {
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

// dropMemory removes the memory, which salloc does not know if it is the default.
func (e *list) dropMemory() {
	e.entries = Without(e.entries, func(name string) bool {
		return name == "SLURM_MEM_PER_CPU" || name == "SLURM_MEM_PER_NODE"
	})
}

// addShape adds the variables of options. Each is set only if its option was given.
func addShape(e *list, in Input) {
	s := in.Job.Shape
	if n := in.tasks(); n > 0 {
		e.add("SLURM_NTASKS", number(n))
		e.add("SLURM_NPROCS", number(n))
	}
	e.addPositive("SLURM_NTASKS_PER_NODE", s.TasksPerNode)
	e.addPositive("SLURM_NTASKS_PER_SOCKET", s.TasksPerSocket)
	e.addPositive("SLURM_NTASKS_PER_CORE", s.TasksPerCore)
	e.addPositive("SLURM_NTASKS_PER_GPU", s.TasksPerGPU)
	e.addPositive("SLURM_CPUS_PER_TASK", s.CPUsPerTask)
	e.addPositive("SLURM_CPUS_PER_GPU", s.CPUsPerGPU)
	e.addPositive("SLURM_THREADS_PER_CORE", s.ThreadsPerCore)
	if s.Overcommit {
		e.add("SLURM_OVERCOMMIT", "1")
	}
	// --ntasks-per-gpu may imply the GPUs; their text is empty then.
	e.addNonEmpty("SLURM_GPUS", in.Job.Options["gpus"])
	e.addNonEmpty("SLURM_GPUS_PER_NODE", in.Job.Options["gpus-per-node"])
	e.addNonEmpty("SLURM_GPUS_PER_TASK", gpusPerTask(in.Job))
	e.addNonEmpty("SLURM_GPUS_PER_SOCKET", in.Job.Options["gpus-per-socket"])
	addDistribution(e, in.Job.Placement.Distribution)
	if strings.HasPrefix(in.Job.Placement.Distribution, "arbitrary") {
		e.addNonEmpty("SLURM_ARBITRARY_NODELIST", hostlist.Fold(in.Job.Placement.NodeList))
	}
	addHint(e, in.Job.Placement.Hint)
	if bind := in.Job.Options["mem-bind"]; bind != "" {
		e.add("SLURM_MEM_BIND", bind)
		e.add("SLURM_MEM_BIND_VERBOSE", "quiet")
	}
	e.addNonEmpty("SLURM_CPU_FREQ_REQ", title(in.Job.Options["cpu-freq"]))
	e.addNonEmpty("SLURM_GPU_BIND", in.Job.Options["gpu-bind"])
	e.addNonEmpty("SLURM_GPU_FREQ", in.Job.Options["gpu-freq"])
	e.addNonEmpty("SLURM_ACCTG_FREQ", in.Job.Options["acctg-freq"])
	e.addNonEmpty("SLURM_OPEN_MODE", in.Job.Batch.OpenMode)
	e.addNonEmpty("SLURM_PROFILE", profile(in.Job.Options["profile"]))
	e.addNonEmpty("SLURM_JOB_DEPENDENCY", value.FormatDependencies(in.Job.Dependencies))
}

// addDistribution adds the distribution; the size of planes is a separate variable.
func addDistribution(e *list, given string) {
	kind, size, plane := strings.Cut(given, "=")
	e.addNonEmpty("SLURM_DISTRIBUTION", kind)
	if plane {
		e.add("SLURM_DIST_PLANESIZE", size)
	}
}

// addHint adds the hint. Hints other than multithread imply one thread per core.
func addHint(e *list, given string) {
	e.addNonEmpty("SLURM_HINT", given)
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

// tasks returns the number of tasks if the options determine it, or 0.
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
			gpus += countOf(h, "gpu")
		}
		return s.TasksOfGPUs(gpus)
	}
	return 0
}

func countOf(h wire.Host, name string) (n int64) {
	for _, g := range h.GRES {
		if g.Name == name {
			n += g.Count
		}
	}
	return n
}

// profile returns the value of SLURM_PROFILE for a value of --profile.
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

// gpusPerTask returns the value of --gpus-per-task or, in its syntax, the GPUs of
// --tres-per-task.
func gpusPerTask(j *job.Job) string {
	if given := j.Options["gpus-per-task"]; given != "" {
		return given
	}
	var parts []string
	for _, g := range j.Shape.GRES {
		if g.Name != "gpu" || g.Per != job.PerTask {
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

// batchTasks returns the number of tasks on each node: that of the allocation, or as
// many as the CPUs allow if the job did not request a number.
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

// Folded returns counts in Slurm's short form: 2(x3),1.
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
