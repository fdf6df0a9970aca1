package srun

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/option"
)

// defaultImmediate is the time in seconds that --immediate without a value waits.
const defaultImmediate = 1

// prepare builds the request and opens srun's own files.
func (r *run) prepare() error {
	p := r.parsed
	s, warnings := shape(p)
	for _, w := range warnings {
		r.o.printf("Warning: %s", w)
	}
	messages, err := checkNodes(p, &s)
	if err != nil {
		return err
	}
	for _, w := range messages {
		r.o.printf("%s", w)
	}
	if p.Step.PTY && (p.Has("input") || p.Has("output") || p.Has("error")) {
		return slurmerr.New(slurmerr.Refused, "--error/--input/--output are incompatible with --pty")
	}
	dir, err := r.o.p.Dir()
	if err != nil {
		return slurmerr.Wrap(slurmerr.Refused, err, "")
	}
	r.dir = dir
	container := p.Job.Batch.Container
	if c := cmp.Or(container["workdir"], p.Job.Batch.WorkDir); c != "" {
		dir = c
		if !filepath.IsAbs(c) {
			dir = filepath.Join(r.dir, c)
		}
	}
	if err := r.testExec(); err != nil {
		return err
	}
	cpus, memory, err := bindings(p)
	if err != nil {
		return err
	}
	r.req = &step.Request{
		JobID: p.Step.JobID, Name: p.Job.Name, Named: p.Given["job-name"].From == option.FromCommandLine,
		Shape: s, Exact: p.Step.Exact, Overlap: p.Step.Overlap,
		GPUsPerTask: p.Given["gpus-per-task"].Value, CPUBind: p.Step.CPUBind,
		Command: step.Command{
			Args: p.Args, Env: environment(r.o.p.Environ(), exportOption(p)), Dir: dir,
			Umask: int32(env.Umask(r.o.p.Environ(), r.o.p.Umask())),
			Label: p.Step.Label, Append: appends(p.Step.OpenMode, p.Job.Batch.OpenMode), Raw: p.Step.Unbuffered,
			CPUBind: cpus, MemBind: memory, GPUBind: p.Step.GPUBind, Rlimits: option.Propagated(p, r.o.p.Limits()),
			RlimitsAsked: p.Has("propagate"), WaitForChildren: p.Step.WaitForChildren,
		},
		SrunPID: int64(r.o.p.PID), Part: r.part, PreserveEnv: p.Step.PreserveEnv, NoKill: p.Job.Batch.NoKill,
		Ports: p.Step.Ports, Container: container, OOMKillStep: p.Step.OOMKillStep,
	}
	if host, err := r.o.p.Hostname(); err == nil {
		r.req.SrunHost, _, _ = strings.Cut(host, ".")
	}
	r.req.TasksPerGPU = p.Job.Shape.TasksPerGPU
	switch n := r.req.TasksPerGPU; {
	case p.Step.GPUBind != "":
	case n > 0: // n tasks share each GPU (srun(1), --ntasks-per-tres)
		r.req.Command.GPUBind = "single:" + strconv.Itoa(int(n))
	case p.Step.TaskSharing: // --gpus-per-task does not divide the GPUs
		r.req.Command.GPUBind = "closest"
	}
	if p.Step.MPI == step.MPIPMI2 || p.Step.MPI == step.MPIPMIx {
		r.req.Command.MPI = p.Step.MPI
		if p.Step.KillOnBadExit == nil { // otherwise the others would wait at the next fence
			on := true
			p.Step.KillOnBadExit = &on
		}
	}
	if p.Step.Label { // as for an srun that a task calls
		r.req.Command.Env = env.Merge(r.req.Command.Env, "SLURM_LABELIO=1")
	}
	if r.remote {
		r.adaptEnvironment()
	}
	if p.Client.Immediate != nil {
		seconds := max(*p.Client.Immediate, defaultImmediate)
		r.req.Immediate = &seconds
	}
	if p.Job.Time.Limit > 0 {
		r.req.TimeLimit = p.Job.Time.Limit
	}
	if err := r.setExtras(); err != nil {
		return err
	}
	if p.Step.PTY {
		r.requestTerminal()
	}
	return r.openFiles()
}

