package coord

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/step"
)

// lookPause is the time between two looks at a file that is followed.
const lookPause = 200 * time.Millisecond

// Writes says which files the batch script writes to; empty: none.
func (c *Coordinator) Writes(out, err string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out, c.err = out, err
}

// Written says that nothing is added to these files any more. It is called
// once.
func (c *Coordinator) Written() { close(c.written) }

// tail sends the client at conn a file of the batch script, and what is added
// to it until the job is over or the client is gone.
func (c *Coordinator) tail(conn *step.Conn, f *step.Frame) {
	var t step.Tail
	if f.Decode(&t) != nil {
		return
	}
	c.mu.Lock()
	path := c.out
	if t.Errors {
		path = c.err
	}
	c.mu.Unlock()
	file, err := openOutput(path)
	if err != nil {
		conn.Send(&step.Frame{Type: step.FrameRefused, Data: []byte(err.Error())}) //nolint:errcheck // as it goes
		conn.Send(&step.Frame{Type: step.FrameDone})                               //nolint:errcheck // as it goes
		return
	}
	defer file.Close()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, err := conn.Receive(); err != nil {
				return
			}
		}
	}()
	x := &tailer{conn: conn, file: file, path: path, at: -1}
	if c.follow(x, t.Most, gone) {
		conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // as it goes
	}
}

// openOutput opens a file that the batch script writes to.
func openOutput(path string) (*os.File, error) {
	if path == "" {
		return nil, errors.New("the job has no batch script, so it writes no such file")
	}
	// Without waiting: the script may have chosen a pipe.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		file.Close()
		return nil, fmt.Errorf("%s is no file that can be read again", path)
	}
	return file, nil
}

// follow sends what is there and what comes; false: the client is gone.
func (c *Coordinator) follow(x *tailer, most int64, gone <-chan struct{}) bool {
	tick := time.NewTicker(lookPause)
	defer tick.Stop()
	for last := false; ; {
		if !x.look(most) {
			return false
		}
		if last {
			return true
		}
		select {
		case <-tick.C:
		case <-c.written:
			last = true
		case <-gone:
			return false
		}
	}
}

// tailer sends a growing file.
type tailer struct {
	conn *step.Conn
	file *os.File
	path string
	at   int64 // what was sent; -1: nothing yet
}

// look sends what is new; false: it is no use to go on.
func (x *tailer) look(most int64) bool {
	st, err := x.file.Stat()
	if err != nil {
		return false
	}
	if size := st.Size(); x.at < 0 || size < x.at {
		x.at = 0
		if most > 0 {
			x.at = max(0, size-most)
		}
		if x.conn.SendJSON(step.FrameTailStart, &step.TailStart{Path: x.path, From: x.at}) != nil {
			return false
		}
	}
	buf := make([]byte, step.MaxData)
	for {
		n, err := x.file.ReadAt(buf, x.at)
		if n > 0 && x.conn.Send(&step.Frame{Type: step.FrameStdout, Data: buf[:n]}) != nil {
			return false
		}
		x.at += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			return true
		case err != nil:
			return false
		}
	}
}
