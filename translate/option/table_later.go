package option

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// laterOptions came with releases of Slurm after 22.05, up to 25.11. They
// never make an abbreviation of an older option ambiguous.
func laterOptions() []*Option {
	return []*Option{
		{Name: "tres-per-task", Arg: RequiredArg, Meta: "LIST", In: all, Since: "23.02", Group: GroupGPU,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_TRES_PER_TASK"}, Srun: {"SLURM_TRES_PER_TASK"}, Salloc: {"SALLOC_TRES_PER_TASK"}},
			Help:    "resources for each task, such as cpu=4,gres/gpu:a100=1", set: setTRESPerTask},
		{Name: "tres-bind", Arg: RequiredArg, Meta: "gres/gpu:TYPE", In: all, Since: "23.02", Env: "TRES_BIND", Group: GroupGPU,
			Help: "bind tasks to GPUs, as --gpu-bind", set: setTRESBind},
		{Name: "extra", Arg: RequiredArg, Meta: "TEXT", In: all, Since: "23.02", Group: GroupJob,
			Help: "keep a text with the job", set: text(func(p *Parsed) *string { return &p.Job.Extra })},
		{Name: "container-id", Arg: RequiredArg, Meta: "ID", In: all, Since: "23.02", Group: GroupFiles,
			Status: Refused, Reason: "OCI bundles are not run", Help: "id of the OCI container"},
		{Name: "external-launcher", In: Srun, Since: "23.11", Group: GroupStep,
			Help: "one task on each node, with all of the job there, for another launcher", set: setExternalLauncher},
		{Name: "treewidth", Arg: RequiredArg, Meta: "N", In: Srun, Since: "23.11", Group: GroupStep,
			Status: Warned, Reason: "the agents fan out as a tree of their own", Help: "width of the tree of messages", set: countKept("treewidth")},
		{Name: "oom-kill-step", Arg: OptionalArg, Meta: "0|1", In: all, Since: "24.05", Group: GroupStep,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_OOM_KILL_STEP"}, Srun: {"SLURM_OOM_KILL_STEP"}, Salloc: {"SALLOC_OOM_KILL_STEP"}},
			Help:    "end the whole step when memory runs out", set: setOOMKillStep},
		{Name: "stepmgr", In: all, Since: "24.05", Group: GroupStep, Help: "steps are managed inside the job, as they always are here",
			set: func(p *Parsed, _ string, _ bool) error { p.keep("stepmgr", ""); return nil }},
		{Name: "wait-for-children", In: Srun, Since: "24.05", Group: GroupStep,
			Help: "a task lasts as long as any process of it", set: flag(func(p *Parsed) *bool { return &p.Step.WaitForChildren })},
		{Name: "resv-ports", Arg: OptionalArg, Meta: "N", In: Sbatch | Salloc, Since: "24.05", Group: GroupStep,
			Status: Warned, Reason: "steps reserve theirs (srun --resv-ports), of a thousand in each job", Help: "reserve communication ports", set: setPorts},
		{Name: "segment", Arg: RequiredArg, Meta: "N", In: all, Since: "24.11", Env: "SEGMENT", Group: GroupNodes,
			Help: "nodes that must hang on one switch of the network: a segment of the job",
			set:  count(func(p *Parsed) *int32 { return &p.Job.Placement.Segment })},
		{Name: "consolidate-segments", In: all, Since: "25.11", Group: GroupNodes,
			Help: "segments below as few switches as possible", set: setSegments(job.SegmentsTogether)},
		{Name: "spread-segments", In: all, Since: "25.11", Group: GroupNodes,
			Help: "each segment below a switch of its own", set: setSegments(job.SegmentsApart)},
		{Name: "resources", Arg: RequiredArg, Meta: "NAME[:COUNT]", In: all, Since: "25.05", Group: GroupJob,
			Status: Refused, Reason: "there are no hierarchical resources; use --licenses", Help: "hierarchical resources the job needs"},
		{Name: "x11", Arg: OptionalArg, Meta: "all|first|last", In: Srun | Salloc, Since: "X11", Group: GroupStep,
			Status: Refused, Reason: "X11 is not forwarded; use ssh -X to the login node", Help: "forward X11"},
	}
}

