package output

import (
	"bytes"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/berth-hpc/berth/tui/data"
)

// Bounds of what is kept of a file.
const (
	mostBytes = 10 << 20 // of lines
	chunk     = 256 << 10
	mostLine  = 64 << 10 // a longer line is broken
)

// ring is the last lines of a file.
type ring struct {
	lines []string
	times []time.Time // when each came; zero: it was there before
	size  int
	part  []byte // the last line, which has no end yet
	cut   bool   // lines were dropped
}

func (r *ring) add(text []byte, at time.Time) {
	r.part = append(r.part, text...)
	for {
		end := bytes.IndexByte(r.part, '\n')
		if end < 0 && len(r.part) < mostLine {
			break
		}
		if end < 0 || end > mostLine {
			r.push(string(r.part[:mostLine]), at)
			r.part = r.part[mostLine:]
			continue
		}
		r.push(string(r.part[:end]), at)
		r.part = r.part[end+1:]
	}
	r.part = bytes.Clone(r.part)
}

func (r *ring) push(line string, at time.Time) {
	r.lines, r.times = append(r.lines, line), append(r.times, at)
	r.size += len(line) + 1
	drop := 0
	for r.size > mostBytes && drop < len(r.lines)-1 {
		r.size -= len(r.lines[drop]) + 1
		drop++
	}
	if drop > 0 {
		r.lines, r.times, r.cut = r.lines[drop:], r.times[drop:], true
	}
}

// reset forgets everything.
func (r *ring) reset() { *r = ring{} }

// clean is a line as it may be shown: what a progress bar has drawn last,
// without colours, with tabs as spaces.
func clean(line string) string {
	line = strings.TrimRight(line, "\r")
	if at := strings.LastIndexByte(line, '\r'); at >= 0 {
		line = line[at+1:]
	}
	line = ansi.Strip(line)
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	column := 0
	for _, r := range line {
		if r == '\t' {
			n := 8 - column%8
			b.WriteString(strings.Repeat(" ", n))
			column += n
			continue
		}
		b.WriteRune(r)
		column++
	}
	return b.String()
}

// tail reads what was added to a file.
type tail struct {
	open func(string) (data.File, error)
	path string
	file data.File
	at   int64
}

// piece is what one look at the file has brought.
type piece struct {
	text  []byte
	fresh bool // the file is another one, or was cut: forget what was read
	more  bool // there is more to be read at once
	first bool // it was there before anybody looked
	late  bool // the beginning of the file was left out
	err   error
}

// look reads the next piece.
func (t *tail) look() piece {
	p := piece{}
	if t.file != nil && t.file.Replaced() {
		t.shut()
	}
	if t.file == nil {
		f, err := t.open(t.path)
		if err != nil {
			return piece{err: err}
		}
		t.file, t.at = f, 0
		p.fresh, p.first = true, true
	}
	size, err := t.file.Size()
	if err != nil {
		t.shut()
		return piece{err: err}
	}
	if size < t.at {
		t.at, p.fresh = 0, true
	}
	if p.fresh && size > mostBytes {
		t.at, p.late = size-mostBytes, true
	}
	buf := make([]byte, min(chunk, size-t.at))
	n, err := t.file.ReadAt(buf, t.at)
	if n == 0 && err != nil && size > t.at {
		return piece{err: err}
	}
	t.at += int64(n)
	p.text, p.more = buf[:n], t.at < size
	return p
}

func (t *tail) shut() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}
