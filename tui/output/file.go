package output

import (
	"bytes"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/berth-hpc/berth/tui/data"
)

const (
	maxBytes = 10 << 20  // of lines in memory; older ones are dropped
	readSize = 256 << 10 // of one read
	maxLine  = 64 << 10  // a longer line is broken
)

// lineBuffer holds the last lines of an output.
type lineBuffer struct {
	lines   []line
	size    int
	dropped int              // number of lines that were dropped
	open    map[int32][]byte // the unfinished last line of each task
	cut     bool             // the start of the output is missing
}

// line is a line of output.
type line struct {
	text string
	at   time.Time // when it arrived; zero: before the page opened
	task int32     // noTask: the batch script's
}

// add adds output of a task.
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

// push adds a line, and drops the oldest lines beyond maxBytes.
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

// received returns the number of lines ever received, dropped ones included.
func (r *lineBuffer) received() int { return len(r.lines) + r.dropped }

// reset removes all lines.
func (r *lineBuffer) reset() { *r = lineBuffer{} }

// cleanLine returns a line without escape sequences, with tabs as spaces, and only
// what was written after the last carriage return, as for a progress bar.
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

// fileSource follows a file of this machine.
type fileSource struct {
	open func(string) (data.File, error)
	path string
	// since is the time before which the job cannot have written; zero: unknown.
	since time.Time
	file  data.File
	at    int64
}

// read implements source.
func (t *fileSource) read() chunk {
	c := chunk{}
	if t.file != nil && t.file.Replaced() {
		t.close()
	}
	if t.file == nil {
		f, err := t.open(t.path)
		if err != nil {
			return chunk{err: err, caughtUp: true}
		}
		t.file, t.at = f, 0
		c.reset, c.existing = true, true
		c.older = !t.since.IsZero() && f.Modified().Before(t.since)
	}
	size, err := t.file.Size()
	if err != nil {
		t.close()
		return chunk{err: err, caughtUp: true}
	}
	if size < t.at {
		t.at, c.reset = 0, true
	}
	if c.reset && size > maxBytes {
		t.at, c.truncated = size-maxBytes, true
	}
	buf := make([]byte, min(readSize, size-t.at))
	n, err := t.file.ReadAt(buf, t.at)
	if n == 0 && err != nil && size > t.at {
		return chunk{err: err, caughtUp: true}
	}
	t.at += int64(n)
	if c.caughtUp = t.at >= size; n > 0 {
		c.parts = []part{{noTask, buf[:n]}}
	}
	return c
}

// close implements source. The next read opens the file again.
func (t *fileSource) close() {
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
}
