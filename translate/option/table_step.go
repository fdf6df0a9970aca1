package option

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

// stepOptions returns the options about steps, which only srun has.
func stepOptions() []*Option {
	return []*Option{
		{Name: "label", Short: 'l', In: Srun, Env: "LABELIO", Group: GroupStep,
			Help: "prefix each line with the task number",
			set:  flag(func(p *Parsed) *bool { return &p.Step.Label })},
		{Name: "unbuffered", Short: 'u', In: Srun, Env: "UNBUFFEREDIO", Group: GroupStep,
			Help: "do not buffer output by lines",
			set:  flag(func(p *Parsed) *bool { return &p.Step.Unbuffered })},
		{Name: "kill-on-bad-exit", Short: 'K', Arg: OptionalArg, Meta: "0|1", In: Srun, Env: "KILL_BAD_EXIT",
			Group: GroupStep,
			Help:  "kill the step when a task fails", set: setKillOnBadExit},
		{Name: "wait", Short: 'W', Arg: RequiredArg, Meta: "SECONDS", In: Srun, Env: "WAIT", Group: GroupStep,
			Help: "kill the step SECONDS after its first task has ended", set: setWait},
		{Name: "overlap", In: Srun, Env: "OVERLAP", Group: GroupStep, Help: "share CPUs with other steps",
			set: flag(func(p *Parsed) *bool { return &p.Step.Overlap })},
		{Name: "exact", In: Srun, Env: "EXACT", Group: GroupStep, Help: "use only the requested CPUs",
			set: flag(func(p *Parsed) *bool { return &p.Step.Exact })},
		{Name: "whole", In: Srun, Group: GroupStep, Help: "use all CPUs of the job on the nodes",
			set: flag(func(p *Parsed) *bool { return &p.Step.Whole })},
		{Name: "relative", Short: 'r', Arg: RequiredArg, Meta: "N", In: Srun, Group: GroupStep,
			Help: "start at node N of the job", set: setRelative},
		{Name: "multi-prog", In: Srun, Group: GroupStep,
			Help: "the program is a file that lists the programs of the tasks",
			set:  flag(func(p *Parsed) *bool { return &p.Step.MultiProg })},
		{Name: "pty", In: Srun, Group: GroupStep, Help: "run task 0 in a pseudo terminal",
			set: flag(func(p *Parsed) *bool { return &p.Step.PTY })},
		{Name: "mpi", Arg: RequiredArg, Meta: "TYPE", In: Srun, Group: GroupStep,
			EnvFull: map[Command][]string{Srun: {"SLURM_MPI_TYPE"}},
			Help:    "type of MPI: none, pmi2, pmix", set: text(func(p *Parsed) *string { return &p.Step.MPI })},
		{Name: "cpu-bind", Aliases: []string{"cpu_bind"}, Arg: RequiredArg, Meta: "TYPE", In: Srun, Env: "CPU_BIND",
			Group: GroupStep,
			Help:  "bind tasks to CPUs", set: setCPUBind},
		{Name: "jobid", Arg: RequiredArg, Meta: "ID", In: Srun, Group: GroupStep,
			EnvFull: map[Command][]string{Srun: {"SLURM_JOB_ID"}},
			Help:    "start the step in job ID", set: setJobID},
		{Name: "interactive", In: Srun, Group: GroupStep,
			Status: Warned, Reason: "steps of salloc do not need it", Help: "interactive step of salloc",
			set: flag(func(p *Parsed) *bool { return &p.Step.Interactive })},
		{Name: "het-group", Aliases: []string{"pack-group"}, Arg: RequiredArg, Meta: "GROUPS", In: Srun,
			Group: GroupStep,
			Help:  "run in these components of a heterogeneous job, as one step",
			set:   text(func(p *Parsed) *string { return &p.Step.HetGroup })},
		{Name: "threads", Short: 'T', Arg: RequiredArg, Meta: "N", In: Srun, Env: "THREADS", Group: GroupStep,
			Status: Warned, Reason: "the agents choose the fan-out", Help: "number of connections to open concurrently",
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
			Help: "directories whose libraries are not copied; none: copy all", set: setBcastExclude},
		{Name: "compress", Arg: OptionalArg, Meta: "LIBRARY", In: Srun, Env: "COMPRESS", Group: GroupStep,
			Help: "compress what --bcast copies", set: setCompress},
		{Name: "send-libs", Arg: OptionalArg, Meta: "yes|no", In: Srun, Env: "SEND_LIBS", Group: GroupStep,
			Help: "copy the program's shared libraries too", set: setSendLibs},
		{Name: "resv-ports", Arg: OptionalArg, Meta: "N", In: Srun, Env: "RESV_PORTS", Group: GroupStep,
			Help: "reserve N communication ports (default: one more than tasks on a node)",
			set:  setPorts},
		{Name: "accel-bind", Arg: RequiredArg, Meta: "TYPE", In: Srun, Group: GroupStep,
			Status: Warned, Reason: "tasks can use all devices of their node", Help: "bind tasks to devices",
			set: setAccelBind},
		{Name: "slurmd-debug", Arg: RequiredArg, Meta: "LEVEL", In: Srun, Group: GroupStep,
			EnvFull: map[Command][]string{Srun: {"SLURMD_DEBUG"}},
			Status:  Warned, Reason: "there is no slurmd", Help: "verbosity of slurmd's messages",
			set: setSlurmdDebug},
		{Name: "msg-timeout", Arg: RequiredArg, Meta: "SECONDS", In: Srun, Group: GroupStep,
			Status: Warned, Reason: "the agents have fixed timeouts", Help: "timeout of messages",
			set: checkedCount("msg-timeout")},
		{Name: "debugger-test", In: Srun, Group: GroupStep,
			Status: Refused, Reason: "debuggers are not supported", Help: "test the interface for debuggers"},
		{Name: "preserve-env", Short: 'E', In: Srun, Group: GroupStep,
			Help: "pass SLURM_NNODES, SLURM_NTASKS and similar variables to the tasks unchanged",
			set:  flag(func(p *Parsed) *bool { return &p.Step.PreserveEnv })},
		{Name: "disable-status", Short: 'X', In: Srun, Env: "DISABLE_STATUS", Group: GroupStep,
			Help: "forward a single Ctrl-C to the tasks",
			set:  flag(func(p *Parsed) *bool { return &p.Step.DisableStatus })},
		{Name: "quit-on-interrupt", In: Srun, Group: GroupStep, Help: "a single Ctrl-C ends the step",
			set: flag(func(p *Parsed) *bool { return &p.Step.QuitOnInterrupt })},
		{Name: "no-allocate", Short: 'Z', In: Srun, Group: GroupStep,
			Status: Refused, Reason: "all jobs go through the queue", Help: "run without an allocation"},
	}
}

