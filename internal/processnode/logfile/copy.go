package logfile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// Options of Copy.
type Options struct {
	Follow     bool
	Tail       int // last lines; negative: all
	Since      time.Time
	Timestamps bool
	Limit      int64 // bytes; 0: none
}

// Copy writes the log's text to out and errOut, and omits a stream whose writer is nil. It
// returns at the end of the log or, with Follow, when the container or ctx ends.
func (l *Log) Copy(ctx context.Context, o Options, out, errOut io.Writer) error {
	c := &copier{log: l, o: o, out: out, err: errOut, left: o.Limit, fresh: true}
	err := c.run(ctx)
	if errors.Is(err, errLimit) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

var errLimit = errors.New("log: limit reached")

// Follower reads what is written to a log after it was opened.
type Follower struct {
	log       *Log
	file      *os.File
	rotations int
}

// Follow returns a reader of everything that is written from now on. It must be called
// before the first input is sent to a container, so that no response is missed.
func (l *Log) Follow() (*Follower, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &Follower{log: l, file: f, rotations: l.rotations}, nil
}

// Copy writes the text to out and errOut, as Log.Copy does, until the container or ctx ends.
// It can be called only once.
func (f *Follower) Copy(ctx context.Context, out, errOut io.Writer) error {
	c := &copier{log: f.log, o: Options{Follow: true}, out: out, err: errOut, fresh: true}
	err := c.read(ctx, f.file, f.rotations)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

type copier struct {
	log      *Log
	o        Options
	out, err io.Writer
	left     int64
	fresh    bool   // at the beginning of a line
	skip     int    // lines still to skip, for Tail
	begun    []byte // the beginning of an incomplete entry
}

func (c *copier) run(ctx context.Context) error {
	if c.o.Tail >= 0 {
		c.skip = max(0, c.count()-c.o.Tail)
	}
	if err := c.old(); err != nil {
		return err
	}
	f, rotations, err := c.log.open()
	if err != nil {
		return err
	}
	return c.read(ctx, f, rotations)
}

// read copies from f, the log file after the given number of rotations, and from later files.
// It closes f.
func (c *copier) read(ctx context.Context, f *os.File, rotations int) error {
	defer func() { f.Close() }()
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		changed, ended, now := c.log.state()
		if err := c.lines(r); err != nil {
			return err
		}
		switch {
		case now != rotations:
			next, t, err := c.log.open()
			if err != nil {
				return err
			}
			f.Close()
			f, rotations = next, t
			r.Reset(f)
			continue
		case ended || !c.o.Follow:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// open opens the current file, and returns the number of rotations so far.
func (l *Log) open() (*os.File, int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.Open(l.path)
	return f, l.rotations, err
}

func (l *Log) state() (changed <-chan struct{}, ended bool, rotations int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed, l.ended, l.rotations
}

// old copies the rotated file.
func (c *copier) old() error {
	f, err := os.Open(c.log.path + Old)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return c.lines(bufio.NewReaderSize(f, 64<<10))
}

// count returns the number of lines that match Since.
func (c *copier) count() int {
	n := 0
	for _, path := range []string{c.log.path + Old, c.log.path} {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		r := bufio.NewReaderSize(f, 64<<10)
		partial := false
		for {
			raw, err := r.ReadBytes('\n')
			if err != nil {
				break
			}
			e, ok := parse(raw)
			if !ok || !c.wanted(e) {
				continue
			}
			if partial = !e.full; e.full {
				n++
			}
		}
		if partial {
			n++
		}
		f.Close()
	}
	return n
}

// lines copies entries until the end of the file, where the writer may be in
// the middle of one.
func (c *copier) lines(r *bufio.Reader) error {
	for {
		raw, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			c.begun = append(c.begun, raw...)
			return nil
		}
		if err != nil {
			return err
		}
		if len(c.begun) > 0 {
			raw, c.begun = append(c.begun, raw...), nil
		}
		e, ok := parse(raw)
		if !ok || !c.wanted(e) {
			continue
		}
		if c.skip > 0 {
			if e.full {
				c.skip--
			}
			continue
		}
		if err := c.emit(e); err != nil {
			return err
		}
	}
}

func (c *copier) wanted(e entry) bool {
	return c.o.Since.IsZero() || !e.time.Before(c.o.Since)
}

func (c *copier) emit(e entry) error {
	w := c.out
	if e.stderr {
		w = c.err
	}
	var b []byte
	if c.o.Timestamps && c.fresh {
		b = append(b, e.stamp...)
		b = append(b, ' ')
	}
	b = append(b, e.text...)
	if e.full {
		b = append(b, '\n')
	}
	c.fresh = e.full
	if w == nil {
		return nil
	}
	if c.o.Limit > 0 {
		if int64(len(b)) > c.left {
			b = b[:c.left]
		}
		c.left -= int64(len(b))
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	if c.o.Limit > 0 && c.left == 0 {
		return errLimit
	}
	return nil
}

type entry struct {
	stamp, text  []byte
	time         time.Time
	stderr, full bool
}

func parse(raw []byte) (entry, bool) {
	parts := bytes.SplitN(bytes.TrimSuffix(raw, []byte{'\n'}), []byte{' '}, 4)
	if len(parts) != 4 {
		return entry{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(parts[0]))
	if err != nil {
		return entry{}, false
	}
	return entry{stamp: parts[0], text: parts[3], time: at, stderr: string(parts[1]) == "stderr",
		full: string(parts[2]) == "F"}, true
}
