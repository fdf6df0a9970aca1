package option

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// sizeOptions say how many nodes, tasks and CPUs.
func sizeOptions() []*Option {
	return []*Option{
		{Name: "cpus-per-task", Short: 'c', Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SRUN_CPUS_PER_TASK"}},
			Help:    "CPUs for each task", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.CPUsPerTask })},
		{Name: "extra-node-info", Short: 'B', Arg: RequiredArg, Meta: "S[:C[:T]]", In: all, Group: GroupSize,
			Help: "sockets, cores per socket and threads per core a node must have", set: setExtraNodeInfo},
		{Name: "sockets-per-node", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			Help: "sockets a node must have",
			set:  count(func(p *Parsed) *int32 { return &p.Job.Shape.SocketsPerNode })},
		{Name: "cores-per-socket", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			Help: "cores a socket must have",
			set:  count(func(p *Parsed) *int32 { return &p.Job.Shape.CoresPerSocket })},
		{Name: "threads-per-core", Arg: RequiredArg, Meta: "N", In: all, Env: "THREADS_PER_CORE", Group: GroupSize,
			Help: "threads of a core to use",
			set:  count(func(p *Parsed) *int32 { return &p.Job.Shape.ThreadsPerCore })},
		{Name: "mincpus", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			Help: "least CPUs on each node", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.MinCPUs })},
		{Name: "nodes", Short: 'N', Arg: RequiredArg, Meta: "MIN[-MAX]", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SLURM_JOB_NUM_NODES"}},
			Help:    "number of nodes", set: setNodes},
		{Name: "ntasks", Short: 'n', Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SLURM_NPROCS", "SLURM_NTASKS"}},
			Help:    "number of tasks", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.Tasks })},
		{Name: "ntasks-per-node", Aliases: []string{"tasks-per-node"}, Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SLURM_NTASKS_PER_NODE"}},
			Help:    "tasks on each node", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.TasksPerNode })},
		{Name: "ntasks-per-socket", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			Help: "most tasks on each socket",
			set:  count(func(p *Parsed) *int32 { return &p.Job.Shape.TasksPerSocket })},
		{Name: "ntasks-per-core", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			Help: "most tasks on each core",
			set:  count(func(p *Parsed) *int32 { return &p.Job.Shape.TasksPerCore })},
		{Name: "ntasks-per-tres", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SLURM_NTASKS_PER_TRES"}},
			Status:  Refused, Reason: "use --ntasks-per-gpu", Help: "tasks for each trackable resource", set: countKept("ntasks-per-tres")},
		{Name: "overcommit", Short: 'O', In: all, Env: "OVERCOMMIT", Group: GroupSize,
			Help: "one CPU for all tasks of a node", set: flag(func(p *Parsed) *bool { return &p.Job.Shape.Overcommit })},
		{Name: "core-spec", Short: 'S', Arg: RequiredArg, Meta: "N", In: all, Env: "CORE_SPEC", Group: GroupSize,
			Says:   "error: Ignoring -S since it's not allowed by configuration (AllowSpecResourcesUsage = No)",
			Status: Warned, Reason: "no cores are set aside for the system", Help: "cores to set aside for the system",
			set: countOrZero(func(p *Parsed) *int32 { return &p.Job.Shape.CoreSpec })},
		{Name: "thread-spec", Arg: RequiredArg, Meta: "N", In: all, Env: "THREAD_SPEC", Group: GroupSize,
			Says:   "error: Ignoring --thread-spec since it's not allowed by configuration (AllowSpecResourcesUsage = No)",
			Status: Warned, Reason: "no threads are set aside for the system", Help: "threads to set aside for the system", set: countKept("thread-spec")},
	}
}

func setNodes(p *Parsed, v string, _ bool) (err error) {
	s := &p.Job.Shape
	s.MinNodes, s.MaxNodes, err = value.Nodes(v)
	delete(p.Job.Options, "nodes")
	if err == nil && s.MinNodes == 0 && s.MaxNodes == 0 && !strings.HasPrefix(strings.Trim(v, " \t\n\v\f\r"), "-") {
		p.keep("nodes", "0") // not the same as none given
	}
	return err
}

// setExtraNodeInfo reads -B: counts of sockets, cores and threads, of which an
// asterisk leaves one open and of a range the lower end counts.
func setExtraNodeInfo(p *Parsed, v string, _ bool) error {
	s := &p.Job.Shape
	fields := strings.Split(v, ":")
	for i, to := range []*int32{&s.SocketsPerNode, &s.CoresPerSocket, &s.ThreadsPerCore}[:min(3, len(fields))] {
		least, _, _ := strings.Cut(fields[i], "-")
		if least == "*" {
			continue
		}
		n, err := value.Count(least)
		if err != nil {
			return notNumeric("Invalid numeric value %q for %s arg of -B.", least, [...]string{"first", "second", "third"}[i])
		}
		*to = n
	}
	return nil
}