// containerOptions are those of the pyxis plugin.
func containerOptions() []*Option {
	const kept = "the container is the job's pod, and goes with it"
	row := func(name, meta, help string) *Option {
		o := &Option{Name: "container-" + name, Meta: meta, In: all, Since: "pyxis", Group: GroupContainer, Help: help}
		if meta != "" {
			o.Arg = RequiredArg
		}
		o.set = setContainer(name)
		return o
	}
	image := row("image", "[REGISTRY#]IMAGE[:TAG]", "image of the job's containers, where the partition has real ones")
	image.set = setContainerImage
	mounts := row("mounts", "SRC[:DST[:ro|rw]]", "more folders of the partition's volumes")
	mounts.set = setContainerMounts
	name := row("name", "NAME", "name of the job's container, which all its steps share")
	name.set = setContainerName
	save := row("save", "FILE", "keep the container's file system in FILE")
	save.Status, save.Reason = Refused, kept
	home := row("mount-home", "", "mount the home directory")
	home.Status, home.Reason = Warned, "the partition says what is mounted"
	noHome := &Option{Name: "no-container-mount-home", In: all, Since: "pyxis", Group: GroupContainer, Help: "do not mount the home directory",
		Status: Warned, Reason: home.Reason}
	root := row("remap-root", "", "be root inside the container")
	root.Status, root.Reason = Refused, "a job is its user, in containers as well"
	noRoot := &Option{Name: "no-container-remap-root", In: all, Since: "pyxis", Group: GroupContainer, Help: "be oneself inside the container",
		set: setContainer("no-remap-root")}
	entry := row("entrypoint", "", "run the image's entry point")
	entry.Status, entry.Reason = Warned, "the agent is the first process of the container"
	noEntry := &Option{Name: "no-container-entrypoint", In: all, Since: "pyxis", Group: GroupContainer, Help: "do not run the image's entry point",
		set: setContainer("no-entrypoint")}
	readonly := row("readonly", "", "the container's file system cannot be written to, but for /tmp and what is mounted")
	readonly.set = setRootFS("readonly", "writable")
	writable := row("writable", "", "the container's file system can be written to")
	writable.set = setRootFS("writable", "readonly")
	return []*Option{image, mounts, row("workdir", "DIR", "work directory inside the container"), name,
		row("env", "NAMES", "variables that win over those of the image"), writable,
		readonly, save, home, noHome, root, noRoot, entry, noEntry}
}

// setContainer keeps an option of pyxis under its name without container-.
func setContainer(name string) setter {
	return func(p *Parsed, v string, has bool) error {
		if !has {
			v = "true"
		}
		if p.Job.Batch.Container == nil {
			p.Job.Batch.Container = map[string]string{}
		}
		p.Job.Batch.Container[name] = v
		return nil
	}
}

// setRootFS takes the one of two options that exclude each other.
func setRootFS(name, instead string) setter {
	return func(p *Parsed, _ string, _ bool) error {
		if err := setContainer(name)(p, "", false); err != nil {
			return err
		}
		delete(p.Job.Batch.Container, instead)
		return nil
	}
}

// setContainerName reads NAME[:FLAG]. Containers are those of the job, and all
// of its steps find in them what others have left: what names are for in pyxis
// where they last as long as the job.
func setContainerName(p *Parsed, v string, _ bool) error {
	name, flag, flagged := strings.Cut(v, ":")
	if name == "" || flagged && !slices.Contains([]string{"auto", "create", "exec", "no_exec"}, flag) {
		return slurmerr.Newf(slurmerr.BadValue, "pyxis: --container-name: invalid name %q", v)
	}
	return setContainer("name")(p, v, true)
}

func setContainerImage(p *Parsed, v string, _ bool) error {
	image, err := value.Image(v)
	if err != nil {
		return slurmerr.Newf(slurmerr.BadValue, "pyxis: --container-image: %s", err)
	}
	return setContainer("image")(p, image, true)
}

func setContainerMounts(p *Parsed, v string, _ bool) error {
	if _, err := value.Mounts(v); err != nil {
		return slurmerr.Newf(slurmerr.BadValue, "pyxis: --container-mounts: %s", err)
	}
	return setContainer("mounts")(p, v, true)
}

// setTRESPerTask reads cpu=N and gres/NAME[:TYPE][=N], with : for = as well.
func setTRESPerTask(p *Parsed, v string, _ bool) error {
	cpus, gres, err := value.TRES(v, job.PerTask)
	if err != nil {
		return value.ErrInvalid
	}
	if cpus > 0 {
		p.Job.Shape.CPUsPerTask = cpus
	}
	p.replaceGRES("tres-per-task", gres)
	p.keep("tres-per-task", v)
	return nil
}

func setTRESBind(p *Parsed, v string, _ bool) error {
	bind, ok := strings.CutPrefix(strings.ReplaceAll(v, "gres:gpu", "gres/gpu"), "gres/gpu:")
	if !ok || strings.Contains(bind, "+") { // only GPUs can be bound to
		return value.ErrInvalid
	}
	verbose, kind := "", bind
	if rest, ok := strings.CutPrefix(bind, "verbose,"); ok {
		verbose, kind = "verbose,", rest
	}
	for _, renamed := range []string{"map:", "mask:"} { // "map_gpu:" there
		if list, ok := strings.CutPrefix(kind, renamed); ok {
			kind = strings.TrimSuffix(renamed, ":") + "_gpu:" + list
		}
	}
	return setGPUBind(p, verbose+kind, true)
}

// setExternalLauncher makes the step one that a launcher of its own fills: it
// shares everything the job has, and nothing is bound.
func setExternalLauncher(p *Parsed, _ string, _ bool) error {
	p.Step.Overlap, p.Step.Exact = true, false
	p.Step.MPI, p.Step.CPUBind = "none", "none"
	p.Job.Shape.Tasks, p.Job.Shape.TasksPerNode = 0, 1
	return nil
}

// setSegments says where segments go; the option that was given last counts.
func setSegments(how string) setter {
	return func(p *Parsed, _ string, _ bool) error {
		p.Job.Placement.Segments = how
		return nil
	}
}

func setOOMKillStep(p *Parsed, v string, has bool) error {
	if has && v != "0" && v != "1" {
		return value.ErrInvalid
	}
	on := v != "0"
	p.Step.OOMKillStep = &on
	p.keep("oom-kill-step", orOne(v))
	return nil
}
