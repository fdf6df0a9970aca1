package option

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// sizeOptions returns the options about numbers of nodes, tasks and CPUs.
func sizeOptions() []*Option {
	return []*Option{
		{Name: "cpus-per-task", Short: 'c', Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SRUN_CPUS_PER_TASK"}},
			Help:    "CPUs per task", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.CPUsPerTask })},
		{Name: "extra-node-info", Short: 'B', Arg: RequiredArg, Meta: "S[:C[:T]]", In: all, Group: GroupSize,
			Help: "minimum sockets per node, cores per socket and threads per core", set: setExtraNodeInfo},
		{Name: "sockets-per-node", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SLURM_NSOCKETS_PER_NODE"}}, Help: "minimum sockets per node",
			set: count(func(p *Parsed) *int32 { return &p.Job.Shape.SocketsPerNode })},
		{Name: "cores-per-socket", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SLURM_NCORES_PER_SOCKET"}}, Help: "minimum cores per socket",
			set: count(func(p *Parsed) *int32 { return &p.Job.Shape.CoresPerSocket })},
		{Name: "threads-per-core", Arg: RequiredArg, Meta: "N", In: all, Env: "THREADS_PER_CORE", Group: GroupSize,
			Help: "threads to use per core",
			set:  count(func(p *Parsed) *int32 { return &p.Job.Shape.ThreadsPerCore })},
		{Name: "mincpus", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			Help: "minimum CPUs per node", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.MinCPUs })},
		{Name: "nodes", Short: 'N', Arg: RequiredArg, Meta: "MIN[-MAX]", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SLURM_JOB_NUM_NODES"}},
			Help:    "number of nodes", set: setNodes},
		{Name: "ntasks", Short: 'n', Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SLURM_NPROCS", "SLURM_NTASKS"}},
			Help:    "number of tasks", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.Tasks })},
		{Name: "ntasks-per-node", Aliases: []string{"tasks-per-node"}, Arg: RequiredArg, Meta: "N", In: all,
			Group:   GroupSize,
			EnvFull: map[Command][]string{Srun: {"SLURM_NTASKS_PER_NODE"}},
			Help:    "tasks per node", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.TasksPerNode })},
		{Name: "ntasks-per-socket", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			Help: "maximum tasks per socket",
			set:  count(func(p *Parsed) *int32 { return &p.Job.Shape.TasksPerSocket })},
		{Name: "ntasks-per-core", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			Help: "maximum tasks per core",
			set:  count(func(p *Parsed) *int32 { return &p.Job.Shape.TasksPerCore })},
		{Name: "ntasks-per-tres", Arg: RequiredArg, Meta: "N", In: all, Group: GroupSize,
			EnvFull: map[Command][]string{Srun: {"SLURM_NTASKS_PER_TRES"}},
			Help:    "tasks per GPU, like --ntasks-per-gpu",
			set:     count(func(p *Parsed) *int32 { return &p.Job.Shape.TasksPerGPU })},
		{Name: "overcommit", Short: 'O', In: all, Env: "OVERCOMMIT", Group: GroupSize,
			Help: "allocate one CPU per node, whatever the number of tasks",
			set:  flag(func(p *Parsed) *bool { return &p.Job.Shape.Overcommit })},
		{Name: "core-spec", Short: 'S', Arg: RequiredArg, Meta: "N", In: all, Env: "CORE_SPEC", Group: GroupSize,
			Warning: "error: Ignoring -S since it's not allowed by configuration (AllowSpecResourcesUsage = No)",
			Status:  Warned, Reason: "no cores are set aside for the system", Help: "cores to set aside for the system",
			set: countOrZero(func(p *Parsed) *int32 { return &p.Job.Shape.CoreSpec })},
		{Name: "thread-spec", Arg: RequiredArg, Meta: "N", In: all, Env: "THREAD_SPEC", Group: GroupSize,
			Warning: "error: Ignoring --thread-spec since it's not allowed by configuration (AllowSpecResourcesUsage = No)",
			Status:  Warned, Reason: "no threads are set aside for the system",
			Help: "threads to set aside for the system", set: checkedCount("thread-spec")},
	}
}

