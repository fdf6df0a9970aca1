// Package stream connects the standard streams of processes in containers with logs and
// with clients that attach or execute commands.
package stream

import (
	"context"
	"io"
	"os"
	"sync"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/berth-hpc/berth/internal/processnode/logfile"
)

// Streams connects a container's process with its log and with attached clients.
type Streams struct {
	ChildIn, ChildOut, ChildErr *os.File // the process's ends; closed by Begin

	terminal *os.File // our end of the terminal; nil: none
	out, err *os.File // our ends of pipes; nil with a terminal
	log      *logfile.Log
	copies   sync.WaitGroup

	mu    sync.Mutex
	stdin *os.File // our end of standard input; nil: none or closed
}

// Open opens the streams that the container asks for.
func Open(c *corev1.Container, log *logfile.Log) (*Streams, error) {
	s := &Streams{log: log}
	if c.TTY {
		terminal, child, err := pty.Open()
		if err != nil {
			return nil, err
		}
		s.terminal, s.ChildIn, s.ChildOut, s.ChildErr = terminal, child, child, child
		return s, nil
	}
	var err error
	if c.Stdin {
		s.ChildIn, s.stdin, err = os.Pipe()
	}
	if err == nil {
		s.out, s.ChildOut, err = os.Pipe()
	}
	if err == nil {
		s.err, s.ChildErr, err = os.Pipe()
	}
	if err != nil {
		s.Abandon()
		return nil, err
	}
	return s, nil
}

// Begin starts to copy the output of the process to the log. It is called after the start of
// the process.
func (s *Streams) Begin() {
	s.closeChild()
	if s.terminal != nil {
		s.copies.Go(func() { _, _ = io.Copy(s.log.Stream("stdout"), s.terminal) })
		return
	}
	s.copies.Go(func() { _, _ = io.Copy(s.log.Stream("stdout"), s.out) })
	s.copies.Go(func() { _, _ = io.Copy(s.log.Stream("stderr"), s.err) })
}

// Wait waits until all output of the process is in the log, and closes our ends.
func (s *Streams) Wait() {
	s.copies.Wait()
	s.Abandon()
}

// Abandon closes all ends.
func (s *Streams) Abandon() {
	s.closeChild()
	s.closeStdin()
	for _, f := range []*os.File{s.terminal, s.out, s.err} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (s *Streams) closeChild() {
	for _, f := range []*os.File{s.ChildIn, s.ChildOut, s.ChildErr} {
		if f != nil {
			_ = f.Close() // all three may be the same terminal; closing it again is harmless
		}
	}
	s.ChildIn, s.ChildOut, s.ChildErr = nil, nil, nil
}

func (s *Streams) closeStdin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil {
		_ = s.stdin.Close()
		s.stdin = nil
	}
}

// input returns the writer to the standard input of the container, or nil if it has none.
func (s *Streams) input() io.Writer {
	if s.terminal != nil {
		return s.terminal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin == nil {
		return nil
	}
	return s.stdin
}

// Attach connects a client with the streams until the process ends or the client
// disconnects. once: the end of in is the end of the process's input.
func (s *Streams) Attach(
	ctx context.Context, in io.Reader, out, errOut io.WriteCloser, once bool,
	resize <-chan remotecommand.TerminalSize,
) error {
	// This must precede the input, so that no output that responds to it is missed.
	output, err := s.log.Follow()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	if s.terminal != nil {
		go resizeTerminal(s.terminal, resize, done)
	}
	if in != nil && s.input() != nil {
		go func() {
			_, err := io.Copy(s.input(), in)
			if err == nil && once {
				s.closeStdin()
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