func setKillOnBadExit(p *Parsed, v string, hasValue bool) error {
	on := true
	if hasValue {
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

// setThreads accepts any number, with Slurm's warning if it exceeds the limit that
// Slurm recommends.
func setThreads(p *Parsed, v string, _ bool) error {
	n, err := value.Count(v)
	if err != nil {
		return errNumber
	}
	if n > maxThreads {
		p.warn("error: Thread value --threads=%d exceeds recommended limit of %d", n, maxThreads)
	}
	p.Step.Threads = n
	return nil
}

const maxThreads = 60

// setAccelBind accepts any value that contains one of the letters g (GPUs), n
// (networks) and v (verbose), as Slurm does.
func setAccelBind(p *Parsed, v string, _ bool) error {
	if !strings.ContainsAny(v, "gnv") {
		return value.ErrInvalid
	}
	p.setText("accel-bind", v)
	return nil
}

// checkedCount returns a setter of a count that has no field of its own.
func checkedCount(name string) setter {
	return func(p *Parsed, v string, _ bool) error {
		if _, err := value.Count(v); err != nil {
			return errNumber
		}
		p.setText(name, v)
		return nil
	}
}

func setCPUBind(p *Parsed, v string, _ bool) error {
	if strings.EqualFold(v, "help") {
		p.Client.Print, p.Client.PrintCode = cpuBindHelp, 1
		return nil
	}
	p.badCPUBind = value.CPUBind(v)
	p.Step.CPUBind = v
	return nil
}

// checkCPUBind returns the error about --cpu-bind, which Slurm's srun finds when it has read
// all options.
func checkCPUBind(p *Parsed) error {
	if p.badCPUBind == nil {
		return nil
	}
	e := slurmerr.New(slurmerr.Fatal, "Failed to parse --cpu-bind= values.")
	e.Before = []string{"srun: error: " + p.badCPUBind.Error()}
	return e
}

const cpuBindHelp = `CPU binding of tasks:
    --cpu-bind=[quiet,|verbose,]TYPE
        none                  no binding
        sockets cores threads ldoms
                              sockets, cores, threads or NUMA nodes
        rank                  CPU N for task N of a node
        map_cpu:LIST          entry N of the list for task N of a node
        mask_cpu:LIST         the same, with masks of CPUs
`

func setCompress(p *Parsed, v string, hasValue bool) error {
	switch {
	case !hasValue, v == "":
		v = "lz4"
	case strings.EqualFold(v, "lz4"), strings.EqualFold(v, "none"):
		v = strings.ToLower(v)
	default:
		p.warn("error: Compression type '%s' unknown, disabling compression support.", v)
		v = "none"
	}
	p.Step.Compress = v != "none"
	p.setText("compress", v)
	return nil
}

func setBcastExclude(p *Parsed, v string, hasValue bool) error {
	if hasValue {
		p.Step.BcastExclude = v
	}
	return nil
}

func setSendLibs(p *Parsed, v string, _ bool) error {
	switch text := strings.ToLower(v); text {
	case "", "yes", "y", "no", "n":
		p.Step.SendLibs = !strings.HasPrefix(text, "n")
		p.setText("send-libs", v)
		return nil
	}
	return value.ErrInvalid
}

func setPorts(p *Parsed, v string, hasValue bool) error {
	n, err := value.CountOrZero(orZero(v))
	if hasValue && err != nil {
		return errNumber
	}
	p.Step.Ports = &n
	return nil
}

// slurmdLevels are the levels of slurmd's messages that a user may request.
var slurmdLevels = []string{"quiet", "fatal", "error", "info", "verbose"}

func setSlurmdDebug(p *Parsed, v string, _ bool) error {
	level := slices.Index(slurmdLevels, strings.ToLower(v))
	if n, err := value.CountOrZero(v); err == nil {
		level = min(int(n), len(slurmdLevels)-1)
	}
	if level < 0 {
		level = len(slurmdLevels) - 1
	}
	p.setText("slurmd-debug", slurmdLevels[level])
	return nil
}
