package srun

import (
	"bytes"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/berth-hpc/berth/internal/step"
)

// askTerminal asks for a terminal like srun's own (--pty). As with Slurm's
// srun the option is dropped where there is none.
func (r *run) askTerminal() {
	rows, columns, ok := r.o.p.WindowSize()
	if !ok {
		r.o.say("error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device")
		r.o.say("error: Not using a pseudo-terminal, disregarding --pty option")
		return
	}
	c := &r.req.Command
	c.Terminal = &step.WindowSize{Rows: rows, Columns: columns}
	c.Env = append(c.Env, "SLURM_PTY_WIN_COL="+strconv.Itoa(int(columns)), "SLURM_PTY_WIN_ROW="+strconv.Itoa(int(rows)))
}

// terminal has the user's terminal pass everything on while the step has one
// of its own; the function that it returns puts it back.
func (r *run) terminal() (restore func()) {
	if r.req.Command.Terminal == nil {
		return func() {}
	}
	put, err := r.o.p.Raw()
	if err != nil {
		r.o.say("error: terminal: %v", err)
	}
	if err != nil {
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
		put()
		raw.Store(false)
	}
	return r.restore
}

// crlf ends lines as a raw terminal needs them.
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

// resized passes the new size of the terminal on. all.mu is held; see end.
func (r *run) resized() {
	rows, columns, ok := r.o.p.WindowSize()
	if ok && r.req.Command.Terminal != nil {
		size := step.WindowSize{Rows: rows, Columns: columns}
		go r.conn.SendJSON(step.FrameWindow, size) //nolint:errcheck // the reader sees it
	}
}
