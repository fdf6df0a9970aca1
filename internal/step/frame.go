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

// Type is the type of a Frame.
type Type uint8

// Types of frames. Those of the first two groups travel from srun towards the tasks,
// those of the third from the tasks towards srun.
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
	FrameRelease   Type = 10 // Fence: a fence has ended, with what all tasks have put
	FramePMIx      Type = 11 // PMIxJob, the first frame to a PMIx server
	FrameCollected Type = 12 // Collective: a PMIx fence has ended, with the data of all nodes
	FrameModex     Type = 13 // Modex, for the node of the frame's task; goes in both directions

	FrameSample Type = 14 // empty: requests FrameSamples; FlagGPUs includes the load of GPUs
	FrameTail   Type = 15 // Tail, in place of a Request
	FrameJoin   Type = 48 // Join: starts a step that is part of a larger one

	FrameCreated     Type = 16 // Created
	FrameWaiting     Type = 17 // text: why the step is pending
	FrameRefused     Type = 18 // text: why the step is refused; the flags are srun's exit code, 0 means 1
	FrameStarted     Type = 19 // Started
	FrameStdout      Type = 20 // bytes of one task
	FrameStderr      Type = 21
	FrameExit        Type = 22 // Exit
	FrameStdinAck    Type = 23 // a count of bytes (4 bytes, big endian) that a task has read
	FrameStdinClosed Type = 24 // a task has closed its input
	FrameNotice      Type = 25 // lines for srun's standard error
	FrameNodeLost    Type = 26 // NodeLost
	FrameAborted     Type = 27 // Aborted: the step is being ended
	FrameDone        Type = 28 // the last frame
	FrameFence       Type = 29 // Fence: all tasks of the subtree have reached a fence
	FrameAbort       Type = 30 // text: a task aborts the step
	FramePMIxReady   Type = 31 // PMIxReady, the response to a PMIxJob
	FrameCollect     Type = 32 // Collective: the data of some nodes for a PMIx fence
	FrameSamples     Type = 33 // []TaskSample: what the tasks of one node use
	FrameUsage       Type = 34 // Usage: the response to a Query, for one step
	FrameTailStart   Type = 35 // TailStart: precedes the contents, in FrameStdout
	FrameResumable   Type = 36 // Resumable
)

// AllTasks in Frame.Task means every task of the step.
const AllTasks uint32 = 0xffffffff

// Limits of a frame's payload, in bytes. Launch and Request carry an
// environment; nothing else is large. A client sends more than MaxData of input
// only to an agent that says so in Created, because older ones refuse it.
const (
	MaxData    = 64 << 10
	MaxInput   = 256 << 10
	MaxMessage = 1 << 20
	MaxLaunch  = 32 << 20
)

// Window is the number of bytes of input that may be in flight to a task:
// sent, and not yet read by it. FileWindow is that of a task that writes its
// input to a file; a node has one at a time.
const (
	Window     = 64 << 10
	FileWindow = 4 << 20
)

// headerSize is the size of type, flags, task and length.
const headerSize = 10

// FlagPartial marks output whose last line has no newline because the task's
// stream ended there.
const FlagPartial uint8 = 1

// FlagGPUs on FrameSample requests the load of the GPUs as well.
const FlagGPUs uint8 = 1

// ErrFrame is wrapped by errors about malformed frames.
var ErrFrame = errors.New("malformed frame")

// Frame is one message. The Data of a received frame is valid until the next
// Receive on the same Conn.
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

