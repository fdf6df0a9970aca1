package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/pmi"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/multiprog"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/env"
)

// orphanTimeout limits the wait for orphans, the processes that remain after the end of a
// task, and for their output.
const orphanTimeout = 2 * time.Second

// tasks are the tasks of one step on this node.
type tasks struct {
	node   *Node
	launch *step.Launch
	part   *step.NodeTasks
	up     Sink
	tasks  []*task
	wg     sync.WaitGroup
	dir    string  // working directory
	masks  [][]int // CPUs of each task; nil: not bound

	pmi  *pmi.Server // nil: the step has none
	pmix *pmixServer // as pmi

	mu        sync.Mutex
	killTimer *time.Timer   // sends SIGKILL after a Terminate
	dead      bool          // the step is being terminated: no further task may start
	over      chan struct{} // closed when all tasks have ended
}

// task is one process. proc is nil if it could not be started.
type task struct {
	id    uint32
	proc  *spawn.Process
	input *input // nil: not connected
	out   []*output
	// terminal of the task, with --pty; nil: none.
	terminal *terminal
	ended    bool // guarded by tasks.mu
	used     step.TaskUsage
	env      []string
}

func newTasks(node *Node, l *step.Launch, part *step.NodeTasks, up Sink) *tasks {
	t := &tasks{node: node, launch: l, part: part, up: up, over: make(chan struct{})}
	for _, id := range part.Tasks {
		t.tasks = append(t.tasks, &task{id: id})
	}
	window := step.Window
	if l.Command.Receive != nil {
		window = step.FileWindow
	}
	for _, k := range t.tasks {
		if l.Command.Terminal != nil && k.id != 0 {
			continue
		}
		if s := l.Command.Stdin; l.Command.Input == "" && (s == step.StdinAll || s == strconv.Itoa(int(k.id))) {
			k.input = newInput(k.id, up, window)
		}
	}
	return t
}

// start starts the tasks and reports which of them run.
func (t *tasks) start() {
	t.setDir()
	t.bind()
	t.watchOOMKills()
	var started []uint32
	for local, k := range t.tasks {
		if t.startTask(local, k) {
			started = append(started, k.id)
		}
	}
	t.send(step.FrameStarted, step.Started{Node: t.part.Step, Tasks: started})
}

// refuse reports all tasks as failed without starting them.
func (t *tasks) refuse(line string) {
	for i, k := range t.tasks {
		if i > 0 {
			line = ""
		}
		t.fail(k, line, 1)
	}
	t.send(step.FrameStarted, step.Started{Node: t.part.Step})
}

// has reports whether a task is one of this node.
func (t *tasks) has(id uint32) bool {
	_, found := slices.BinarySearch(t.part.Tasks, id)
	return found
}

// setDir sets the working directory: the requested one, or /tmp with Slurm's
// message if that cannot be entered: once for the node and once for each task.
func (t *tasks) setDir() {
	t.dir = t.launch.Command.Dir
	err := CheckDir(t.dir)
	if err == nil {
		return
	}
	line := fmt.Sprintf("slurmstepd: error: couldn't chdir to `%s': %s: going to /tmp instead\n", t.dir, err)
	t.notice(strings.Repeat(line, 1+len(t.tasks)))
	t.dir = "/tmp"
}

// CheckDir returns an error if dir cannot be the working directory of a process,
// in the words of strerror(3).
func CheckDir(dir string) error {
	st, err := os.Stat(dir)
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errors.New(strerror.Text(errno))
	case err != nil:
		return err
	case !st.IsDir():
		return errors.New("Not a directory")
	}
	if err := syscall.Access(dir, 1); err != nil {
		return errors.New("Permission denied")
	}
	return nil
}

