package launch

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/step"
)

// input carries what srun sends to a task's standard input. Its queue is
// bounded by the credit that acknowledgements give back.
type input struct {
	id     uint32
	up     Sink
	window int
	file   io.WriteCloser // our end

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

// add queues b, which nobody may change any more.
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

// end says that no more input comes.
func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.eof = true
	in.cond.Signal()
}

// close drops what is queued; the task reads no more.
func (in *input) close() {
	in.mu.Lock()
	was := in.closed
	in.closed = true
	in.queue, in.size = nil, 0
	in.cond.Signal()
	in.mu.Unlock()
	if !was {
		if in.file != nil {
			in.file.Close()
		}
		in.up.Send(&step.Frame{Type: step.FrameStdinClosed, Task: in.id}) //nolint:errcheck // see tasks.send
	}
}

// next waits for a piece of input; nil: there is no more.
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

// copy writes the input into the task's pipe.
func (in *input) copy() {
	for b := in.next(); b != nil; b = in.next() {
		if _, err := in.file.Write(b); err != nil {
			break
		}
		in.mu.Lock()
		in.size = max(in.size-len(b), 0)
		in.mu.Unlock()
		ack := &step.Frame{Type: step.FrameStdinAck, Task: in.id, Data: step.Count(uint32(len(b)))}
		if in.up.Send(ack) != nil {
			break
		}
	}
	in.close()
}

// output carries one stream of a task to srun.
type output struct {
	id   uint32
	typ  step.Type
	up   Sink
	raw  bool
	file *os.File // our end
	done chan struct{}
}

// copy sends what the task writes until its end: as it comes if raw, else in
// whole lines, except for lines longer than a frame.
func (o *output) copy() {
	defer close(o.done)
	defer o.file.Close()
	if l, own := o.up.(*labels); own {
		defer l.file.Close()
	}
	buf := make([]byte, step.MaxData)
	have := 0
	for {
		n, err := o.file.Read(buf[have:])
		have += n
		cut := have
		if !o.raw && have < len(buf) {
			cut = bytes.LastIndexByte(buf[:have], '\n') + 1
		}
		if cut > 0 && !o.send(buf[:cut], 0) {
			return
		}
		have = copy(buf, buf[cut:have])
		if err != nil {
			if have > 0 {
				o.send(buf[:have], step.FlagPartial)
			}
			return
		}
	}
}

// send passes data up. When that fails nobody listens any more: the task's
// next write fails too, as in a broken pipe.
func (o *output) send(data []byte, flags uint8) bool {
	return o.up.Send(&step.Frame{Type: o.typ, Flags: flags, Task: o.id, Data: data}) == nil
}

// finish waits for the stream's end. The processes of the task are dead; one
// that left its session may hold the stream open, for no longer than limit
// without reading being at fault.
func (o *output) finish(limit time.Duration) {
	o.file.SetReadDeadline(time.Now().Add(limit)) //nolint:errcheck // a pipe takes deadlines
	<-o.done
}
