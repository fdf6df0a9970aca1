package option

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// laterOptions returns the options that releases of Slurm after 22.05 added, up to
// 25.11. They never make an abbreviation of an older option ambiguous.
func laterOptions() []*Option {
	return []*Option{
		{Name: "tres-per-task", Arg: RequiredArg, Meta: "LIST", In: all, Since: "23.02", Group: GroupGPU,
			EnvFull: map[Command][]string{
				Sbatch: {"SBATCH_TRES_PER_TASK"}, Srun: {"SLURM_TRES_PER_TASK"}, Salloc: {"SALLOC_TRES_PER_TASK"},
			},
			Help: "resources for each task, such as cpu=4,gres/gpu:a100=1", set: setTRESPerTask},
		{Name: "tres-bind", Arg: RequiredArg, Meta: "gres/gpu:TYPE", In: all, Since: "23.02", Env: "TRES_BIND",
			Group: GroupGPU,
			Help:  "bind tasks to GPUs, like --gpu-bind", set: setTRESBind},
		{Name: "extra", Arg: RequiredArg, Meta: "TEXT", In: all, Since: "23.02", Group: GroupJob,
			Help: "text that is stored with the job", set: text(func(p *Parsed) *string { return &p.Job.Extra })},
		{Name: "container-id", Arg: RequiredArg, Meta: "ID", In: all, Since: "23.02", Group: GroupFiles,
			Status: Refused, Reason: "OCI bundles are not supported", Help: "id of the OCI container"},
		{Name: "external-launcher", In: Srun, Since: "23.11", Group: GroupStep,
			Help: "start one task on each node, with all resources of the job there, for another launcher",
			set:  setExternalLauncher},
		{Name: "treewidth", Arg: RequiredArg, Meta: "N", In: Srun, Since: "23.11", Group: GroupStep,
			Status: Warned, Reason: "the agents choose the fan-out", Help: "width of the communication tree",
			set: checkedCount("treewidth")},
		{Name: "oom-kill-step", Arg: OptionalArg, Meta: "0|1", In: all, Since: "24.11", Group: GroupStep,
			EnvFull: map[Command][]string{
				Sbatch: {"SBATCH_OOM_KILL_STEP"}, Srun: {"SLURM_OOM_KILL_STEP"}, Salloc: {"SALLOC_OOM_KILL_STEP"},
			},
			Help: "kill the whole step if a task runs out of memory", set: setOOMKillStep},
		{Name: "stepmgr", In: all, Since: "24.05", Group: GroupStep,
			Help: "manage steps inside the job, which is always the case",
			set:  func(p *Parsed, _ string, _ bool) error { p.setText("stepmgr", ""); return nil }},
		{Name: "wait-for-children", In: Srun, Since: "25.05", Group: GroupStep,
			Help: "a task ends when all of its processes have",
			set:  flag(func(p *Parsed) *bool { return &p.Step.WaitForChildren })},
		{Name: "resv-ports", Arg: OptionalArg, Meta: "N", In: Sbatch | Salloc, Since: "24.05", Group: GroupStep,
			Status: Warned, Reason: "steps reserve their own ports (srun --resv-ports)",
			Help: "reserve communication ports", set: setPorts},
		{Name: "segment", Arg: RequiredArg, Meta: "N", In: all, Since: "24.05", Env: "SEGMENT", Group: GroupNodes,
			Help: "size of a segment: nodes of the job that must share a leaf switch",
			set:  count(func(p *Parsed) *int32 { return &p.Job.Placement.Segment })},
		{Name: "consolidate-segments", In: all, Since: "25.11", Group: GroupNodes,
			Help: "place segments below as few switches as possible", set: setSegments(job.SegmentsTogether)},
		{Name: "spread-segments", In: all, Since: "25.11", Group: GroupNodes,
			Help: "place each segment below a different switch", set: setSegments(job.SegmentsApart)},
		{Name: "resources", Arg: RequiredArg, Meta: "NAME[:COUNT]", In: all, Since: "25.05", Group: GroupJob,
			Status: Refused, Reason: "there are no hierarchical resources; use --licenses",
			Help: "hierarchical resources that the job needs"},
		{Name: "x11", Arg: OptionalArg, Meta: "all|first|last", In: Srun | Salloc, Since: "X11", Group: GroupStep,
			Status: Refused, Reason: "X11 is not forwarded; use ssh -X to the login node", Help: "forward X11"},
	}
}

