package option

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/value"
)

// stepOptions are srun's own, for steps.
func stepOptions() []*Option {
	return []*Option{
		{Name: "label", Short: 'l', In: Srun, Env: "LABELIO", Group: GroupStep, Help: "put the task's number ahead of each line",
			set: flag(func(p *Parsed) *bool { return &p.Step.Label })},
		{Name: "unbuffered", Short: 'u', In: Srun, Env: "UNBUFFEREDIO", Group: GroupStep, Help: "pass output on at once, not by lines",
			set: flag(func(p *Parsed) *bool { return &p.Step.Unbuffered })},
		{Name: "kill-on-bad-exit", Short: 'K', Arg: OptionalArg, Meta: "0|1", In: Srun, Env: "KILL_BAD_EXIT", Group: GroupStep,
			Help: "end the step when a task fails", set: setKillOnBadExit},
		{Name: "wait", Short: 'W', Arg: RequiredArg, Meta: "SECONDS", In: Srun, Env: "WAIT", Group: GroupStep,
			Help: "end the step that long after its first task", set: setWait},
		{Name: "overlap", In: Srun, Env: "OVERLAP", Group: GroupStep, Help: "share the CPUs with other steps",
			set: flag(func(p *Parsed) *bool { return &p.Step.Overlap })},
		{Name: "exact", In: Srun, Env: "EXACT", Group: GroupStep, Help: "use only the CPUs that were asked for",
			set: flag(func(p *Parsed) *bool { return &p.Step.Exact })},
		{Name: "whole", In: Srun, Group: GroupStep, Help: "use all CPUs of the job on the nodes",
			set: flag(func(p *Parsed) *bool { return &p.Step.Whole })},
		{Name: "relative", Short: 'r', Arg: RequiredArg, Meta: "N", In: Srun, Group: GroupStep,
			Help: "begin at node N of the job", set: setRelative},
		{Name: "multi-prog", In: Srun, Group: GroupStep, Help: "the program is a file that says what each task runs",
			set: flag(func(p *Parsed) *bool { return &p.Step.MultiProg })},
		{Name: "pty", In: Srun, Group: GroupStep, Help: "give task 0 a terminal",
			set: flag(func(p *Parsed) *bool { return &p.Step.PTY })},
		{Name: "mpi", Arg: RequiredArg, Meta: "TYPE", In: Srun, Group: GroupStep,
			EnvFull: map[Command][]string{Srun: {"SLURM_MPI_TYPE"}},
			Help:    "kind of MPI start-up: none, pmi2, pmix", set: text(func(p *Parsed) *string { return &p.Step.MPI })},
		{Name: "cpu-bind", Aliases: []string{"cpu_bind"}, Arg: RequiredArg, Meta: "TYPE", In: Srun, Env: "CPU_BIND", Group: GroupStep,
			Help: "bind tasks to CPUs", set: setCPUBind},
		{Name: "jobid", Arg: RequiredArg, Meta: "ID", In: Srun, Group: GroupStep,
			EnvFull: map[Command][]string{Srun: {"SLURM_JOB_ID"}},
			Help:    "run inside job ID", set: setJobID},
		{Name: "interactive", In: Srun, Group: GroupStep, Status: Warned, Reason: "steps of salloc need it not", Help: "interactive step of salloc",
			set: flag(func(p *Parsed) *bool { return &p.Step.Interactive })},
		{Name: "het-group", Aliases: []string{"pack-group"}, Arg: RequiredArg, Meta: "GROUPS", In: Srun, Group: GroupStep,
			Help: "run in these components of a heterogeneous job, as one step",
			set:  text(func(p *Parsed) *string { return &p.Step.HetGroup })},
		{Name: "threads", Short: 'T', Arg: RequiredArg, Meta: "N", In: Srun, Env: "THREADS", Group: GroupStep,
			Status: Warned, Reason: "the agents fan out as a tree of their own", Help: "connections to open at a time",
			set: setThreads},
		{Name: "prolog", Arg: RequiredArg, Meta: "PROGRAM", In: Srun, Env: "PROLOG", Group: GroupStep,
			Help: "run PROGRAM here before the step", set: text(func(p *Parsed) *string { return &p.Step.Prolog })},
		{Name: "epilog", Arg: RequiredArg, Meta: "PROGRAM", In: Srun, Env: "EPILOG", Group: GroupStep,
			Help: "run PROGRAM here after the step", set: text(func(p *Parsed) *string { return &p.Step.Epilog })},
		{Name: "task-prolog", Arg: RequiredArg, Meta: "PROGRAM", In: Srun, Env: "TASK_PROLOG", Group: GroupStep,
			Help: "run PROGRAM before each task", set: text(func(p *Parsed) *string { return &p.Step.TaskPro })},
		{Name: "task-epilog", Arg: RequiredArg, Meta: "PROGRAM", In: Srun, Env: "TASK_EPILOG", Group: GroupStep,
			Help: "run PROGRAM after each task", set: text(func(p *Parsed) *string { return &p.Step.TaskEpi })},
		{Name: "bcast", Arg: OptionalArg, Meta: "PATH", In: Srun, Env: "BCAST", Group: GroupStep,
			Help: "copy the program to the nodes",
			set:  func(p *Parsed, v string, _ bool) error { p.Step.Bcast = &v; return nil }},
		{Name: "bcast-exclude", Arg: RequiredArg, Meta: "PATHS", In: Srun, Env: "BCAST_EXCLUDE", Group: GroupStep,
			Help: "folders whose libraries are not copied; none: copy all", set: setBcastExclude},
		{Name: "compress", Arg: OptionalArg, Meta: "LIBRARY", In: Srun, Env: "COMPRESS", Group: GroupStep,
			Help: "compress what --bcast copies", set: setCompress},
		{Name: "send-libs", Arg: OptionalArg, Meta: "yes|no", In: Srun, Env: "SEND_LIBS", Group: GroupStep,
			Help: "copy the program's libraries too", set: setSendLibs},
		{Name: "resv-ports", Arg: OptionalArg, Meta: "N", In: Srun, Env: "RESV_PORTS", Group: GroupStep,
			Help: "reserve ports for the step's communication: N, else one more than it has tasks on a node",
			set:  setPorts},
		{Name: "accel-bind", Arg: RequiredArg, Meta: "TYPE", In: Srun, Group: GroupStep,
			Status: Warned, Reason: "every task sees the devices of its node", Help: "bind tasks to devices", set: setAccelBind},
		{Name: "slurmd-debug", Arg: RequiredArg, Meta: "LEVEL", In: Srun, Group: GroupStep,
			EnvFull: map[Command][]string{Srun: {"SLURMD_DEBUG"}},
			Status:  Warned, Reason: "there is no slurmd", Help: "messages of slurmd to show", set: setSlurmdDebug},
		{Name: "msg-timeout", Arg: RequiredArg, Meta: "SECONDS", In: Srun, Group: GroupStep,
			Status: Warned, Reason: "the agents have time-outs of their own", Help: "time-out of messages", set: countKept("msg-timeout")},
		{Name: "debugger-test", In: Srun, Group: GroupStep, Status: Refused, Reason: "debuggers are not supported", Help: "for tests of debuggers"},
		{Name: "preserve-env", Short: 'E', In: Srun, Group: GroupStep,
			Help: "leave SLURM_NNODES, SLURM_NTASKS and their like to the tasks as srun has them",
			set:  flag(func(p *Parsed) *bool { return &p.Step.PreserveEnv })},
		{Name: "disable-status", Short: 'X', In: Srun, Env: "DISABLE_STATUS", Group: GroupStep, Help: "a single Ctrl-C goes to the tasks",
			set: flag(func(p *Parsed) *bool { return &p.Step.DisableStatus })},
		{Name: "quit-on-interrupt", In: Srun, Group: GroupStep, Help: "a single Ctrl-C ends the step",
			set: flag(func(p *Parsed) *bool { return &p.Step.QuitOnInterrupt })},
		{Name: "no-allocate", Short: 'Z', In: Srun, Group: GroupStep, Status: Refused, Reason: "nothing runs outside the queue", Help: "run without an allocation"},
	}
}

