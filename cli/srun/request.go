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
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
)

// defaultImmediate is how long --immediate without a value waits.
const defaultImmediate = 1

// prepare makes the request and opens srun's own files.
func (r *run) prepare() error {
	p := r.parsed
	s, warnings := shape(p)
	for _, w := range warnings {
		r.o.say("Warning: %s", w)
	}
	said, err := checkNodes(p, &s)
	if err != nil {
		return err
	}
	for _, w := range said {
		r.o.say("%s", w)
	}
	if p.Step.PTY && (p.Has("input") || p.Has("output") || p.Has("error")) {
		return slurmerr.New(slurmerr.Refused, "--error/--input/--output are incompatible with --pty")
	}
	dir, err := r.o.p.Dir()
	if err != nil {
		return slurmerr.Wrap(slurmerr.Refused, err, "")
	}
	r.dir = dir
	inside := p.Job.Batch.Container
	if c := cmp.Or(inside["workdir"], p.Job.Batch.WorkDir); c != "" {
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
		JobID: p.Step.JobID, Name: p.Job.Name, Named: p.Given["job-name"].From == option.FromCommandLine, Shape: s,
		Exact: p.Step.Exact, Overlap: p.Step.Overlap, GPUsPerTask: p.Given["gpus-per-task"].Value, CPUBind: p.Step.CPUBind,
		Command: step.Command{
			Args: p.Args, Env: environment(r.o.p.Environ(), exported(p)), Dir: dir, Umask: int32(env.Umask(r.o.p.Environ(), r.o.p.Umask())),
			Label: p.Step.Label, Append: appends(p.Step.OpenMode, p.Job.Batch.OpenMode), Raw: p.Step.Unbuffered,
			CPUBind: cpus, MemBind: memory, GPUBind: p.Step.GPUBind, Rlimits: option.Propagated(p, r.o.p.Limits()),
			RlimitsAsked: p.Has("propagate"), WaitForChildren: p.Step.WaitForChildren,
		},
		SrunPID: int64(r.o.p.PID), Part: r.part, PreserveEnv: p.Step.PreserveEnv, NoKill: p.Job.Batch.NoKill, Ports: p.Step.Ports, Container: inside, OOMKillStep: p.Step.OOMKillStep,
	}
	if host, err := r.o.p.Hostname(); err == nil {
		r.req.SrunHost, _, _ = strings.Cut(host, ".")
	}
	if p.Step.TaskSharing && p.Step.GPUBind == "" { // else by --gpus-per-task
		r.req.Command.GPUBind = "closest"
	}
	if p.Step.MPI == step.MPIPMI2 || p.Step.MPI == step.MPIPMIx {
		r.req.Command.MPI = p.Step.MPI
		if p.Step.KillOnBadExit == nil { // the others would wait for it at the next fence
			on := true
			p.Step.KillOnBadExit = &on
		}
	}
	if p.Step.Label { // an srun of the task labels its lines as well
		r.req.Command.Env = env.Merge(r.req.Command.Env, "SLURM_LABELIO=1")
	}
	if r.afar {
		r.fromAfar()
	}
	if p.Client.Immediate != nil {
		seconds := max(*p.Client.Immediate, defaultImmediate)
		r.req.Immediate = &seconds
	}
	if p.Job.Time.Limit > 0 {
		r.req.TimeLimit = p.Job.Time.Limit
	}
	if err := r.extras(); err != nil {
		return err
	}
	if p.Step.PTY {
		r.askTerminal()
	}
	return r.openFiles()
}

// extras are --multi-prog, the programs around tasks, --signal and the hosts of
// an arbitrary distribution.
func (r *run) extras() (err error) {
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
	return r.hosts()
}

// program makes the path of a program absolute that is no plain name.
func (r *run) program(name string) string {
	if name == "" || !strings.Contains(name, "/") {
		return name
	}
	return r.known(name)
}

