package processnode

import (
	"io"
	"os"
	"sync"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/processnode/logfile"
)

// streams connects a container's process with its log and with attached clients.
type streams struct {
	childIn, childOut, childErr *os.File // the process's ends; closed by begin

	terminal *os.File // our end of the terminal; nil: none
	out, err *os.File // our ends of pipes; nil with a terminal
	log      *logfile.Log
	copies   sync.WaitGroup

	mu    sync.Mutex
	stdin *os.File // our end of standard input; nil: none or closed
}

func openStreams(c *corev1.Container, log *logfile.Log) (*streams, error) {
	s := &streams{log: log}
	if c.TTY {
		terminal, child, err := pty.Open()
		if err != nil {
			return nil, err
		}
		s.terminal, s.childIn, s.childOut, s.childErr = terminal, child, child, child
		return s, nil
	}
	var err error
	if c.Stdin {
		s.childIn, s.stdin, err = os.Pipe()
	}
	if err == nil {
		s.out, s.childOut, err = os.Pipe()
	}
	if err == nil {
		s.err, s.childErr, err = os.Pipe()
	}
	if err != nil {
		s.abandon()
		return nil, err
	}
	return s, nil
}

// begin starts to copy the output of the process to the log. It is called after the start of
// the process.
func (s *streams) begin() {
	s.closeChild()
	if s.terminal != nil {
		s.copies.Go(func() { _, _ = io.Copy(s.log.Stream("stdout"), s.terminal) })
		return
	}
	s.copies.Go(func() { _, _ = io.Copy(s.log.Stream("stdout"), s.out) })
	s.copies.Go(func() { _, _ = io.Copy(s.log.Stream("stderr"), s.err) })
}

// wait waits until all output of the process is in the log, and closes our ends.
func (s *streams) wait() {
	s.copies.Wait()
	s.abandon()
}

func (s *streams) abandon() {
	s.closeChild()
	s.closeStdin()
	for _, f := range []*os.File{s.terminal, s.out, s.err} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (s *streams) closeChild() {
	for _, f := range []*os.File{s.childIn, s.childOut, s.childErr} {
		if f != nil {
			_ = f.Close() // all three may be the same terminal; closing it again is harmless
		}
	}
	s.childIn, s.childOut, s.childErr = nil, nil, nil
}

func (s *streams) closeStdin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil {
		_ = s.stdin.Close()
		s.stdin = nil
	}
}

// input returns the writer to the standard input of the container, or nil if it has none.
func (s *streams) input() io.Writer {
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