func setKillOnBadExit(p *Parsed, v string, has bool) error {
	on := true
	if has {
		n, err := value.CountOrZero(v)
		if err != nil && v != "" {
			return errNumber
		}
		on = n != 0 || v == ""
	}
	p.Step.KillOnBadExit = &on
	return nil
}

func setWait(p *Parsed, v string, _ bool) error {
	n, err := value.CountOrZero(orZero(v))
	if err != nil {
		return errNumber
	}
	p.Step.Wait = &n
	return nil
}

func setRelative(p *Parsed, v string, _ bool) error {
	n, err := value.CountOrZero(orZero(v))
	if err != nil {
		return errNumber
	}
	p.Step.Relative = &n
	return nil
}

func setJobID(p *Parsed, v string, _ bool) error {
	id, _, _ := strings.Cut(v, "+")
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 1 {
		return errNumber
	}
	p.Step.JobID = n
	return nil
}

// countKept checks a count that has no field of its own.
// setThreads takes any number, and says of more than Slurm recommends what Slurm
// says.
func setThreads(p *Parsed, v string, _ bool) error {
	n, err := value.Count(v)
	if err != nil {
		return errNumber
	}
	if n > mostThreads {
		p.warn("error: Thread value --threads=%d exceeds recommended limit of %d", n, mostThreads)
	}
	p.Step.Threads = n
	return nil
}