func setNodes(p *Parsed, v string, _ bool) (err error) {
	s := &p.Job.Shape
	s.MinNodes, s.MaxNodes, err = value.Nodes(v)
	delete(p.Job.Options, "nodes")
	if err == nil && s.MinNodes == 0 && s.MaxNodes == 0 && !strings.HasPrefix(strings.Trim(v, " \t\n\v\f\r"), "-") {
		p.setText("nodes", "0") // differs from no --nodes
	}
	return err
}

// setExtraNodeInfo parses -B: numbers of sockets, cores and threads. An asterisk
// means any number, and a range means its lower end. It replaces what the options for each of
// the numbers have set before it.
func setExtraNodeInfo(p *Parsed, v string, _ bool) error {
	s := &p.Job.Shape
	s.SocketsPerNode, s.CoresPerSocket, s.ThreadsPerCore = 0, 0, 0
	fields := strings.Split(v, ":")
	for i, to := range []*int32{&s.SocketsPerNode, &s.CoresPerSocket, &s.ThreadsPerCore}[:min(3, len(fields))] {
		least := fields[i]
		low, high, _ := strings.Cut(least, "-")
		if low != "" && high != "" && strings.Trim(low+high, "0123456789") == "" {
			least = low
		}
		if least == "*" {
			continue
		}
		n, err := value.CountOrZero(least)
		if err != nil {
			return badNumber(least, [...]string{"first", "second", "third"}[i]+" arg of -B")
		}
		*to = n
	}
	return nil
}

// memoryOptions returns the options about memory and disk.
func memoryOptions() []*Option {
	return []*Option{
		{Name: "mem", Arg: RequiredArg, Meta: "SIZE", In: all, Env: "MEM_PER_NODE", Group: GroupMemory,
			Help: "memory per node; 0: all of it",
			set:  memory(func(p *Parsed) **int64 { return &p.Job.Shape.MemPerNode })},
		{Name: "mem-per-cpu", Arg: RequiredArg, Meta: "SIZE", In: all, Env: "MEM_PER_CPU", Group: GroupMemory,
			Help: "memory per CPU", set: memory(func(p *Parsed) **int64 { return &p.Job.Shape.MemPerCPU })},
		{Name: "mem-per-gpu", Arg: RequiredArg, Meta: "SIZE", In: all, Env: "MEM_PER_GPU", Group: GroupMemory,
			Help: "memory per GPU", set: memory(func(p *Parsed) **int64 { return &p.Job.Shape.MemPerGPU })},
		{Name: "mem-bind", Arg: RequiredArg, Meta: "TYPE", In: all, Env: "MEM_BIND", Group: GroupMemory,
			Help: "bind memory to NUMA nodes", set: setMemBind},
		{Name: "tmp", Arg: RequiredArg, Meta: "SIZE", In: all, Group: GroupMemory,
			Help: "minimum temporary disk space per node", set: setTmp},
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

// gpuOptions returns the options about GPUs and other generic resources.
func gpuOptions() []*Option {
	return []*Option{
		{Name: "gres", Arg: RequiredArg, Meta: "NAME[:TYPE][:N]", In: all, Env: "GRES", Group: GroupGPU,
			EnvFull: map[Command][]string{Srun: {"SLURM_STEP_GRES"}},
			Help:    "generic resources per node", set: setGRES},
		{Name: "gres-flags", Arg: RequiredArg, Meta: "FLAGS", In: all, Env: "GRES_FLAGS", Group: GroupGPU,
			Help: "flags of generic resources: allow-task-sharing lets tasks use all GPUs of their step",
			set:  setGRESFlags},
		{Name: "gpus", Short: 'G', Arg: RequiredArg, Meta: "[TYPE:]N", In: all, Env: "GPUS", Group: GroupGPU,
			Help: "GPUs of the job", set: setGPUs(job.PerJob)},
		{Name: "gpus-per-node", Arg: RequiredArg, Meta: "[TYPE:]N", In: all, Env: "GPUS_PER_NODE", Group: GroupGPU,
			Help: "GPUs per node", set: setGPUs(job.PerNode)},
		{Name: "gpus-per-socket", Arg: RequiredArg, Meta: "[TYPE:]N", In: all, Env: "GPUS_PER_SOCKET", Group: GroupGPU,
			Help: "GPUs per socket; needs --sockets-per-node", set: setGPUs(job.PerSocket)},
		{Name: "gpus-per-task", Arg: RequiredArg, Meta: "[TYPE:]N", In: all, Env: "GPUS_PER_TASK", Group: GroupGPU,
			Help: "GPUs per task", set: setGPUs(job.PerTask)},
		{Name: "ntasks-per-gpu", Arg: RequiredArg, Meta: "N", In: all, Group: GroupGPU,
			EnvFull: map[Command][]string{Srun: {"SLURM_NTASKS_PER_GPU"}},
			Help:    "tasks per GPU", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.TasksPerGPU })},
		{Name: "cpus-per-gpu", Arg: RequiredArg, Meta: "N", In: all, Env: "CPUS_PER_GPU", Group: GroupGPU,
			Help: "CPUs per GPU", set: count(func(p *Parsed) *int32 { return &p.Job.Shape.CPUsPerGPU })},
		{Name: "gpu-bind", Arg: RequiredArg, Meta: "TYPE", In: all, Env: "GPU_BIND", Group: GroupGPU,
			Help: "bind tasks to GPUs", set: setGPUBind},
		{Name: "gpu-freq", Arg: RequiredArg, Meta: "FREQUENCY", In: all, Env: "GPU_FREQ", Group: GroupGPU,
			Status: Warned, Reason: "GPU frequencies are not changed", Help: "frequency of the GPUs", set: setGPUFreq},
	}
}