// memoryOptions say how much memory and disk.
func memoryOptions() []*Option {
	return []*Option{
		{Name: "mem", Arg: RequiredArg, Meta: "SIZE", In: all, Env: "MEM_PER_NODE", Group: GroupMemory,
			Help: "memory on each node; 0: all of it", set: memory(func(p *Parsed) **int64 { return &p.Job.Shape.MemPerNode })},
		{Name: "mem-per-cpu", Arg: RequiredArg, Meta: "SIZE", In: all, Env: "MEM_PER_CPU", Group: GroupMemory,
			Help: "memory for each CPU", set: memory(func(p *Parsed) **int64 { return &p.Job.Shape.MemPerCPU })},
		{Name: "mem-per-gpu", Arg: RequiredArg, Meta: "SIZE", In: all, Env: "MEM_PER_GPU", Group: GroupMemory,
			Help: "memory for each GPU", set: memory(func(p *Parsed) **int64 { return &p.Job.Shape.MemPerGPU })},
		{Name: "mem-bind", Arg: RequiredArg, Meta: "TYPE", In: all, Env: "MEM_BIND", Group: GroupMemory,
			Help: "bind memory to NUMA nodes", set: setMemBind},
		{Name: "tmp", Arg: RequiredArg, Meta: "SIZE", In: all, Group: GroupMemory,
			Help: "local disk that the nodes must have", set: setTmp},
	}
}

func setTmp(p *Parsed, v string, _ bool) (err error) {
	n, err := value.Megabytes(v)
	if err != nil {
		return err
	}
	p.Job.Shape.TmpDisk = n
	return nil
}

// gpuOptions ask for generic resources.
func gpuOptions() []*Option {
	return []*Option{
		{Name: "gres", Arg: RequiredArg, Meta: "NAME[:TYPE][:N]", In: all, Env: "GRES", Group: GroupGPU,
			EnvFull: map[Command][]string{Srun: {"SLURM_STEP_GRES"}},
			Help:    "generic resources on each node", set: setGRES},
		{Name: "gres-flags", Arg: RequiredArg, Meta: "FLAGS", In: all, Env: "GRES_FLAGS", Group: GroupGPU,
			Help: "how tasks and generic resources go together: allow-task-sharing lets tasks see all GPUs of their step", set: setGRESFlags},
		{Name: "gpus", Short: 'G', Arg: RequiredArg, Meta: "[TYPE:]N", In: all, Env: "GPUS", Group: GroupGPU,
			Help: "GPUs of the whole job", set: setGPUs(job.PerJob)},
		{Name: "gpus-per-node", Arg: RequiredArg, Meta: "[TYPE:]N", In: all, Env: "GPUS_PER_NODE", Group: GroupGPU,
			Help: "GPUs on each node", set: setGPUs(job.PerNode)},
		{Name: "gpus-per-socket", Arg: RequiredArg, Meta: "[TYPE:]N", In: all, Env: "GPUS_PER_SOCKET", Group: GroupGPU,
			Help: "GPUs for each socket (--sockets-per-node)", set: setGPUs(job.PerSocket)},
		{Name: "gpus-per-task", Arg: RequiredArg, Meta: "[TYPE:]N", In: all, Env: "GPUS_PER_TASK", Group: GroupGPU,
			Help: "GPUs for each task", set: setGPUs(job.PerTask)},
		{Name: "ntasks-per-gpu", Arg: RequiredArg, Meta: "N", In: all, Group: GroupGPU,
			EnvFull: map[Command][]string{Srun: {"SLURM_NTASKS_PER_GPU"}},
			Help:    "tasks for each GPU", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.TasksPerGPU })},
		{Name: "cpus-per-gpu", Arg: RequiredArg, Meta: "N", In: all, Env: "CPUS_PER_GPU", Group: GroupGPU,
			Help: "CPUs for each GPU", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.CPUsPerGPU })},
		{Name: "gpu-bind", Arg: RequiredArg, Meta: "TYPE", In: all, Env: "GPU_BIND", Group: GroupGPU,
			Help: "bind tasks to GPUs", set: setGPUBind},
		{Name: "gpu-freq", Arg: RequiredArg, Meta: "FREQUENCY", In: all, Env: "GPU_FREQ", Group: GroupGPU,
			Status: Warned, Reason: "GPU frequencies are not changed", Help: "frequency of the GPUs", set: setGPUFreq},
	}
}

// invalidGRES is said by the commands themselves, so nothing stands before it.
const invalidGRES = "Invalid generic resource (gres) specification"

// setGRES replaces what --gres asked for before; --gpus entries stay.
// gresHelp has the names of scontrol show config's GresTypes.
const gresHelp = "Valid gres options are:\ngpu[[:type]:count]\n"

