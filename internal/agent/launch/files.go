package launch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/env"
)

// open opens the standard streams of a task: a terminal, or files and pipes.
func (t *tasks) open(local int, k *task) ([]*os.File, error) {
	switch {
	case t.launch.Command.Terminal == nil:
		return t.files(local, k)
	case k.id == 0:
		return t.openTerminal(k)
	}
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	return []*os.File{f, f, f}, err
}

// files opens the three standard streams of a task. On an error the caller
// closes those that it returns.
func (t *tasks) files(local int, k *task) ([]*os.File, error) {
	cmd := &t.launch.Command
	patterns := t.node.patterns(t.launch, t.part, local)
	stdin, err := t.stdin(k, patterns)
	files := []*os.File{stdin}
	if err != nil {
		return nil, err
	}
	stdout, err := t.sink(k, step.FrameStdout, cmd.Output, patterns)
	if err != nil {
		return files, err
	}
	files = append(files, stdout)
	if cmd.Output != "" && (cmd.Error == "" || cmd.Error == cmd.Output) {
		return append(files, stdout), nil
	}
	stderr, err := t.sink(k, step.FrameStderr, cmd.Error, patterns)
	if err != nil {
		return files, err
	}
	return append(files, stderr), nil
}

func (t *tasks) stdin(k *task, patterns env.PatternValues) (*os.File, error) {
	if k.input == nil {
		path := os.DevNull
		if p := t.launch.Command.Input; p != "" {
			path = patterns.Path(t.dir, p)
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("slurmstepd: error: Could not open stdin file %s: %s", path, strerror.Text(err))
		}
		return f, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if t.launch.Command.Receive != nil {
		// Until the task reads, the pipe holds less than the first piece of its input. A task
		// that has the file already closes its input, and then the client sends no more.
		setPipeSize(w, smallPipe)
		k.input.started = func() { setPipeSize(w, largePipe) }
	}
	k.input.file = w
	go k.input.copy()
	return r, nil
}

// The sizes of a pipe for the contents of a file, in bytes. A kernel permits an unprivileged
// process no more than largePipe.
const (
	smallPipe = 4 << 10
	largePipe = 1 << 20
)

// setPipeSize sets the size of the buffer of a pipe, if the kernel permits it. In a large one, the
// agent and the reader alternate less often.
func setPipeSize(w *os.File, size int) {
	if raw, err := w.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { //nolint:errcheck // best effort
			unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) //nolint:errcheck // best effort
		})
	}
}

// streamNames are the names of the output streams in messages.
var streamNames = map[step.Type]string{step.FrameStdout: "stdout", step.FrameStderr: "stderr"}

// sink opens the file of an output stream, or a pipe whose contents are sent to
// srun.
func (t *tasks) sink(k *task, typ step.Type, pattern string, patterns env.PatternValues) (*os.File, error) {
	if pattern != "" {
		path := patterns.Path(t.dir, pattern)
		flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
		if !t.launch.Command.Append {
			flags |= os.O_TRUNC
		}
		f, err := os.OpenFile(path, flags, 0o666)
		if err != nil {
			return nil, fmt.Errorf(
				"slurmstepd: error: Could not open %s file %s: %s",
				streamNames[typ],
				path,
				strerror.Text(err),
			)
		}
		if !t.launch.Command.Label || pattern == step.DevNull {
			return f, nil
		}
		l := &labeler{file: f}
		for i := range t.launch.Step.Nodes {
			l.tasks += uint32(len(t.launch.Step.Nodes[i].Tasks))
		}
		return t.pipe(k, typ, l)
	}
	return t.pipe(k, typ, t.up)
}

// pipe returns the writing end of a pipe whose contents are sent to up.
func (t *tasks) pipe(k *task, typ step.Type, up Sink) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &output{id: k.id, typ: typ, up: up, raw: t.launch.Command.Raw, file: r, done: make(chan struct{})}
	k.out = append(k.out, o)
	go o.copy()
	return w, nil
}

// labeler writes the lines of a task to a file, each with the task's number at the
// beginning.
type labeler struct {
	file  *os.File
	tasks uint32 // of the step
}

// Send writes the lines of f.
func (l *labeler) Send(f *step.Frame) error {
	_, err := l.file.Write(step.Label(f, l.tasks))
	return err
}