// hosts reads where each task goes: the node list, else SLURM_HOSTFILE.
func (r *run) hosts() error {
	s := &r.req.Shape
	if !strings.HasPrefix(s.Distribution, "arbitrary") {
		return nil
	}
	if file := r.o.p.Env("SLURM_HOSTFILE"); file != "" && len(s.NodeList) == 0 {
		data, err := r.o.p.ReadFile(r.known(file))
		if err == nil {
			s.NodeList, err = hostlist.Expand(strings.Join(strings.Fields(string(data)), ","))
		}
		if err != nil {
			return slurmerr.Newf(slurmerr.Refused, "slurm_allocate_resources error opening file %s, %s", file, strerror.Text(err))
		}
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

// checkHosts refuses hosts that are not one for each task.
func (r *run) checkHosts(s *step.Shape) error {
	given := r.parsed.Given["ntasks"].From == option.FromCommandLine
	switch {
	case given && int(s.Tasks) != len(s.Hosts):
		return slurmerr.Newf(slurmerr.Refused, "You asked for %d tasks but hostlist specified %d nodes", s.Tasks, len(s.Hosts))
	case len(s.Hosts) == 0:
		return slurmerr.New(slurmerr.Refused, "invalid number of tasks (-n 0)")
	}
	s.Tasks = int32(len(s.Hosts))
	return nil
}

// fromAfar fits the environment of another machine to the job.
func (r *run) fromAfar() {
	c := &r.req.Command
	host, err := r.o.p.Hostname()
	if err != nil {
		host = "unknown"
	}
	// srun's way to the cluster is not the job's.
	kept := env.Without(c.Env, func(name string) bool { return name == "KUBECONFIG" || strings.HasPrefix(name, "BERTH_") })
	c.Env = env.Merge(kept, "SLURM_SUBMIT_DIR="+r.dir, "SLURM_SUBMIT_HOST="+host, "SLURM_PRIO_PROCESS=0")
}

func appends(modes ...string) bool {
	for _, m := range modes {
		if strings.HasPrefix(m, "a") {
			return true
		}
	}
	return false
}

// openFiles decides who opens which file: what differs from task to task is
// the agents', the rest srun's.
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
	if b.Output != "" { // errors go where the output goes
		c.Error = c.Output
		if r.out.file != nil || r.out.late != "" {
			r.err = r.out
		}
		r.err.task = r.out.task
	}
	return nil
}

// openSink reads the value of --output or --error, the stream called name.
func (r *run) openSink(name string, s *sink, mode string, remote *string) error {
	switch {
	case mode == "" || strings.HasPrefix(mode, "all"):
		return nil
	case mode == "none":
		*remote = step.DevNull
		return nil
	case env.PerTask(mode):
		*remote = r.known(mode)
		return nil
	}
	if n, ok := r.taskNumber(mode); ok {
		s.task = int64(n)
		return nil
	}
	if env.PerStep(mode) {
		s.late = mode
		return nil
	}
	return r.openFile(name, s, mode)
}

// openFile opens the file of the stream called name.
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

// openLate opens the files whose names have the step's number in them.
func (r *run) openLate() error {
	shared := r.err.late == r.out.late && r.parsed.Job.Batch.Error == ""
	if r.out.late != "" {
		if err := r.openFile("stdout", &r.out, r.out.late); err != nil {
			return err
		}
	}
	switch {
	case r.err.late == "":
		return nil
	case shared:
		r.err.w, r.err.file = r.out.w, r.out.file
		return nil
	}
	return r.openFile("stderr", &r.err, r.err.late)
}

func (r *run) openInput(mode string) error {
	c := &r.req.Command
	c.Stdin = step.StdinAll
	r.in = r.o.p.In
	switch {
	case c.Terminal != nil:
		c.Stdin = "0"
	case mode == "" || mode == "all":
	case mode == "none":
		c.Stdin, r.in = step.StdinNone, nil
	case env.PerTask(mode):
		c.Input, r.in = r.known(mode), nil
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

// taskNumber reads the number of a task in place of a file. One that the step
// does not have is the name of a file, as far as that is known before the step is.
func (r *run) taskNumber(mode string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(mode, 10, 31)
	s := &r.req.Shape
	tasks := s.Tasks
	if tasks == 0 && (s.MaxNodes == 0 || s.MaxNodes == s.Nodes) {
		tasks = s.Nodes * max(s.TasksPerNode, 1)
	}
	return n, err == nil && (r.part || tasks == 0 || n < uint64(tasks))
}

// known makes a pattern for the agents absolute.
func (r *run) known(pattern string) string {
	if filepath.IsAbs(pattern) {
		return pattern
	}
	return r.dir + "/" + pattern
}

// path is the file that srun itself opens for a pattern without tasks. Until the
// step has a number %s is the batch script's; backslashes are a step's always.
func (r *run) path(pattern string) string {
	names := env.Place{
		JobID: r.parsed.Step.JobID, Batch: r.created == nil && !strings.Contains(pattern, `\`), User: r.o.p.Env("SLURM_JOB_USER"), JobName: r.parsed.Job.Name,
	}
	if r.created != nil {
		names.Step = r.created.StepID
	}
	return names.Path(r.dir, pattern)
}

func (r *run) closeFiles() {
	for _, c := range []io.Closer{r.inFile, r.out.file, r.err.file} {
		if f, ok := c.(*os.File); ok && f != nil {
			f.Close()
		}
	}
}
