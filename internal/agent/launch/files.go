package launch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/env"
)

// open gives a task its streams: a terminal, or files.
func (t *tasks) open(local int, k *task) ([]*os.File, error) {
	switch {
	case t.launch.Command.Terminal == nil:
		return t.files(local, k)
	case k.id == 0:
		return t.terminal(k)
	}
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	return []*os.File{f, f, f}, err
}

// files opens what becomes a task's three standard streams. On an error the
// caller closes what is there.
func (t *tasks) files(local int, k *task) ([]*os.File, error) {
	cmd := &t.launch.Command
	names := t.node.names(t.launch, t.part, local)
	stdin, err := t.stdin(k, names)
	files := []*os.File{stdin}
	if err != nil {
		return nil, err
	}
	stdout, err := t.sink(k, step.FrameStdout, cmd.Output, names)
	if err != nil {
		return files, err
	}
	files = append(files, stdout)
	if cmd.Output != "" && (cmd.Error == "" || cmd.Error == cmd.Output) {
		return append(files, stdout), nil
	}
	stderr, err := t.sink(k, step.FrameStderr, cmd.Error, names)
	if err != nil {
		return files, err
	}
	return append(files, stderr), nil
}

func (t *tasks) stdin(k *task, names env.Place) (*os.File, error) {
	if k.input == nil {
		path := os.DevNull
		if p := t.launch.Command.Input; p != "" {
			path = names.Path(t.dir, p)
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
		widen(w)
	}
	k.input.file = w
	go k.input.copy()
	return r, nil
}

// wide is how much a pipe through which a file goes may hold, in bytes: as much as
// the kernel lets anybody have.
const wide = 1 << 20

// widen has a pipe hold more, if the kernel lets it: fewer turns between the
// agent and who reads.
func widen(w *os.File) {
	if raw, err := w.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { //nolint:errcheck // best effort
			unix.FcntlInt(fd, unix.F_SETPIPE_SZ, wide) //nolint:errcheck // best effort
		})
	}
}

// streamNames are what messages call the output streams.
var streamNames = map[step.Type]string{step.FrameStdout: "stdout", step.FrameStderr: "stderr"}

// sink opens the file of an output stream, or a pipe that ends at srun.
func (t *tasks) sink(k *task, typ step.Type, pattern string, names env.Place) (*os.File, error) {
	if pattern != "" {
		path := names.Path(t.dir, pattern)
		flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
		if !t.launch.Command.Append {
			flags |= os.O_TRUNC
		}
		f, err := os.OpenFile(path, flags, 0o666)
		if err != nil {
			return nil, fmt.Errorf("slurmstepd: error: Could not open %s file %s: %s", streamNames[typ], path, strerror.Text(err))
		}
		if !t.launch.Command.Label || pattern == step.DevNull {
			return f, nil
		}
		l := &labels{file: f}
		for i := range t.launch.Step.Nodes {
			l.tasks += uint32(len(t.launch.Step.Nodes[i].Tasks))
		}
		return t.pipe(k, typ, l)
	}
	return t.pipe(k, typ, t.up)
}

// pipe makes a pipe for a stream of a task that ends at up.
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

// labels writes a task's lines with the task's number ahead into its file.
type labels struct {
	file  *os.File
	tasks uint32 // of the step
}

// Send writes the lines of f.
func (l *labels) Send(f *step.Frame) error {
	_, err := l.file.Write(step.Label(f, l.tasks))
	return err
}