// setExtras sets --multi-prog, the task prolog and epilog, --signal, and the hosts
// of an arbitrary distribution.
func (r *run) setExtras() (err error) {
	p, c := r.parsed, &r.req.Command
	c.TaskProlog, c.TaskEpilog = r.program(p.Step.TaskPro), r.program(p.Step.TaskEpi)
	if r.req.TimeLimit > 0 {
		r.req.Signal, r.req.SignalBefore = p.Job.Time.Signal, p.Job.Time.SignalBefore
	}
	if p.Step.MultiProg {
		if c.Programs, err = r.o.readPrograms(p.Args[0]); err != nil {
			return err
		}
	}
	return r.setHosts()
}

// program returns the absolute path of a program, unless it is a plain name.
func (r *run) program(name string) string {
	if name == "" || !strings.Contains(name, "/") {
		return name
	}
	return r.absolute(name)
}

// setHosts sets the node of each task for an arbitrary distribution: from the node
// list, or else from the file SLURM_HOSTFILE, which implies that distribution.
func (r *run) setHosts() error {
	s := &r.req.Shape
	if file := r.o.p.Env("SLURM_HOSTFILE"); file != "" && len(s.NodeList) == 0 {
		read := func(path string) ([]byte, error) { return r.o.p.ReadFile(r.absolute(path)) }
		if err := r.parsed.ReadHostFile(read, file); err != nil {
			return err
		}
		s.NodeList, s.Distribution = r.parsed.Job.Placement.NodeList, r.parsed.Job.Placement.Distribution
	}
	if !strings.HasPrefix(s.Distribution, "arbitrary") {
		return nil
	}
	s.Hosts = s.NodeList
	if r.parsed.Given["distribution"].From == option.FromCommandLine {
		if err := r.checkHosts(s); err != nil {
			return err
		}
	}
	s.NodeList = slices.Compact(slices.Sorted(slices.Values(s.Hosts)))
	if len(s.Hosts) > 0 {
		s.Nodes, s.MaxNodes = int32(len(s.NodeList)), int32(len(s.NodeList))
		if s.Tasks == 0 {
			s.Tasks = int32(len(s.Hosts))
		}
	}
	return nil
}

// checkHosts returns an error unless there is a host for each task.
func (r *run) checkHosts(s *step.Shape) error {
	given := r.parsed.Given["ntasks"].From == option.FromCommandLine
	switch {
	case given && int(s.Tasks) != len(s.Hosts):
		return slurmerr.Newf(slurmerr.Refused,
			"You asked for %d tasks but hostlist specified %d nodes", s.Tasks, len(s.Hosts))
	case len(s.Hosts) == 0:
		return slurmerr.New(slurmerr.Refused, "invalid number of tasks (-n 0)")
	}
	s.Tasks = int32(len(s.Hosts))
	return nil
}

// adaptEnvironment changes the environment of another machine for the job.
func (r *run) adaptEnvironment() {
	c := &r.req.Command
	host, err := r.o.p.Hostname()
	if err != nil {
		host = "unknown"
	}
	// Commands in the job use the pod's credentials, not those of srun.
	kept := env.Without(c.Env, func(name string) bool {
		return name == "KUBECONFIG" || strings.HasPrefix(name, "BERTH_")
	})
	c.Env = env.Merge(kept, "SLURM_SUBMIT_DIR="+r.dir, "SLURM_SUBMIT_HOST="+host, "SLURM_PRIO_PROCESS=0")
}

// appends reports whether the first given --open-mode is append.
func appends(modes ...string) bool {
	for _, m := range modes {
		if strings.HasPrefix(m, "a") {
			return true
		}
	}
	return false
}

// openFiles opens the files of all tasks. Files that differ from task to task are
// opened by the agents.
func (r *run) openFiles() error {
	b, c := r.parsed.Job.Batch, &r.req.Command
	if err := r.openInput(b.Input); err != nil {
		return err
	}
	r.out = sink{w: r.o.p.Out, task: -1}
	r.err = sink{w: r.o.p.Err, task: -1}
	if err := r.openSink("stdout", &r.out, b.Output, &c.Output); err != nil {
		return err
	}
	if b.Error != "" {
		return r.openSink("stderr", &r.err, b.Error, &c.Error)
	}
	if b.Output != "" { // errors go to the same file
		c.Error = c.Output
		if r.out.file != nil || r.out.stepPattern != "" {
			r.err = r.out
		}
		r.err.task = r.out.task
	}
	return nil
}