// limit returns the maximum payload of a type, or 0 if the type is unknown.
func limit(t Type) uint32 {
	switch t {
	case FrameRequest, FrameLaunch, FrameFence, FrameRelease, FramePMIx, FramePMIxReady, FrameJoin:
		return MaxLaunch
	case FrameCollect, FrameCollected, FrameModex:
		return MaxModex
	case FrameStdin:
		return MaxInput
	case FrameStdout, FrameStderr:
		return MaxData
	case FrameStdinEOF, FrameStdinAck, FrameStdinClosed, FrameDone, FrameSample:
		return 16
	case FrameOpen, FrameSignal, FrameWindow, FrameAttach, FrameQuery, FrameCreated, FrameWaiting, FrameRefused,
		FrameStarted, FrameExit, FrameNotice, FrameNodeLost, FrameAborted, FrameAbort, FrameSamples, FrameUsage,
		FrameTail, FrameTailStart, FrameResumable:
		return MaxMessage
	}
	return 0
}

// Conn sends and receives frames. Send is safe for concurrent use and blocks
// while the other side does not read. Receive may be called by one goroutine at
// a time.
type Conn struct {
	r   *bufio.Reader
	buf []byte

	mu  sync.Mutex
	w   *bufio.Writer
	err error

	c io.ReadWriteCloser
}

// NewConn returns a Conn that owns the given connection.
func NewConn(c io.ReadWriteCloser) *Conn {
	return &Conn{r: bufio.NewReaderSize(c, 32<<10), w: bufio.NewWriterSize(c, 80<<10), c: c}
}

// Raw returns the underlying connection, for another protocol that follows. Its
// bytes must be read from r, which has buffered some. The Conn must no longer be
// used.
func (c *Conn) Raw() (conn io.ReadWriteCloser, r io.Reader) { return c.c, c.r }

// Close ends the connection; blocked calls return.
func (c *Conn) Close() error { return c.c.Close() }

// Broken reports whether the other side has closed the connection, or has sent something
// although nothing is expected to arrive. It reports false for connections other than TLS
// over a socket.
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

// Send writes one frame. After a write has failed, every call returns that error. A frame
// with too much data is refused with an ErrFrame, and the connection stays usable.
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

// SendJSON sends v as a frame of type t.
func (c *Conn) SendJSON(t Type, v any) error {
	f, err := JSON(t, v)
	if err != nil {
		return err
	}
	return c.Send(f)
}

// JSON returns a frame of type t that contains v.
func JSON(t Type, v any) (*Frame, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode frame %d: %w", t, err)
	}
	return &Frame{Type: t, Task: AllTasks, Data: b}, nil
}

// Receive reads the next frame. The next call overwrites its data. The error is io.EOF if
// the connection ended between two frames, and wraps ErrFrame for a malformed frame.
func (c *Conn) Receive() (*Frame, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(c.r, h[:]); err != nil {
		return nil, err
	}
	f := &Frame{Type: Type(h[0]), Flags: h[1], Task: binary.BigEndian.Uint32(h[2:])}
	n := binary.BigEndian.Uint32(h[6:])
	most := limit(f.Type)
	if most == 0 || n > most {
		return nil, fmt.Errorf("%w: type %d with %d bytes", ErrFrame, f.Type, n)
	}
	if n > MaxInput {
		f.Data = make([]byte, 0, MaxData)
		return f, c.readLarge(f, n)
	}
	if uint32(cap(c.buf)) < n {
		c.buf = make([]byte, max(n, MaxData))
	}
	f.Data = c.buf[:n]
	if _, err := io.ReadFull(c.r, f.Data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return f, nil
}

// readLarge reads a payload in pieces, so that memory is allocated only for
// bytes that have arrived.
func (c *Conn) readLarge(f *Frame, n uint32) error {
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

// Expect reads the next frame and decodes it into v. The error wraps ErrFrame if the frame
// is not of type t.
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

// Count returns the payload of a FrameStdinAck for n bytes.
func Count(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// ReadCount returns the number of bytes in a FrameStdinAck.
func ReadCount(f *Frame) (uint32, error) {
	if len(f.Data) != 4 {
		return 0, fmt.Errorf("%w: count of %d bytes", ErrFrame, len(f.Data))
	}
	return binary.BigEndian.Uint32(f.Data), nil
}
