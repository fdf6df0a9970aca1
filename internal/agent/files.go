package agent

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/agent/launch"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/job"
)

// files are the batch script's input and output files. The script writes into
// them itself; what arrives there is copied to the container's log.
type files struct {
	in, out, err *os.File
	// outPath and errPath are where out and err are; empty: there are none.
	outPath, errPath string
	tails            []*tail
}

// enterable is launch's, for the batch script.
var enterable = launch.CheckDir

// names are what the patterns of the batch script's files stand for.
func (a *Agent) names() env.Place {
	w := a.welcome
	p := env.Place{JobID: w.JobID, Batch: true, Node: w.Hosts[w.Index].Name, User: w.User, JobName: a.job.Name}
	if w.Array != nil {
		p.ArrayJobID, p.ArrayTask = w.Array.JobID, w.Array.Index
	}
	return p
}

// openFiles opens the files of a batch script in dir. An error means that the
// job cannot run.
func openFiles(log *slog.Logger, j *job.Job, names env.Place, dir string) (*files, error) {
	f := &files{}
	in := os.DevNull
	out, errs := names.Output(j.Batch.Output, j.Batch.Error, dir)
	if j.Batch.Input != "" {
		in = names.Path(dir, j.Batch.Input)
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

// create opens an output file and has what is written there copied to log.
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
		return file, nil // a device or a pipe cannot be read twice
	}
	r, err := os.Open(path)
	if err != nil {
		log.Warn("the container log will not have the output", "error", err)
		return file, nil //nolint:nilerr // the file itself will
	}
	t := &tail{file: r, at: st.Size(), to: to, stop: make(chan struct{}), done: make(chan struct{})}
	f.tails = append(f.tails, t)
	go t.run()
	return file, nil
}

func (f *files) stdio() []*os.File { return []*os.File{f.in, f.out, f.err} }

// say adds a line to the script's error output.
func (f *files) say(line string) { f.write(line + "\n") }

// write adds text to the script's error output, echo to its output.
func (f *files) write(text string) { add(f.err, text) }
func (f *files) echo(text string)  { add(f.out, text) }

func add(to *os.File, text string) {
	if to != nil {
		to.WriteString(text) //nolint:errcheck // a full disk, and nobody to tell
	}
}

// close closes the files when nobody writes any more.
func (f *files) close() {
	if f == nil {
		return
	}
	for _, t := range f.tails {
		t.end()
	}
	f.tails = nil
	for _, file := range []*os.File{f.in, f.out, f.err} {
		if file != nil {
			file.Close()
		}
	}
}

// How often a tail looks for more, and how long it may take to finish.
const (
	tailPause = 200 * time.Millisecond
	tailEnd   = 5 * time.Second
)

// tail copies a growing file.
type tail struct {
	file *os.File
	at   int64
	to   io.Writer
	once sync.Once
	stop chan struct{} // closed when the file grows no more
	done chan struct{}
}

func (t *tail) run() {
	defer close(t.done)
	defer t.file.Close()
	tick := time.NewTicker(tailPause)
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

// copy passes on what is new; false: it is no use to go on.
func (t *tail) copy() bool {
	if st, err := t.file.Stat(); err == nil && st.Size() < t.at {
		t.at = 0 // truncated by the script
	}
	n, err := io.Copy(t.to, io.NewSectionReader(t.file, t.at, 1<<62-t.at))
	t.at += n
	return err == nil || errors.Is(err, io.EOF)
}

// end waits until everything is copied, within reason.
func (t *tail) end() {
	t.once.Do(func() { close(t.stop) })
	select {
	case <-t.done:
	case <-time.After(tailEnd):
	}
}