// startTask starts a task. If it fails, the task ends with a message and an exit
// code, and startTask returns false.
func (t *tasks) startTask(local int, k *task) bool {
	cmd := &t.launch.Command
	files, err := t.open(local, k)
	if err != nil {
		closeAll(files)
		t.fail(k, err.Error(), 1)
		return false
	}
	environ := t.node.Env(t.launch, t.part, local)
	if t.pmi != nil {
		if files, err = t.connectPMI(k, files); err != nil {
			closeAll(files)
			t.fail(k, err.Error(), 1)
			return false
		}
		environ = append(environ, t.pmiEnv(k)...)
	}
	if t.pmix != nil {
		environ = env.Merge(pmixEnv(environ), t.pmix.env[k.id]...)
	}
	args := cmd.Args
	if cmd.Programs != nil {
		if args = multiprog.Command(cmd.Programs, k.id, cmd.Args[1:]); args == nil {
			args = []string{"no program"} // the coordinator has checked that there is one
		}
	}
	environ = t.bindEnv(t.gpuEnv(k, local, environ))
	var code int
	if environ, code = t.prolog(k, environ); code != 0 {
		closeAll(files)
		t.fail(k, "", code)
		return false
	}
	patterns := t.node.patterns(t.launch, t.part, local)
	if cmd.Libraries {
		environ = withLibraries(environ, patterns.Path(t.dir, cmd.Program)+step.LibrariesSuffix)
	}
	k.env = environ
	path, shown := spawn.Find(args[0], t.dir, environ)
	if path == "" {
		path = shown
	}
	if cmd.Program != "" {
		path = patterns.Path(t.dir, cmd.Program)
		shown = path
	}
	args = append([]string{path}, args[1:]...) // as srun does, for $0
	if cmd.Receive != nil {
		r := *cmd.Receive
		if r.Pattern {
			r.Path = patterns.Path("/", r.Path)
		}
		if description, err := json.Marshal(&r); err == nil {
			path, args = t.node.Helper, []string{t.node.Helper, ReceiveArg, string(description)}
		}
	}
	memory, err := t.memory(local)
	if err != nil {
		closeAll(files)
		t.fail(k, "slurmstepd: error: "+err.Error()+
			"\nslurmstepd: error: Failed to invoke task plugins: task_p_pre_launch error", 1)
		return false
	}
	t.mu.Lock()
	if t.dead {
		err = syscall.EINTR
	} else {
		k.proc, err = t.spawn(&spawn.Spec{
			Path: path, Args: args, Env: environ, Dir: t.dir, Files: files, CPUs: t.mask(local), Memory: memory,
			Rlimits: cmd.Rlimits, Umask: int(cmd.Umask), Helper: t.node.Helper, Terminal: k.terminal != nil,
		})
	}
	t.mu.Unlock()
	closeAll(files)
	if err != nil {
		t.fail(k, spawn.ExecError(shown, err), spawn.ExecCode(err))
		return false
	}
	t.reportBinding(local, k, memory)
	t.wg.Go(func() { t.watch(k) })
	return true
}

// withLibraries adds a directory at the beginning of LD_LIBRARY_PATH.
func withLibraries(environ []string, dir string) []string {
	const name = "LD_LIBRARY_PATH"
	if before, _ := env.Get(environ, name); before != "" {
		dir += ":" + before
	}
	return env.Merge(environ, name+"="+dir)
}

// fail reports a task that could not be started: the line, then the exit code.
func (t *tasks) fail(k *task, line string, code int) {
	if line != "" {
		t.notice(strings.TrimSuffix(line, "\n") + "\n")
	}
	if t.pmi != nil {
		t.pmi.Leave(k.id)
	}
	t.wg.Go(func() { t.finish(k, syscall.WaitStatus(code<<8)) })
}

// watch waits for a task, kills its remaining processes, and reports its end.
func (t *tasks) watch(k *task) {
	status := <-k.proc.Done()
	if t.launch.Command.WaitForChildren {
		t.waitForChildren(k)
	}
	t.mu.Lock()
	k.used = spawn.Usage(k.proc.Used())
	k.ended = true // from now on its pid may belong to another process
	t.mu.Unlock()
	t.node.Spawn.EndSession(k.proc.PID, orphanTimeout)
	t.epilog(k)
	t.finish(k, status)
}

