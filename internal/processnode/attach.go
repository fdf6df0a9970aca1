package processnode

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/berth-hpc/berth/internal/processnode/logfile"
	"github.com/berth-hpc/berth/internal/processnode/stream"
	"github.com/berth-hpc/berth/internal/processnode/task"
)

// Log returns the log of the current run of the container, or of the previous one.
func (c *container) Log(previous bool) (*logfile.Log, error) {
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
		return stream.ExecTerminal(r.task, task.Options{Spec: spec, TTY: true}, in, out, resize)
	}
	return stream.ExecPipes(r.task, task.Options{Spec: spec}, in, out, errOut)
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
	return r.streams.Attach(ctx, in, out, errOut, c.spec.StdinOnce, resize)
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
