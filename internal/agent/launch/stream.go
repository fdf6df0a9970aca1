package launch

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/step"
)

// input forwards data from srun to the standard input of a task. Its queue is
// limited by the credit that acknowledgements return.
type input struct {
	id     uint32
	up     Sink
	window int
	file   io.WriteCloser // our end
	// started is called when the task has read the first piece; nil: nothing is.
	started func()

	mu     sync.Mutex
	cond   *sync.Cond
	queue  [][]byte
	size   int
	eof    bool
	closed bool
}

func newInput(id uint32, up Sink, window int) *input {
	in := &input{id: id, up: up, window: window}
	in.cond = sync.NewCond(&in.mu)
	return in
}

// add queues b, which must not be changed afterwards.
func (in *input) add(b []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil
	}
	if in.size+len(b) > in.window {
		return ErrCredit
	}
	in.size += len(b)
	in.queue = append(in.queue, b)
	in.cond.Signal()
	return nil
}

// end marks the end of the input.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.eof = true
	in.cond.Signal()
}

// close discards what is queued, because the task no longer reads.
func (in *input) close() {
	in.mu.Lock()
	wasClosed := in.closed
	in.closed = true
	in.queue, in.size = nil, 0
	in.cond.Signal()
	in.mu.Unlock()
	if !wasClosed {
		if in.file != nil {
			in.file.Close()
		}
		in.up.Send(&step.Frame{Type: step.FrameStdinClosed, Task: in.id}) //nolint:errcheck // see tasks.send
	}
}

// isClosed reports whether the task no longer reads.
func (in *input) isClosed() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.closed
}

// next waits for a piece of input. It returns nil at the end.
func (in *input) next() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.queue) == 0 && !in.eof && !in.closed {
		in.cond.Wait()
	}
	if in.closed || len(in.queue) == 0 {
		return nil
	}
	b := in.queue[0]
	in.queue = in.queue[1:]
	return b
}

// ackPart is the part of the window after which what was read is acknowledged. The sender has
// credit for the rest of it, so it never waits for an acknowledgement that is held back.
const ackPart = 8

// copy writes the input into the task's pipe. The first piece is acknowledged alone, because the
// sender waits for it.
func (in *input) copy() {
	read, most := 0, 0
	for b := in.next(); b != nil; b = in.next() {
		if _, err := in.file.Write(b); err != nil {
			break
		}
		in.mu.Lock()
		in.size = max(in.size-len(b), 0)
		in.mu.Unlock()
		if read += len(b); read < most {
			continue
		}
		ack := &step.Frame{Type: step.FrameStdinAck, Task: in.id, Data: step.Count(uint32(read))}
		if in.up.Send(ack) != nil {
			break
		}
		if most == 0 && in.started != nil {
			in.started()
		}
		read, most = 0, in.window/ackPart
	}
	in.close()
}

// output forwards one output stream of a task to srun.
type output struct {
	id   uint32
	typ  step.Type
	up   Sink
	raw  bool
	file *os.File // our end
	done chan struct{}
}

// copy sends the output of the task until the end of the stream: as it is written if raw,
// otherwise in complete lines, except for lines longer than a frame.
func (o *output) copy() {
	defer close(o.done)
	defer o.file.Close()
	if l, ok := o.up.(*labeler); ok {
		defer l.file.Close()
	}
	buf := make([]byte, step.MaxData)
	filled := 0
	for {
		n, err := o.file.Read(buf[filled:])
		filled += n
		complete := filled
		if !o.raw && filled < len(buf) {
			complete = bytes.LastIndexByte(buf[:filled], '\n') + 1
		}
		if complete > 0 && !o.send(buf[:complete], 0) {
			return
		}
		filled = copy(buf, buf[complete:filled])
		if err != nil {
			if filled > 0 {
				o.send(buf[:filled], step.FlagPartial)
			}
			return
		}
	}
}

// send sends data up. If that fails, the client has disconnected, and the task's next write
// fails too, as with a broken pipe.
func (o *output) send(data []byte, flags uint8) bool {
	return o.up.Send(&step.Frame{Type: o.typ, Flags: flags, Task: o.id, Data: data}) == nil
}

// finish waits for the end of the stream, at most for the given time. The task has ended,
// but a process that left its session may keep the stream open.
func (o *output) finish(timeout time.Duration) {
	o.file.SetReadDeadline(time.Now().Add(timeout)) //nolint:errcheck // pipes support deadlines
	<-o.done
}
