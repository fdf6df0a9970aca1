package step

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
)

// Type says what a Frame is.
type Type uint8

// Frames. Those of the first group go down, from srun to the tasks; those of
// the second go up.
const (
	FrameOpen      Type = 1 // Open, the first on every connection
	FrameRequest   Type = 2 // Request, the second of KindClient
	FrameLaunch    Type = 3 // Launch, the second of KindLaunch
	FrameStdin     Type = 4 // bytes for one task, or for all
	FrameStdinEOF  Type = 5
	FrameSignal    Type = 6  // Signal
	FrameWindow    Type = 7  // WindowSize
	FrameAttach    Type = 8  // Attach, in place of a Request
	FrameQuery     Type = 9  // Query, in place of a Request
	FrameRelease   Type = 10 // Fence: the end of a fence, with what all have put
	FramePMIx      Type = 11 // PMIxJob, the first to a PMIx server
	FrameCollected Type = 12 // Collective: the end of a PMIx fence, with what all gave
	FrameModex     Type = 13 // Modex, for the node of the frame's task; goes both ways

	FrameSample Type = 14 // nothing: FrameSampled is wanted; with FlagGPUs also what GPUs do
	FrameTail   Type = 15 // Tail, in place of a Request
	FrameJoin   Type = 48 // Join: starts a step that is a part of a larger one

	FrameCreated     Type = 16 // Created
	FrameWaiting     Type = 17 // text: why the step does not start yet
	FrameRefused     Type = 18 // text: why there will be no step; the flags are srun's exit code, 0 for 1
	FrameStarted     Type = 19 // Started
	FrameStdout      Type = 20 // bytes of one task
	FrameStderr      Type = 21
	FrameExit        Type = 22 // Exit
	FrameStdinAck    Type = 23 // a count of bytes (4 bytes, big endian) that a task has read
	FrameStdinClosed Type = 24 // a task reads no more
	FrameNotice      Type = 25 // lines for srun's standard error, as they are
	FrameNodeLost    Type = 26 // NodeLost
	FrameAborted     Type = 27 // Aborted: the step is being ended
	FrameDone        Type = 28 // nothing comes after this
	FrameFence       Type = 29 // Fence: all tasks below wait at a fence
	FrameAbort       Type = 30 // text: a task wants the step to end
	FramePMIxReady   Type = 31 // PMIxReady, the answer to a PMIxJob
	FrameCollect     Type = 32 // Collective: a part of a PMIx fence
	FrameSampled     Type = 33 // []Sampled: what tasks of one node use now
	FrameUsage       Type = 34 // Usage: the answer to a Query, for one step
	FrameTailed      Type = 35 // Tailed: what the FrameStdouts after it are
	FrameLasting     Type = 36 // Lasting
)

// AllTasks in Frame.Task means every task of the step.
const AllTasks uint32 = 0xffffffff

// Limits of a frame's payload, in bytes. Launch and Request carry an
// environment; nothing else is large.
const (
	MaxData    = 64 << 10
	MaxMessage = 1 << 20
	MaxLaunch  = 32 << 20
)

// Window is how many bytes of input a task may have been sent and not read;
// FileWindow the same of a task that makes a file of it, of which a node has
// one.
const (
	Window     = 64 << 10
	FileWindow = 4 << 20
)

// headerSize is type, flags, task, length.
const headerSize = 10

// FlagPartial on output: the last line of the frame has no newline because the
// task's stream ended there.
const FlagPartial uint8 = 1

// FlagGPUs on FrameSample: what the GPUs do is wanted, too.
const FlagGPUs uint8 = 1

// ErrFrame is wrapped by errors about bytes that are no frame.
var ErrFrame = errors.New("malformed frame")

// Frame is one message. Data of a frame that was read is valid until the next
// read from the same Conn.
type Frame struct {
	Type  Type
	Flags uint8
	Task  uint32
	Data  []byte
}

// Decode reads the frame's JSON into v.
func (f *Frame) Decode(v any) error {
	if err := json.Unmarshal(f.Data, v); err != nil {
		return fmt.Errorf("%w: type %d: %w", ErrFrame, f.Type, err)
	}
	return nil
}

// limit is the longest payload of a type; 0: unknown type.
func limit(t Type) uint32 {
	switch t {
	case FrameRequest, FrameLaunch, FrameFence, FrameRelease, FramePMIx, FramePMIxReady, FrameJoin:
		return MaxLaunch
	case FrameCollect, FrameCollected, FrameModex:
		return MaxModex
	case FrameStdin, FrameStdout, FrameStderr:
		return MaxData
	case FrameStdinEOF, FrameStdinAck, FrameStdinClosed, FrameDone, FrameSample:
		return 16
	case FrameOpen, FrameSignal, FrameWindow, FrameAttach, FrameQuery, FrameCreated, FrameWaiting, FrameRefused, FrameStarted, FrameExit,
		FrameNotice, FrameNodeLost, FrameAborted, FrameAbort, FrameSampled, FrameUsage, FrameTail, FrameTailed, FrameLasting:
		return MaxMessage
	}
	return 0
}