// invalidGRES is an error of the commands, not of the controller, and so has no
// prefix.
const (
	invalidGRES = "Invalid generic resource (gres) specification"
	mixedGRES   = "Invalid GRES specification (with and without type identification)"
)

// gresHelp lists the GresTypes of scontrol show config.
const gresHelp = "Valid gres options are:\ngpu[[:type]:count]\n"

// setGRES replaces the resources of an earlier --gres; those of --gpus stay.
func setGRES(p *Parsed, v string, _ bool) error {
	if strings.EqualFold(v, "help") {
		p.Client.Print = gresHelp
		return nil
	}
	if isEmptyList(v) {
		return p.refuseJob("Invalid Trackable RESource (TRES) specification")
	}
	list, err := value.GRES(v, job.PerNode)
	if err != nil {
		return p.refuseLater(slurmerr.New(slurmerr.Refused, invalidGRES))
	}
	p.replaceGRES("gres", list)
	if len(list) > 0 {
		p.setText("gres", v) // scontrol shows it as given
	} else {
		delete(p.Job.Options, "gres")
	}
	return nil
}

// isEmptyList reports whether a list with commas has no elements.
func isEmptyList(v string) bool { return strings.Trim(v, ",") == "" }

// GPUOptions are the names of the options about GPUs, by scope (job.PerJob and so on).
var GPUOptions = map[string]string{
	job.PerJob: "gpus", job.PerNode: "gpus-per-node", job.PerSocket: "gpus-per-socket", job.PerTask: "gpus-per-task",
}

func setGPUs(per string) setter {
	return func(p *Parsed, v string, _ bool) error {
		if isEmptyList(v) { // as in Slurm, no GPUs
			p.replaceGRES("gpus-"+per, nil)
			delete(p.Job.Options, GPUOptions[per])
			return nil
		}
		list, err := value.GPUs(v, per)
		if err != nil {
			return p.refuseLater(slurmerr.New(slurmerr.Refused, invalidGRES))
		}
		p.replaceGRES("gpus-"+per, list)
		p.setText(GPUOptions[per], v) // scontrol shows it as given
		return nil
	}
}

// replaceGRES replaces the resources that the option called key requested. p.gres
// holds the entries of each option, as --gres and --gpus-per-node share a scope.
func (p *Parsed) replaceGRES(key string, list []job.GRES) {
	if p.gres == nil {
		p.gres = map[string][]job.GRES{}
	}
	isReplaced := func(g job.GRES) bool { return slices.Contains(p.gres[key], g) }
	p.Job.Shape.GRES = slices.DeleteFunc(p.Job.Shape.GRES, isReplaced)
	p.gres[key] = list
	p.Job.Shape.GRES = append(p.Job.Shape.GRES, list...)
}

