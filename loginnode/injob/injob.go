// Package injob connects to ports on the loopback interface of a job, which its pod does
// not share: a program in the job connects to the port, and its standard input and
// output carry the connection.
//
// Both carry frames: a length of two bytes, then that many bytes. Length 0 ends one
// direction, and the other continues. The first frame of the output is "+", or "-" and
// the reason why there is no connection.
package injob

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Arg is the first argument with which a program runs Main; the port follows.
const Arg = "connect"

const (
	maxFrame    = 1<<16 - 1
	dialTimeout = 20 * time.Second
	maxReason   = 200
)

// Refused is the reason why the job could not connect.
type Refused string

func (r Refused) Error() string { return string(r) }

// writer writes frames.
type writer struct {
	mu sync.Mutex
	to io.Writer
}

func (w *writer) Write(p []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(p) > 0 {
		k := min(len(p), maxFrame)
		frame := binary.BigEndian.AppendUint16(make([]byte, 0, k+2), uint16(k))
		if _, err := w.to.Write(append(frame, p[:k]...)); err != nil {
			return n, err
		}
		n, p = n+k, p[k:]
	}
	return n, nil
}

func (w *writer) end() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write([]byte{0, 0})
	return err
}

// reader reads frames. It returns io.EOF only at the end of the direction.
type reader struct {
	from *bufio.Reader
	left int
	over bool
}

func (r *reader) Read(p []byte) (int, error) {
	if r.over {
		return 0, io.EOF
	}
	if r.left == 0 {
		var head [2]byte
		if _, err := io.ReadFull(r.from, head[:]); err != nil {
			return 0, broken(err)
		}
		if r.left = int(binary.BigEndian.Uint16(head[:])); r.left == 0 {
			r.over = true
			return 0, io.EOF
		}
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, broken(err)
}

func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Stream is a connection through a program in a job.
type Stream struct {
	r     *reader
	w     writer
	close func()
}

// Read implements io.Reader.
func (s *Stream) Read(p []byte) (int, error) { return s.r.Read(p) }

// Write implements io.Writer.
func (s *Stream) Write(p []byte) (int, error) { return s.w.Write(p) }

// CloseWrite ends one direction.
func (s *Stream) CloseWrite() error { return s.w.end() }

// Close ends the program in the job.
func (s *Stream) Close() error { s.close(); return nil }

// Join returns a connection that uses the output and input of a program that runs Main.
// It closes them with end, also if it fails or ctx is done before the program has
// connected; then it returns an error, a Refused if the job could not connect.
func Join(ctx context.Context, out io.Reader, in io.Writer, end func()) (*Stream, error) {
	s := &Stream{r: &reader{from: bufio.NewReader(out)}, w: writer{to: in}, close: sync.OnceFunc(end)}
	stop := context.AfterFunc(ctx, s.close)
	answer := make([]byte, 1)
	_, err := io.ReadFull(s.r, answer)
	if err == nil && string(answer) == "-" {
		reason := make([]byte, min(s.r.left, maxReason))
		_, err = io.ReadFull(s.r, reason)
		err = errors.Join(err, Refused(reason))
	} else if err == nil && (string(answer) != "+" || s.r.left > 0) {
		err = errors.New("the response is not that of the program that connects")
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("in the job: %w", err)
	}
	return s, nil
}

// Main connects to a port on the loopback interface of its pod, and relays the
// connection. It returns an exit code.
func Main(args []string, in io.Reader, out io.Writer) int {
	w := &writer{to: out}
	if len(args) != 1 {
		return 2
	}
	c, err := net.DialTimeout("tcp", net.JoinHostPort("localhost", args[0]), dialTimeout)
	if err != nil {
		_, _ = w.Write([]byte("-" + reason(err)))
		return 1
	}
	conn := c.(*net.TCPConn)
	defer func() { _ = conn.Close() }()
	if _, err := w.Write([]byte("+")); err != nil {
		return 1
	}
	ended := make(chan bool, 2)
	go func() {
		_, err := io.Copy(conn, &reader{from: bufio.NewReader(in)})
		if err == nil {
			err = conn.CloseWrite()
		}
		ended <- err == nil
	}()
	go func() {
		_, err := io.Copy(w, conn)
		ended <- err == nil && w.end() == nil
	}()
	for range 2 {
		if !<-ended {
			return 1 // the other end is gone
		}
	}
	return 0
}

// reason returns the system's text of a network error.
func reason(err error) string {
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		err = sys.Err
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text[:min(len(text), maxReason)]
}
