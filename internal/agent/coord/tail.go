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

// tailPause is the time between two reads of a file that is followed.
const tailPause = 200 * time.Millisecond

// SetOutput sets the paths of the batch script's output files; empty: none. It must be
// called once; requests for the files wait for it.
func (c *Coordinator) SetOutput(out, err string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out, c.err = out, err
	close(c.opened)
}

// OutputComplete reports that nothing more will be appended to these files. It
// must be called once.
func (c *Coordinator) OutputComplete() { close(c.written) }

// tail sends an output file of the batch script to the client at conn, and what is appended
// to it until the job ends or the client disconnects.
func (c *Coordinator) tail(conn *step.Conn, f *step.Frame) {
	var t step.Tail
	if f.Decode(&t) != nil {
		return
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, err := conn.Receive(); err != nil {
				return
			}
		}
	}()
	select {
	case <-c.opened:
	case <-gone: // before the script was started
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
		conn.Send(&step.Frame{Type: step.FrameRefused, Data: []byte(err.Error())}) //nolint:errcheck // it may be gone
		conn.Send(&step.Frame{Type: step.FrameDone})                               //nolint:errcheck // it may be gone
		return
	}
	defer file.Close()
	x := &tailer{conn: conn, file: file, path: path, at: -1}
	if c.follow(x, t.Most, gone) {
		conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // the client may be gone
	}
}

// openOutput opens an output file of the batch script.
func openOutput(path string) (*os.File, error) {
	if path == "" {
		return nil, errors.New("the job has no batch script and thus no output file")
	}
	// Opening must not block: the script may have chosen a pipe.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		file.Close()
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return file, nil
}

// follow sends the file and what is appended to it. It returns false if the client has
// disconnected.
func (c *Coordinator) follow(x *tailer, most int64, gone <-chan struct{}) bool {
	tick := time.NewTicker(tailPause)
	defer tick.Stop()
	for last := false; ; {
		if !x.sendNew(most) {
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
	at   int64 // offset up to which it was sent; -1: nothing yet
}

// sendNew sends what was appended since the last call. It returns false if the tail must
// end.
func (x *tailer) sendNew(most int64) bool {
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