// containerOptions returns the options of the pyxis plugin.
func containerOptions() []*Option {
	const deleted = "the container is the job's pod and is deleted with it"
	row := func(name, meta, help string) *Option {
		o := &Option{Name: "container-" + name, Meta: meta, In: all, Since: "pyxis", Group: GroupContainer, Help: help}
		if meta != "" {
			o.Arg = RequiredArg
		}
		o.set = setContainer(name)
		return o
	}
	image := row("image", "[REGISTRY#]IMAGE[:TAG]", "image of the job's containers, in partitions that run containers")
	image.set = setContainerImage
	mounts := row("mounts", "SRC[:DST[:ro|rw]]", "additional directories of the partition's volumes to mount")
	mounts.set = setContainerMounts
	name := row("name", "NAME", "name of the job's container, which all of its steps share")
	name.set = setContainerName
	save := row("save", "FILE", "save the container's file system to FILE")
	save.Status, save.Reason = Refused, deleted
	home := row("mount-home", "", "mount the home directory")
	home.Status, home.Reason = Warned, "the partition sets the mounts"
	noHome := &Option{Name: "no-container-mount-home", In: all, Since: "pyxis", Group: GroupContainer,
		Help: "do not mount the home directory", Status: Warned, Reason: home.Reason}
	root := row("remap-root", "", "map the user to root inside the container")
	root.Status, root.Reason = Refused, "processes run as the job's user in containers too"
	noRoot := &Option{Name: "no-container-remap-root", In: all, Since: "pyxis", Group: GroupContainer,
		Help: "keep the user's identity inside the container", set: setContainer("no-remap-root")}
	entry := row("entrypoint", "", "run the image's entry point")
	entry.Status, entry.Reason = Warned, "the agent is the first process of the container"
	noEntry := &Option{Name: "no-container-entrypoint", In: all, Since: "pyxis", Group: GroupContainer,
		Help: "do not run the image's entry point", set: setContainer("no-entrypoint")}
	readonly := row("readonly", "", "mount the container's file system read-only, except /tmp and mounts")
	readonly.set = setRootFS("readonly", "writable")
	writable := row("writable", "", "mount the container's file system read-write")
	writable.set = setRootFS("writable", "readonly")
	workDir := row("workdir", "DIR", "work directory inside the container")
	env := row("env", "NAMES", "variables that override those of the image")
	return []*Option{
		image, mounts, workDir, name, env, writable, readonly, save, home, noHome, root, noRoot, entry, noEntry,
	}
}

// setContainer returns a setter that stores an option of pyxis by its name without
// the prefix container-.
func setContainer(name string) setter {
	return func(p *Parsed, v string, hasValue bool) error {
		if !hasValue {
			v = "true"
		}
		if p.Job.Batch.Container == nil {
			p.Job.Batch.Container = map[string]string{}
		}
		p.Job.Batch.Container[name] = v
		return nil
	}
}

// setRootFS returns a setter of one of two mutually exclusive options; the last
// one wins.
func setRootFS(name, instead string) setter {
	return func(p *Parsed, _ string, _ bool) error {
		if err := setContainer(name)(p, "", false); err != nil {
			return err
		}
		delete(p.Job.Batch.Container, instead)
		return nil
	}
}

// setContainerName parses NAME[:FLAG]. A container lasts as long as its job and is
// shared by the job's steps, which is what named containers of pyxis provide.
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

// setTRESPerTask parses cpu=N and gres/NAME[:TYPE][=N]; a colon may replace the
// equals sign.
func setTRESPerTask(p *Parsed, v string, _ bool) error {
	cpus, gres, err := value.TRES(v, job.PerTask)
	if err != nil {
		return value.ErrInvalid
	}
	if cpus > 0 {
		p.Job.Shape.CPUsPerTask = cpus
	}
	p.replaceGRES("tres-per-task", gres)
	p.setText("tres-per-task", v)
	return nil
}

func setTRESBind(p *Parsed, v string, _ bool) error {
	bind, ok := strings.CutPrefix(strings.ReplaceAll(v, "gres:gpu", "gres/gpu"), "gres/gpu:")
	if !ok || strings.Contains(bind, "+") { // only GPUs support binding
		return value.ErrInvalid
	}
	verbose, kind := "", bind
	if rest, ok := strings.CutPrefix(bind, "verbose,"); ok {
		verbose, kind = "verbose,", rest
	}
	for _, renamed := range []string{"map:", "mask:"} { // "map_gpu:" in --gpu-bind
		if list, ok := strings.CutPrefix(kind, renamed); ok {
			kind = strings.TrimSuffix(renamed, ":") + "_gpu:" + list
		}
	}
	return setGPUBind(p, verbose+kind, true)
}

// setExternalLauncher prepares the step for an external launcher: it shares all
// resources of the job, and its tasks are not bound.
func setExternalLauncher(p *Parsed, _ string, _ bool) error {
	p.Step.Overlap, p.Step.Exact = true, false
	p.Step.MPI, p.Step.CPUBind = "none", "none"
	p.Job.Shape.Tasks, p.Job.Shape.TasksPerNode = 0, 1
	return nil
}

// setSegments returns a setter of the placement of segments; the last option wins.
func setSegments(how string) setter {
	return func(p *Parsed, _ string, _ bool) error {
		p.Job.Placement.Segments = how
		return nil
	}
}

func setOOMKillStep(p *Parsed, v string, hasValue bool) error {
	if hasValue && v != "0" && v != "1" {
		return value.ErrInvalid
	}
	on := v != "0"
	p.Step.OOMKillStep = &on
	p.setText("oom-kill-step", orOne(v))
	return nil
}