// finish closes the streams of a task and reports its end.
func (t *tasks) finish(k *task, status syscall.WaitStatus) {
	if k.input != nil {
		k.input.close()
	}
	for _, o := range k.out {
		o.finish(orphanTimeout)
	}
	t.mu.Lock()
	k.ended = true
	t.mu.Unlock()
	t.send(step.FrameExit, step.Exit{Tasks: []uint32{k.id}, Status: uint32(status), Used: k.used})
}

// wait waits until all tasks have ended, and kills their remaining processes.
func (t *tasks) wait() {
	t.wg.Wait()
	if t.pmix != nil {
		t.pmix.stop()
	}
	t.mu.Lock()
	if t.killTimer != nil {
		t.killTimer.Stop()
	}
	t.mu.Unlock()
	close(t.over)
	job := fmt.Sprintf("SLURM_JOB_ID=%d", jobID(t.launch))
	stepID := fmt.Sprintf("SLURM_STEP_ID=%d", t.launch.Step.ID)
	self := os.Getpid()
	spawn.KillAll(orphanTimeout, func(p spawn.Proc) bool {
		return p.PPID == self && !t.node.Spawn.Knows(p.PID) && spawn.Owns(p.PID, job, stepID)
	})
}

// down delivers input or a signal.
func (t *tasks) down(f *step.Frame) error {
	if f.Type == step.FrameSignal {
		var s step.Signal
		if err := f.Decode(&s); err != nil {
			return err
		}
		t.signal(&s)
		return nil
	}
	if f.Type == step.FrameWindow {
		return t.resize(f)
	}
	for _, k := range t.tasks {
		if k.input == nil || (f.Task != step.AllTasks && f.Task != k.id) {
			continue
		}
		if f.Type == step.FrameStdinEOF {
			k.input.end()
		} else if err := k.input.add(f.Data); err != nil {
			return err
		}
	}
	return nil
}

// inputClosed reports whether no task reads its input any more.
func (t *tasks) inputClosed() bool {
	return !slices.ContainsFunc(t.tasks, func(k *task) bool { return k.input != nil && !k.input.isClosed() })
}

// resize changes the size of the tasks' terminals.
func (t *tasks) resize(f *step.Frame) error {
	var w step.WindowSize
	if err := f.Decode(&w); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.tasks {
		if k.terminal != nil {
			k.terminal.resize(&w)
		}
	}
	return nil
}

// signal sends a signal to the tasks, or terminates them.
func (t *tasks) signal(s *step.Signal) {
	if !s.Terminate {
		t.signalSessions(syscall.Signal(s.Signal))
		return
	}
	if s.KillWait == step.KillNow {
		t.kill()
		return
	}
	t.signalSessions(syscall.SIGCONT)
	t.signalSessions(syscall.SIGTERM)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dead = true
	if t.killTimer == nil {
		t.killTimer = time.AfterFunc(time.Duration(s.KillWait)*time.Second, t.kill)
	}
}

// signalSessions sends a signal to every process in the sessions of the running
// tasks.
func (t *tasks) signalSessions(sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sessions := map[int]bool{}
	for _, k := range t.tasks {
		if k.proc != nil && !k.ended {
			sessions[k.proc.PID] = true
		}
	}
	if len(sessions) > 0 {
		spawn.Kill(sig, func(p spawn.Proc) bool { return sessions[p.Session] })
	}
}

// kill kills the tasks immediately.
func (t *tasks) kill() {
	t.mu.Lock()
	t.dead = true
	t.mu.Unlock()
	t.signalSessions(syscall.SIGKILL)
}

func (t *tasks) send(typ step.Type, v any) {
	f, err := step.JSON(typ, v)
	if err == nil {
		t.up.Send(f) //nolint:errcheck // the client may be gone; the tree is aborted by its reader
	}
}

// notice sends lines for srun's standard error.
func (t *tasks) notice(text string) {
	_ = t.up.Send(
		&step.Frame{Type: step.FrameNotice, Task: step.AllTasks, Data: []byte(text)},
	) //nolint:errcheck // as in send
}

func closeAll(files []*os.File) {
	for i, f := range files {
		if f != nil && (i == 0 || f != files[i-1]) {
			f.Close()
		}
	}
}
