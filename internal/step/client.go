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
)

// Dial connects to the agent on this node, which listens at a Unix socket.
func Dial(ctx context.Context, socket string) (*Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to the agent of the job: %w", err)
	}
	return NewClient(c)
}

// NewClient returns the client's end of a connection to an agent. The Conn owns
// the connection.
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

// Handler handles a frame from a step. Follow calls it from one goroutine. The
// frame's data is valid during the call. An error ends Follow.
type Handler func(f *Frame) error

// Follow reads frames until the step is done. It passes acknowledgements of input to in,
// unless that is nil, and other frames to handle. The error is that of handle, or wraps
// ErrLost if the connection broke.
func Follow(conn *Conn, in *Input, handle Handler) error {
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
		if err := handle(f); err != nil {
			return err
		}
	}
}

// Input sends a stream to tasks. It sends no more than they have credit for: each task
// gives credit for the bytes that it acknowledges.
type Input struct {
	// Piece is the number of bytes that Copy sends at most in a frame: MaxData, unless it
	// is set before Copy is called.
	Piece int

	conn   *Conn
	window int

	mu   sync.Mutex
	cond *sync.Cond
	sent uint64
	read map[uint32]uint64 // bytes read by each task whose input is open
}

// NewInput returns the input of the given tasks: all tasks of the step, or one.
// window is the credit of a task: Window or FileWindow.
func NewInput(conn *Conn, tasks []uint32, window int) *Input {
	in := &Input{Piece: MaxData, conn: conn, window: window, read: make(map[uint32]uint64, len(tasks))}
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
		if before, open := in.read[f.Task]; open {
			in.read[f.Task] = before + uint64(n)
		}
	}
	in.cond.Signal()
}

// waitForCredit blocks until every task with open input has credit. It returns
// the number of bytes that may be sent, or 0 if no task reads any more.
func (in *Input) waitForCredit() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.read) > 0 {
		if credit := in.credit(); credit > 0 {
			return credit
		}
		in.cond.Wait()
	}
	return 0
}

// credit returns the credit of the slowest task, which is not positive if that has none. A task
// that has not read anything yet gets only one frame, because it may not want its input. The
// caller holds in.mu.
func (in *Input) credit() int {
	credit := in.window
	for _, n := range in.read {
		window := in.window
		if n == 0 {
			window = min(window, MaxData)
		}
		credit = min(credit, window-int(in.sent-n))
	}
	return credit
}

// Copy sends r to task (or AllTasks) until r ends, no task reads any more, or the
// connection breaks. Errors are not returned: the goroutine that reads from the
// connection gets them.
func (in *Input) Copy(r io.Reader, task uint32) {
	buf := make([]byte, in.Piece)
	for {
		credit := in.waitForCredit()
		if credit == 0 {
			return
		}
		n, err := r.Read(buf[:min(credit, len(buf))])
		if n > 0 {
			in.mu.Lock()
			in.sent += uint64(n)
			in.mu.Unlock()
			if in.conn.Send(&Frame{Type: FrameStdin, Task: task, Data: buf[:n]}) != nil {
				return
			}
		}
		if err != nil {
			_ = in.conn.Send(&Frame{Type: FrameStdinEOF, Task: task})
			return
		}
	}
}

// Label returns the frame's output with the task's number before each line. The number
// is padded to the width of the highest one in a step with the given number of tasks.
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
