package sim

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// traceJob is one job of a workload trace.
type traceJob struct {
	id         int64
	submit     int64 // seconds since the trace's beginning
	run        int64 // seconds it ran, at most estimate
	estimate   int64 // time limit, seconds
	processors int
	memory     int64 // KiB per processor; 0: unknown
	user       int64
}

// trace is a workload in the Standard Workload Format, without jobs that cannot be
// simulated.
type trace struct {
	processors int // MaxProcs or else MaxNodes of the header; 0: neither
	jobs       []traceJob
	dropped    int
}

// lineError is an error in one line of a trace.
type lineError struct {
	line int
	text string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.text) }

// Fields of a line of the Standard Workload Format, from 0.
const (
	fieldID = iota
	fieldSubmit
	fieldWait
	fieldRun
	fieldProcessors
	fieldCPUTime
	fieldMemory
	fieldWantProcessors
	fieldWantTime
	fieldWantMemory
	fieldStatus
	fieldUser
	swfFields = 18
)

// readTrace reads a trace, optionally gzip-compressed. The error for an invalid line is a
// *lineError.
func readTrace(r io.Reader) (*trace, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := b.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		b = bufio.NewReaderSize(z, 1<<16)
	}
	t := &trace{}
	s := bufio.NewScanner(b)
	s.Buffer(make([]byte, 0, 1<<12), 1<<20)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		switch {
		case line == "":
		case line[0] == ';':
			t.header(line[1:])
		default:
			j, err := readJob(line)
			if err != nil {
				return nil, &lineError{n, err.Error()}
			}
			t.jobs = append(t.jobs, j)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	return t, nil
}

// header parses a comment such as "MaxProcs: 100".
func (t *trace) header(comment string) {
	key, value, _ := strings.Cut(comment, ":")
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || n <= 0 {
		return
	}
	switch strings.TrimSpace(key) {
	case "MaxProcs":
		t.processors = n
	case "MaxNodes":
		if t.processors == 0 {
			t.processors = n
		}
	}
}

var errFields = errors.New("a job must have 18 fields")

func readJob(line string) (traceJob, error) {
	var v [swfFields]int64
	n := 0
	for text := range strings.FieldsSeq(line) {
		if n == swfFields {
			return traceJob{}, errFields
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f != f || f > 1<<53 || f < -1<<53 {
			return traceJob{}, fmt.Errorf("field %d, %q, is not a number", n+1, text)
		}
		v[n] = int64(f)
		n++
	}
	if n != swfFields {
		return traceJob{}, fmt.Errorf("%w, this one has %d", errFields, n)
	}
	j := traceJob{id: v[fieldID], submit: v[fieldSubmit], run: v[fieldRun], estimate: v[fieldWantTime],
		processors: int(v[fieldWantProcessors]), memory: max(0, v[fieldWantMemory]), user: v[fieldUser]}
	if j.processors <= 0 {
		j.processors = int(v[fieldProcessors])
	}
	if j.estimate <= 0 {
		j.estimate = j.run
	}
	return j, nil
}

// filter removes the jobs that cannot run on the given number of processors, and limits
// the run times of the others to their estimates.
func (t *trace) filter(processors int) {
	kept := t.jobs[:0]
	for _, j := range t.jobs {
		if j.processors <= 0 || j.processors > processors || j.run <= 0 || j.estimate <= 0 || j.submit < 0 {
			t.dropped++
			continue
		}
		j.run = min(j.run, j.estimate)
		kept = append(kept, j)
	}
	t.jobs = kept
}
