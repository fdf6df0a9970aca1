package step

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/berth-hpc/berth/translate/hostlist"
)

// Dial connects to the agent on this node, which listens at a unix socket.
func Dial(ctx context.Context, socket string) (*Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to the agent of the job: %w", err)
	}
	return NewClient(c)
}

// NewClient makes a client's Conn of a connection to an agent, which it owns
// from then on.
func NewClient(c io.ReadWriteCloser) (*Conn, error) {
	conn := NewConn(c)
	if err := conn.SendJSON(FrameOpen, Open{Kind: KindClient}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect to the agent of the job: %w", err)
	}
	return conn, nil
}

// ErrLost means that the connection broke before the step was over.
var ErrLost = errors.New("connection to the job lost")

// Listener takes what comes up from a step. Follow calls it from one goroutine.
// The frame's data is valid during the call. An error ends Follow.
type Listener func(f *Frame) error

// Follow reads frames until the step is done. Input, if not nil, is given the
// acknowledgements.
func Follow(conn *Conn, in *Input, l Listener) error {
	for {
		f, err := conn.Receive()
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrLost, err)
		case f.Type == FrameDone:
			return nil
		case f.Type == FrameStdinAck || f.Type == FrameStdinClosed:
			if in != nil {
				in.acknowledge(f)
			}
			continue
		}
		if err := l(f); err != nil {
			return err
		}
	}
}

// Input sends a stream to tasks as far as they read it.
type Input struct {
	conn   *Conn
	window int

	mu   sync.Mutex
	cond *sync.Cond
	sent uint64
	read map[uint32]uint64 // of the tasks that still read
}

// NewInput makes the input of the given tasks: all that the step has, or one.
// Window is that of the tasks: Window, or FileWindow.
func NewInput(conn *Conn, tasks []uint32, window int) *Input {
	in := &Input{conn: conn, window: window, read: make(map[uint32]uint64, len(tasks))}
	in.cond = sync.NewCond(&in.mu)
	for _, t := range tasks {
		in.read[t] = 0
	}
	return in
}

func (in *Input) acknowledge(f *Frame) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if f.Type == FrameStdinClosed {
		delete(in.read, f.Task)
	} else if n, err := ReadCount(f); err == nil {
		if had, reads := in.read[f.Task]; reads {
			in.read[f.Task] = had + uint64(n)
		}
	}
	in.cond.Signal()
}

// room waits until every task that reads has room for a piece; it returns the
// room, and 0 when no task reads any more.
func (in *Input) room() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.read) > 0 {
		slowest := in.sent
		for _, n := range in.read {
			slowest = min(slowest, n)
		}
		if left := in.window - int(in.sent-slowest); left > 0 {
			return left
		}
		in.cond.Wait()
	}
	return 0
}

// Copy sends r to task (or AllTasks) until its end, or until nobody reads.
func (in *Input) Copy(r io.Reader, task uint32) {
	buf := make([]byte, MaxData)
	for {
		n := in.room()
		if n == 0 {
			return
		}
		k, err := r.Read(buf[:min(n, len(buf))])
		if k > 0 {
			in.mu.Lock()
			in.sent += uint64(k)
			in.mu.Unlock()
			if in.conn.Send(&Frame{Type: FrameStdin, Task: task, Data: buf[:k]}) != nil {
				return
			}
		}
		if err != nil {
			in.conn.Send(&Frame{Type: FrameStdinEOF, Task: task}) //nolint:errcheck // the reader of the connection sees it
			return
		}
	}
}

// Label is the frame's output with the task's number ahead of each line, as
// wide as the highest of so many tasks.
func Label(f *Frame, tasks uint32) []byte {
	prefix := fmt.Sprintf("%*d: ", len(strconv.Itoa(int(tasks)-1)), f.Task)
	var b bytes.Buffer
	for line := range bytes.Lines(f.Data) {
		b.WriteString(prefix)
		b.Write(line)
		if line[len(line)-1] != '\n' {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// Fold writes node names as Slurm does: n[1-3].
func Fold(names []string) string { return hostlist.Fold(names) }