const mostThreads = 60

// setAccelBind wants one of the letters g (GPUs), n (networks) and v (verbose)
// somewhere, as Slurm does.
func setAccelBind(p *Parsed, v string, _ bool) error {
	if !strings.ContainsAny(v, "gnv") {
		return value.ErrInvalid
	}
	p.keep("accel-bind", v)
	return nil
}

func countKept(name string) setter {
	return func(p *Parsed, v string, _ bool) error {
		if _, err := value.Count(v); err != nil {
			return errNumber
		}
		p.keep(name, v)
		return nil
	}
}

func setCPUBind(p *Parsed, v string, _ bool) error {
	if strings.EqualFold(v, "help") {
		p.Client.Print, p.Client.PrintCode = cpuBindHelp, 1
		return nil
	}
	if err := value.CPUBind(v); err != nil {
		return err
	}
	p.Step.CPUBind = v
	return nil
}

const cpuBindHelp = `How tasks are bound to CPUs:
    --cpu-bind=[quiet,|verbose,]TYPE
        none                  not at all
        sockets cores threads ldoms
                              to units of that kind
        rank                  task N of a node to its CPU N
        map_cpu:LIST          task N of a node to entry N of the list
        mask_cpu:LIST         the same, with masks
`

func setCompress(p *Parsed, v string, has bool) error {
	switch {
	case !has, v == "":
		v = "lz4"
	case v != "lz4" && v != "none":
		p.Warnings = append(p.Warnings, "error: Compression type '"+v+"' unknown, disabling compression support.")
		v = "none"
	}
	p.Step.Compress = v != "none"
	p.keep("compress", v)
	return nil
}

func setBcastExclude(p *Parsed, v string, has bool) error {
	if has {
		p.Step.BcastExclude = v
	}
	return nil
}

func setSendLibs(p *Parsed, v string, _ bool) error {
	switch strings.ToLower(v) {
	case "", "yes", "no":
		p.Step.SendLibs = !strings.EqualFold(v, "no")
		p.keep("send-libs", v)
		return nil
	}
	return value.ErrInvalid
}

func setPorts(p *Parsed, v string, has bool) error {
	n, err := value.CountOrZero(orZero(v))
	if has && err != nil {
		return errNumber
	}
	p.Step.Ports = &n
	return nil
}

// slurmdLevels are the levels of messages that a user may ask slurmd for.
var slurmdLevels = []string{"quiet", "fatal", "error", "info", "verbose"}

func setSlurmdDebug(p *Parsed, v string, _ bool) error {
	level := slices.Index(slurmdLevels, strings.ToLower(v))
	if n, err := value.CountOrZero(v); err == nil {
		level = min(int(n), len(slurmdLevels)-1)
	}
	if level < 0 {
		level = len(slurmdLevels) - 1
	}
	p.keep("slurmd-debug", slurmdLevels[level])
	return nil
}
