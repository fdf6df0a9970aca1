package srun

import (
	"bytes"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/berth-hpc/berth/internal/step"
)

// requestTerminal requests a terminal like that of srun (--pty). As in Slurm, the
// option is ignored if srun has none.
func (r *run) requestTerminal() {
	rows, columns, ok := r.o.p.WindowSize()
	if !ok {
		r.o.printf("error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
		r.o.printf("error: Not using a pseudo-terminal, disregarding --pty option")
		return
	}
	c := &r.req.Command
	c.Terminal = &step.WindowSize{Rows: rows, Columns: columns}
	if columns > 0 { // else its size is not known
		c.Env = append(c.Env, "SLURM_PTY_WIN_COL="+strconv.Itoa(int(columns)))
	}
	if rows > 0 {
		c.Env = append(c.Env, "SLURM_PTY_WIN_ROW="+strconv.Itoa(int(rows)))
	}
}

// rawTerminal switches the user's terminal to raw mode if the step has one of its
// own. restore restores it.
func (r *run) rawTerminal() (restore func()) {
	if r.req.Command.Terminal == nil {
		return func() {}
	}
	restoreMode, err := r.o.p.Raw()
	if err != nil {
		r.o.printf("error: terminal: %v", err)
		return func() {}
	}
	raw := new(atomic.Bool)
	raw.Store(true)
	p := *r.o.p
	p.Err = crlf{p.Err, raw}
	r.o.p = &p
	if r.err.file == nil {
		r.err.w = p.Err
	}
	r.restore = func() {
		restoreMode()
		raw.Store(false)
	}
	return r.restore
}

// crlf is a writer that ends lines with CR LF while the terminal is in raw mode.
type crlf struct {
	w   io.Writer
	raw *atomic.Bool
}

func (c crlf) Write(b []byte) (int, error) {
	if !c.raw.Load() {
		return c.w.Write(b)
	}
	_, err := c.w.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")))
	return len(b), err
}

// resized sends the new size of the terminal. The caller holds all.mu; see
// terminate.
func (r *run) resized() {
	rows, columns, ok := r.o.p.WindowSize()
	if ok && r.req.Command.Terminal != nil {
		size := step.WindowSize{Rows: rows, Columns: columns}
		go r.conn.SendJSON(step.FrameWindow, size) //nolint:errcheck // the reader sees it
	}
}