// Conn sends and receives frames. Send is safe for concurrent use; Receive is
// for one goroutine. Send blocks while the other side does not read.
type Conn struct {
	r   *bufio.Reader
	buf []byte

	mu  sync.Mutex
	w   *bufio.Writer
	err error

	c io.ReadWriteCloser
}

// NewConn makes a Conn of a connection, which it owns from then on.
func NewConn(c io.ReadWriteCloser) *Conn {
	return &Conn{r: bufio.NewReaderSize(c, 32<<10), w: bufio.NewWriterSize(c, 80<<10), c: c}
}

// Raw is the connection, for another protocol that follows. What has come is
// read from r. The Conn must not be used any more.
func (c *Conn) Raw() (conn io.ReadWriteCloser, r io.Reader) { return c.c, c.r }

// Close ends the connection; blocked calls return.
func (c *Conn) Close() error { return c.c.Close() }

// Broken tells, of a connection on which nothing is to come, whether the other
// side has closed it.
func (c *Conn) Broken() bool {
	t, ok := c.c.(interface{ NetConn() net.Conn })
	if !ok {
		return false
	}
	s, ok := t.NetConn().(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true
	}
	broken := true
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		broken = !errors.Is(err, syscall.EAGAIN)
	})
	return broken || err != nil
}

// Send writes one frame. After the first error every call fails.
func (c *Conn) Send(f *Frame) error {
	if n := limit(f.Type); uint64(len(f.Data)) > uint64(n) {
		return fmt.Errorf("%w: %d bytes are too many for type %d", ErrFrame, len(f.Data), f.Type)
	}
	var h [headerSize]byte
	h[0], h[1] = byte(f.Type), f.Flags
	binary.BigEndian.PutUint32(h[2:], f.Task)
	binary.BigEndian.PutUint32(h[6:], uint32(len(f.Data)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = c.write(h[:], f.Data)
	}
	return c.err
}

func (c *Conn) write(header, data []byte) error {
	if _, err := c.w.Write(header); err != nil {
		return err
	}
	if _, err := c.w.Write(data); err != nil {
		return err
	}
	return c.w.Flush()
}

// SendJSON writes a frame with a message.
func (c *Conn) SendJSON(t Type, v any) error {
	f, err := JSON(t, v)
	if err != nil {
		return err
	}
	return c.Send(f)
}

// JSON makes a frame with a message.
func JSON(t Type, v any) (*Frame, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode frame %d: %w", t, err)
	}
	return &Frame{Type: t, Task: AllTasks, Data: b}, nil
}

// Receive reads the next frame. Its data is overwritten by the next call. The
// error is io.EOF where the connection ends between frames.
func (c *Conn) Receive() (*Frame, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(c.r, h[:]); err != nil {
		return nil, err
	}
	f := &Frame{Type: Type(h[0]), Flags: h[1], Task: binary.BigEndian.Uint32(h[2:])}
	n := binary.BigEndian.Uint32(h[6:])
	max := limit(f.Type)
	if max == 0 || n > max {
		return nil, fmt.Errorf("%w: type %d with %d bytes", ErrFrame, f.Type, n)
	}
	if n > MaxData {
		f.Data = make([]byte, 0, MaxData)
		return f, c.large(f, n)
	}
	if uint32(cap(c.buf)) < n {
		c.buf = make([]byte, MaxData)
	}
	f.Data = c.buf[:n]
	if _, err := io.ReadFull(c.r, f.Data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return f, nil
}

// large reads a payload piece by piece, so that a length alone makes nobody
// allocate it.
func (c *Conn) large(f *Frame, n uint32) error {
	piece := make([]byte, MaxData)
	for left := n; left > 0; {
		k := min(left, MaxData)
		if _, err := io.ReadFull(c.r, piece[:k]); err != nil {
			return fmt.Errorf("%w: %w", ErrFrame, err)
		}
		f.Data = append(f.Data, piece[:k]...)
		left -= k
	}
	return nil
}

// Expect reads the next frame, which must be a message of type t, into v.
func (c *Conn) Expect(t Type, v any) error {
	f, err := c.Receive()
	if err != nil {
		return err
	}
	if f.Type != t {
		return fmt.Errorf("%w: type %d in place of %d", ErrFrame, f.Type, t)
	}
	return f.Decode(v)
}

// Count is the payload of a FrameStdinAck.
func Count(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// ReadCount reads the payload of a FrameStdinAck.
func ReadCount(f *Frame) (uint32, error) {
	if len(f.Data) != 4 {
		return 0, fmt.Errorf("%w: count of %d bytes", ErrFrame, len(f.Data))
	}
	return binary.BigEndian.Uint32(f.Data), nil
}
