package processnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/creack/pty"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/berth-hpc/berth/internal/processnode/logfile"
	"github.com/berth-hpc/berth/internal/processnode/task"
)

// discardLog discards the errors of the HTTP server: broken connections are normal.
var discardLog = log.New(io.Discard, "", 0)

// logOf returns the log of the current run of the container, or of the previous one.
func (c *container) logOf(previous bool) (*logfile.Log, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if previous {
		if len(c.logs) < 2 {
			return nil, fmt.Errorf("previous terminated container %q in pod %q not found", c.spec.Name, c.p.spec.Name)
		}
		return logfile.Ended(c.logs[0]), nil
	}
	if c.log == nil {
		return nil, fmt.Errorf("container %q in pod %q is waiting to start", c.spec.Name, c.p.spec.Name)
	}
	return c.log, nil
}

func (c *container) now() (*running, error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.process == nil {
		return nil, fmt.Errorf("container %s is not running", c.spec.Name)
	}
	return c.process, nil
}

// ExecInContainer runs a command in the container, as its user, and returns when the
// command has ended and all of its output was forwarded.
func (c *container) ExecInContainer(
	_ context.Context, _, _, _ string, command []string, in io.Reader, out, errOut io.WriteCloser, tty bool,
	resize <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	r, err := c.now()
	if err != nil {
		return err
	}
	spec := c.shimSpec(r.id, r.env, nil)
	spec.Argv = command
	if tty {
		spec.Env = append([]string{"TERM=xterm"}, spec.Env...)
		return c.execTerminal(r, task.Options{Spec: spec, TTY: true}, in, out, resize)
	}
	return c.execPipes(r, task.Options{Spec: spec}, in, out, errOut)
}

func (c *container) execTerminal(
	r *running, o task.Options, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize,
) error {
	terminal, child, err := r.task.Terminal()
	if err != nil {
		return err
	}
	defer terminal.Close()
	o.Stdin, o.Stdout, o.Stderr = child, child, child
	t, err := r.task.Exec(o)
	_ = child.Close()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go resizeTerminal(terminal, resize, done)
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	if out != nil {
		// It ends when the last process has closed the terminal.
		if _, err := io.Copy(out, terminal); isBroken(err) {
			t.KillTree()
		}
	}
	<-t.Done()
	return exitError(t.Result())
}

// isBroken reports whether copying ended for a reason other than the hang-up of the
// terminal, that is because the client has disconnected.
func isBroken(err error) bool {
	var path *os.PathError
	return err != nil && !errors.As(err, &path)
}

func resizeTerminal(terminal *os.File, resize <-chan remotecommand.TerminalSize, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case size, ok := <-resize:
			if !ok {
				return
			}
			_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
		}
	}
}

func (c *container) execPipes(r *running, o task.Options, in io.Reader, out, errOut io.Writer) error {
	var ours, childs []*os.File
	defer func() { closeAll(ours) }()
	var copies sync.WaitGroup
	var begin []func()
	pipe := func(fromChild bool, to io.Writer) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if !fromChild {
			ours, childs = append(ours, w), append(childs, r)
			begin = append(begin, func() {
				go func() { // ends with the client's stream
					_, _ = io.Copy(w, in)
					_ = w.Close()
				}()
			})
			return r, nil
		}
		ours, childs = append(ours, r), append(childs, w)
		begin = append(begin, func() { copies.Go(func() { _, _ = io.Copy(to, r) }) })
		return w, nil
	}
	var err error
	if in != nil {
		o.Stdin, err = pipe(false, nil)
	}
	if out != nil && err == nil {
		o.Stdout, err = pipe(true, out)
	}
	if errOut != nil && err == nil {
		o.Stderr, err = pipe(true, errOut)
	}
	var t *task.Task
	if err == nil {
		t, err = r.task.Exec(o)
	}
	closeAll(childs)
	if err != nil {
		return err
	}
	for _, f := range begin {
		f()
	}
	<-t.Done()
	copies.Wait()
	return exitError(t.Result())
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func exitError(r task.Result) error {
	if r.Code == 0 {
		return nil
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", r.Code), Code: r.Code}
}

// AttachContainer connects a client with the container's streams until the container ends
// or the client disconnects.
func (c *container) AttachContainer(
	ctx context.Context, _, _, _ string, in io.Reader, out, errOut io.WriteCloser, _ bool,
	resize <-chan remotecommand.TerminalSize,
) error {
	r, err := c.now()
	if err != nil {
		return err
	}
	// This must precede the input, so that no output that responds to it is missed.
	output, err := r.streams.log.Follow()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	if r.streams.terminal != nil {
		go resizeTerminal(r.streams.terminal, resize, done)
	}
	if in != nil && r.streams.input() != nil {
		go func() {
			_, err := io.Copy(r.streams.input(), in)
			if err == nil && c.spec.StdinOnce {
				r.streams.closeStdin()
			}
		}()
	}
	return output.Copy(ctx, writerOrNil(out), writerOrNil(errOut))
}

// writerOrNil returns w, or a nil interface if w is nil.
func writerOrNil(w io.WriteCloser) io.Writer {
	if w == nil {
		return nil
	}
	return w
}

// PortForward connects a stream with a port of the pod.
func (p *pod) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	if p.over.Load() || p.net == nil {
		return fmt.Errorf("pod %s is not running", p.spec.Name)
	}
	conn, err := p.net.Dial(ctx, uint16(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(conn, stream)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	})
	_, err = io.Copy(stream, conn)
	_ = stream.Close()
	up.Wait()
	return err
}