// openSink opens the destination of --output or --error, the stream called name.
func (r *run) openSink(name string, s *sink, mode string, remote *string) error {
	switch {
	case mode == "" || strings.HasPrefix(mode, "all"):
		return nil
	case mode == "none":
		*remote = step.DevNull
		return nil
	case env.PerTask(mode):
		*remote = r.absolute(mode)
		return nil
	}
	if n, ok := r.taskNumber(mode); ok {
		s.task = int64(n)
		return nil
	}
	if env.PerStep(mode) {
		s.stepPattern = mode
		return nil
	}
	return r.openFile(name, s, mode)
}

// openFile opens a file for the stream called name.
func (r *run) openFile(name string, s *sink, mode string) error {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if !r.req.Command.Append {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(r.path(mode), flags, 0o666)
	if err != nil {
		return slurmerr.Newf(slurmerr.Refused, "Could not open %s file: %s", name, strerror.Text(err))
	}
	s.w, s.file = f, f
	return nil
}

// openStepFiles opens the files whose patterns have the step's number in them.
func (r *run) openStepFiles() error {
	shared := r.err.stepPattern == r.out.stepPattern && r.parsed.Job.Batch.Error == ""
	if r.out.stepPattern != "" {
		if err := r.openFile("stdout", &r.out, r.out.stepPattern); err != nil {
			return err
		}
	}
	switch {
	case r.err.stepPattern == "":
		return nil
	case shared:
		r.err.w, r.err.file = r.out.w, r.out.file
		return nil
	}
	return r.openFile("stderr", &r.err, r.err.stepPattern)
}

// openInput opens what the tasks read.
func (r *run) openInput(mode string) error {
	c := &r.req.Command
	c.Stdin = step.StdinAll
	r.in = r.o.p.In
	if c.Terminal == nil {
		r.in = r.o.input()
	}
	switch {
	case c.Terminal != nil:
		c.Stdin = "0"
	case mode == "" || mode == "all":
	case mode == "none":
		c.Stdin, r.in = step.StdinNone, nil
	case env.PerTask(mode):
		c.Input, r.in = r.absolute(mode), nil
	default:
		if n, ok := r.taskNumber(mode); ok {
			c.Stdin = strconv.FormatUint(n, 10)
			return nil
		}
		f, err := os.Open(r.path(mode))
		if err != nil {
			return slurmerr.Newf(slurmerr.Refused, "Could not open stdin file: %s", strerror.Text(err))
		}
		r.in, r.inFile = f, f
	}
	return nil
}

// taskNumber parses the number of a task that is given in place of a file. A number
// that the step does not have is the name of a file, as far as that is known before
// the step is created.
func (r *run) taskNumber(mode string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(mode, 10, 31)
	s := &r.req.Shape
	tasks := s.Tasks
	if tasks == 0 && (s.MaxNodes == 0 || s.MaxNodes == s.Nodes) {
		tasks = s.Nodes * max(s.TasksPerNode, 1)
	}
	return n, err == nil && (r.part || tasks == 0 || n < uint64(tasks))
}

// absolute returns a pattern for the agents as an absolute path.
func (r *run) absolute(pattern string) string {
	if filepath.IsAbs(pattern) {
		return pattern
	}
	return r.dir + "/" + pattern
}

// path returns the path of the file that srun opens for a pattern without tasks.
// Until the step has a number, %s is that of the batch script; patterns with
// backslashes are always those of a step.
func (r *run) path(pattern string) string {
	patterns := env.PatternValues{
		JobID: r.parsed.Step.JobID, Batch: r.created == nil && !strings.Contains(pattern, `\`),
		User: r.o.p.Env("SLURM_JOB_USER"), JobName: r.parsed.Job.Name,
	}
	if r.o.p.Env("SLURM_JOB_ID") == strconv.FormatInt(patterns.JobID, 10) {
		array, err := strconv.ParseInt(r.o.p.Env("SLURM_ARRAY_JOB_ID"), 10, 64)
		task, err2 := strconv.ParseInt(r.o.p.Env("SLURM_ARRAY_TASK_ID"), 10, 32)
		if err == nil && err2 == nil {
			patterns.ArrayJobID, patterns.ArrayTask = array, int32(task)
		}
	}
	if r.created != nil {
		patterns.Step = r.created.StepID
	}
	return patterns.Path(r.dir, pattern)
}

// closeFiles closes srun's own files.
func (r *run) closeFiles() {
	for _, c := range []io.Closer{r.inFile, r.out.file, r.err.file} {
		if f, ok := c.(*os.File); ok && f != nil {
			f.Close()
		}
	}
}
