package agent

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/job"
)

// files are the batch script's input and output files. The script writes to them
// directly; their contents are copied to the container's log.
type files struct {
	in, out, err *os.File
	// outPath and errPath are the paths of out and err; empty: none.
	outPath, errPath string
	tails            []*tail
}

// patterns returns the values of the %-patterns in names of the script's files.
func (a *Agent) patterns() env.PatternValues {
	w := a.welcome
	p := env.PatternValues{JobID: w.JobID, Batch: true, Node: w.Hosts[w.Index].Name, User: w.User, JobName: a.job.Name}
	if w.Array != nil {
		p.ArrayJobID, p.ArrayTask = w.Array.JobID, w.Array.Index
	}
	return p
}

// openFiles opens the files of a batch script in dir. After an error the job
// cannot run.
func openFiles(log *slog.Logger, j *job.Job, patterns env.PatternValues, dir string) (*files, error) {
	f := &files{}
	in := os.DevNull
	out, errs := patterns.Output(j.Batch.Output, j.Batch.Error, dir)
	if j.Batch.Input != "" {
		in = patterns.Path(dir, j.Batch.Input)
	}
	var err error
	if f.in, err = os.Open(in); err != nil {
		return f, fmt.Errorf("input: %w", err)
	}
	appending := j.Batch.OpenMode == "a"
	if f.out, err = f.create(log, out, appending, os.Stdout); err != nil {
		return f, fmt.Errorf("output: %w", err)
	}
	f.outPath = out
	if errs == out {
		f.err, f.errPath = f.out, out
		return f, nil
	}
	f.errPath = errs
	if f.err, err = f.create(log, errs, appending, os.Stderr); err != nil {
		return f, fmt.Errorf("error output: %w", err)
	}
	return f, nil
}

// create opens an output file, and copies what is written there to the writer.
func (f *files) create(log *slog.Logger, path string, appending bool, to io.Writer) (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if !appending {
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0o666)
	if err != nil {
		return nil, err
	}
	st, err := file.Stat()
	if err != nil {
		return file, err
	}
	if !st.Mode().IsRegular() {
		return file, nil // devices and pipes cannot be read twice
	}
	r, err := os.Open(path)
	if err != nil {
		log.Warn("cannot copy the output to the container's log", "error", err)
		return file, nil //nolint:nilerr // the file itself works
	}
	t := &tail{file: r, at: st.Size(), to: to, stop: make(chan struct{}), done: make(chan struct{})}
	f.tails = append(f.tails, t)
	go t.run()
	return file, nil
}

func (f *files) stdio() []*os.File { return []*os.File{f.in, f.out, f.err} }

// writeLine appends a line to the script's error output.
func (f *files) writeLine(line string) { f.writeError(line + "\n") }

// writeError appends text to the script's error output, and writeOutput to its output.
func (f *files) writeError(text string)  { appendText(f.err, text) }
func (f *files) writeOutput(text string) { appendText(f.out, text) }

func appendText(to *os.File, text string) {
	if to != nil {
		to.WriteString(text) //nolint:errcheck // a full disk cannot be reported anywhere
	}
}

// close closes the files after everything was copied to the log.
func (f *files) close() {
	if f == nil {
		return
	}
	for _, t := range f.tails {
		t.finish()
	}
	f.tails = nil
	for _, file := range []*os.File{f.in, f.out, f.err} {
		if file != nil {
			file.Close()
		}
	}
}

// The interval at which a tail reads, and the timeout of finish.
const (
	tailInterval      = 200 * time.Millisecond
	tailFinishTimeout = 5 * time.Second
)

// tail copies a growing file.
type tail struct {
	file *os.File
	at   int64
	to   io.Writer
	once sync.Once
	stop chan struct{} // closed when the file no longer grows
	done chan struct{}
}

func (t *tail) run() {
	defer close(t.done)
	defer t.file.Close()
	tick := time.NewTicker(tailInterval)
	defer tick.Stop()
	for last := false; ; {
		if !t.copy() || last {
			return
		}
		select {
		case <-tick.C:
		case <-t.stop:
			last = true
		}
	}
}

// copy copies what was appended since the last call. It returns false after an error.
func (t *tail) copy() bool {
	if st, err := t.file.Stat(); err == nil && st.Size() < t.at {
		t.at = 0 // truncated by the script
	}
	n, err := io.Copy(t.to, io.NewSectionReader(t.file, t.at, 1<<62-t.at))
	t.at += n
	return err == nil || errors.Is(err, io.EOF)
}

// finish copies the rest of the file, within tailFinishTimeout.
func (t *tail) finish() {
	t.once.Do(func() { close(t.stop) })
	select {
	case <-t.done:
	case <-time.After(tailFinishTimeout):
	}
}