// gresFlags are the flags of --gres-flags, with the reason if one has no effect.
var gresFlags = map[string]string{
	"allow-task-sharing":         "",
	"disable-binding":            "", // resources are never bound
	"enforce-binding":            "the locality of resources and CPUs is not known",
	"one-task-per-sharing":       "there are no shared generic resources",
	"multiple-tasks-per-sharing": "there are no shared generic resources",
}

func setGRESFlags(p *Parsed, v string, _ bool) error {
	for flag := range strings.SplitSeq(strings.ToLower(v), ",") {
		reason, known := gresFlags[flag]
		switch {
		case !known:
			return value.ErrInvalid
		case reason != "" && (p.Command != Srun || p.from != FromEnv):
			p.warn("warning: --gres-flags=%s has no effect: %s", flag, reason)
		case flag == "allow-task-sharing":
			p.Step.TaskSharing = true
		}
	}
	p.setText("gres-flags", v)
	return nil
}

// setGPUBind parses [verbose,]TYPE.
func setGPUBind(p *Parsed, v string, _ bool) error {
	kind := strings.TrimPrefix(strings.ToLower(v), "verbose,")
	for _, known := range []string{"closest", "none", "map_gpu:", "mask_gpu:", "per_task:", "single:"} {
		takesValue := strings.HasSuffix(known, ":")
		if kind != known && (!takesValue || !strings.HasPrefix(kind, known)) {
			continue
		}
		if known == "map_gpu:" || known == "mask_gpu:" {
			if err := checkGPUList(v, strings.TrimPrefix(kind, known)); err != nil {
				return err
			}
		}
		p.Step.GPUBind = v
		p.setText("gpu-bind", v)
		return nil
	}
	return slurmerr.Newf(slurmerr.BadValue, "Invalid --gpu-bind argument: gpu:%s", v)
}

// checkGPUList checks a list of GPU numbers or masks. v is the whole value, for
// the error.
func checkGPUList(v, list string) error {
	for item := range strings.SplitSeq(list, ",") {
		digits := strings.TrimPrefix(item, "0x")
		offending := func(r rune) bool { return !strings.ContainsRune("0123456789abcdef*", r) }
		if i := strings.IndexFunc(digits, offending); i >= 0 {
			return slurmerr.Newf(slurmerr.BadValue,
				"Failed to validate %s, offending character is %c\nInvalid --gpu-bind argument: gpu:%s",
				item, rune(digits[i]), v)
		}
	}
	return nil
}

const memBindHelp = `Memory binding of tasks:
    --mem-bind=[quiet,|verbose,][prefer,][sort,|nosort,]TYPE
        none                  no binding
        local                 the NUMA nodes of the task's CPUs
        rank                  NUMA node N for task N of a node
        map_mem:LIST          entry N of the list for task N of a node
        mask_mem:LIST         the same, with masks of NUMA nodes
`

func setMemBind(p *Parsed, v string, _ bool) (err error) {
	if strings.EqualFold(v, "help") {
		p.Client.Print, p.Client.PrintCode = memBindHelp, 255
		return nil
	}
	if p.Step.MemBind, err = value.MemBind(v); err == nil {
		p.setText("mem-bind", p.Step.MemBind)
	}
	return err
}

// setGPUFreq parses low, medium, high, highm1 or a number, for the GPU or its
// memory.
func setGPUFreq(p *Parsed, v string, _ bool) error {
	for part := range strings.SplitSeq(strings.ToLower(v), ",") {
		part = strings.TrimPrefix(part, "memory=")
		switch part {
		case "low", "medium", "high", "highm1", "verbose":
			continue
		}
		if v != "" && strings.Trim(part, "0123456789") != "" || v == "" {
			return slurmerr.Newf(slurmerr.BadValue, "Invalid --gpu-freq argument: gpu:%s", v)
		}
	}
	p.setText("gpu-freq", v)
	return nil
}