func setGRES(p *Parsed, v string, _ bool) error {
	if strings.EqualFold(v, "help") {
		p.Client.Print = gresHelp
		return nil
	}
	list, err := value.GRES(v, job.PerNode)
	if err != nil {
		return p.refuseLater(slurmerr.New(slurmerr.Refused, invalidGRES))
	}
	p.replaceGRES("gres", list)
	return nil
}

func setGPUs(per string) setter {
	return func(p *Parsed, v string, _ bool) error {
		list, err := value.GPUs(v, per)
		if err != nil {
			return p.refuseLater(slurmerr.New(slurmerr.Refused, invalidGRES))
		}
		p.replaceGRES("gpus-"+per, list)
		if per == job.PerNode { // else it could not be told from --gres
			p.keep("gpus-per-node", v)
		}
		return nil
	}
}

// replaceGRES drops what the option called key has asked for so far. --gres and
// --gpus-per-node share a scope, so each remembers its own entries.
func (p *Parsed) replaceGRES(key string, list []job.GRES) {
	if p.gres == nil {
		p.gres = map[string][]job.GRES{}
	}
	old := p.gres[key]
	p.Job.Shape.GRES = slices.DeleteFunc(p.Job.Shape.GRES, func(g job.GRES) bool { return slices.Contains(old, g) })
	p.gres[key] = list
	p.Job.Shape.GRES = append(p.Job.Shape.GRES, list...)
}

// gresFlags are the flags of --gres-flags, and what is not done of them.
var gresFlags = map[string]string{
	"allow-task-sharing":         "",
	"disable-binding":            "", // nothing binds them
	"enforce-binding":            "nothing tells which CPUs are near to which resources",
	"one-task-per-sharing":       "there are no resources that are shared in parts",
	"multiple-tasks-per-sharing": "there are no resources that are shared in parts",
}

func setGRESFlags(p *Parsed, v string, _ bool) error {
	for flag := range strings.SplitSeq(strings.ToLower(v), ",") {
		but, known := gresFlags[flag]
		switch {
		case !known:
			return value.ErrInvalid
		case but != "" && (p.Command != Srun || p.from != FromEnv):
			p.warn("warning: --gres-flags=%s has no effect: %s", flag, but)
		case flag == "allow-task-sharing":
			p.Step.TaskSharing = true
		}
	}
	p.keep("gres-flags", v)
	return nil
}

// setGPUBind reads [verbose,]TYPE.
func setGPUBind(p *Parsed, v string, _ bool) error {
	kind := strings.TrimPrefix(strings.ToLower(v), "verbose,")
	for _, known := range []string{"closest", "none", "map_gpu:", "mask_gpu:", "per_task:", "single:"} {
		if kind == known || strings.HasSuffix(known, ":") && strings.HasPrefix(kind, known) {
			if strings.HasPrefix(known, "m") {
				if err := gpuList(v, strings.TrimPrefix(kind, known)); err != nil {
					return err
				}
			}
			p.Step.GPUBind = v
			p.keep("gpu-bind", v)
			return nil
		}
	}
	return slurmerr.Newf(slurmerr.BadValue, "Invalid --gpu-bind argument: gpu:%s", v)
}

// gpuList checks a list of GPU numbers or masks.
func gpuList(v, list string) error {
	for item := range strings.SplitSeq(list, ",") {
		digits := strings.TrimPrefix(item, "0x")
		if i := strings.IndexFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef*", r) }); i >= 0 {
			return slurmerr.Newf(slurmerr.BadValue, "Failed to validate %s, offending character is %c\nInvalid --gpu-bind argument: gpu:%s", item, rune(digits[i]), v)
		}
	}
	return nil
}

const memBindHelp = `Where the memory of tasks comes from:
    --mem-bind=[quiet,|verbose,][prefer,][sort,|nosort,]TYPE
        none                  from anywhere
        local                 near the CPUs of the task
        rank                  task N of a node from its NUMA node N
        map_mem:LIST          task N of a node from entry N of the list
        mask_mem:LIST         the same, with masks
`

func setMemBind(p *Parsed, v string, _ bool) (err error) {
	if strings.EqualFold(v, "help") {
		p.Client.Print, p.Client.PrintCode = memBindHelp, 255
		return nil
	}
	if p.Step.MemBind, err = value.MemBind(v); err == nil {
		p.keep("mem-bind", p.Step.MemBind)
	}
	return err
}

// setGPUFreq reads low, medium, high, highm1 or a number, for the GPU or its
// memory.
func setGPUFreq(p *Parsed, v string, _ bool) error {
	for part := range strings.SplitSeq(strings.ToLower(v), ",") {
		part = strings.TrimPrefix(part, "memory=")
		switch part {
		case "low", "medium", "high", "highm1", "verbose":
			continue
		}
		if _, err := value.Count(part); err != nil {
			return slurmerr.Newf(slurmerr.BadValue, "Invalid --gpu-freq argument: gpu:%s", v)
		}
	}
	p.keep("gpu-freq", v)
	return nil
}
