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
	maxBytes = 10 << 20 // of lines
	readSize = 256 << 10
	maxLine  = 64 << 10 // a longer line is broken
)

// ring is the last lines of an output.
type lineBuffer struct {
	lines   []line
	size    int
	dropped int              // lines, of the beginning
	open    map[int32][]byte // the last line of each task, which has no end yet
	cut     bool             // lines were dropped
}

// line is a line of output.
type line struct {
	text string
	at   time.Time // when it came; zero: it was there before
	task int32     // noTask: the batch script's
}

// add takes in output of a task.
func (r *lineBuffer) add(task int32, text []byte, at time.Time) {
	part := append(r.open[task], text...)
	for {
		end := bytes.IndexByte(part, '\n')
		if end < 0 && len(part) < maxLine {
			break
		}
		if end < 0 || end > maxLine {
			r.push(line{string(part[:maxLine]), at, task})
			part = part[maxLine:]
			continue
		}
		r.push(line{string(part[:end]), at, task})
		part = part[end+1:]
	}
	if r.open == nil {
		r.open = map[int32][]byte{}
	}
	r.open[task] = bytes.Clone(part)
}

func (r *lineBuffer) push(l line) {
	r.lines = append(r.lines, l)
	r.size += len(l.text) + 1
	drop := 0
	for r.size > maxBytes && drop < len(r.lines)-1 {
		r.size -= len(r.lines[drop].text) + 1
		drop++
	}
	if drop > 0 {
		r.lines, r.cut = r.lines[drop:], true
		r.dropped += drop
	}
}

// reset forgets everything.
func (r *lineBuffer) reset() { *r = lineBuffer{} }

// clean is a line as it may be shown: what a progress bar has drawn last,
// without colours, with tabs as spaces.
func cleanLine(line string) string {
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

// tail reads what was added to a file of this machine.
type fileSource struct {
	open func(string) (data.File, error)
	path string
	// since is when the job began to write; zero: there is no telling.
	since time.Time
	file  data.File
	at    int64
}

// look reads the next piece.
func (t *fileSource) read() chunk {
	p := chunk{}
	if t.file != nil && t.file.Replaced() {
		t.close()
	}
	if t.file == nil {
		f, err := t.open(t.path)
		if err != nil {
			return chunk{err: err, caughtUp: true}
		}
		t.file, t.at = f, 0
		p.reset, p.existing = true, true
		p.older = !t.since.IsZero() && f.Modified().Before(t.since)
	}
	size, err := t.file.Size()
	if err != nil {
		t.close()
		return chunk{err: err, caughtUp: true}
	}
	if size < t.at {
		t.at, p.reset = 0, true
	}
	if p.reset && size > maxBytes {
		t.at, p.truncated = size-maxBytes, true
	}
	buf := make([]byte, min(readSize, size-t.at))
	n, err := t.file.ReadAt(buf, t.at)
	if n == 0 && err != nil && size > t.at {
		return chunk{err: err, caughtUp: true}
	}
	t.at += int64(n)
	if p.caughtUp = t.at >= size; n > 0 {
		p.parts = []part{{noTask, buf[:n]}}
	}
	return p
}

// close lets the file go; it is opened again when somebody looks.
func (t *fileSource) close() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}
