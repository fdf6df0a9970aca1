package srun

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/option"
)

// run is a step, or its part in one component, from its request to its end.
type run struct {
	o      *Options
	all    *steps
	afar   bool
	parsed *option.Parsed
	part   bool // of a step in several components
	quiet  bool
	dir    string
	req    *step.Request

	conn   *step.Conn
	in     io.Reader // nil: no input
	inFile *os.File
	input  *step.Input
	out    sink
	err    sink
	// restore puts the terminal back; nil: it is as it was.
	restore func()

	refused     []string
	refusedCode int            // exit code; 0: that of every refusal
	first       uint32         // number of its first task in the whole step
	pipe        *io.PipeReader // in, where parts share what srun reads

	// The rest is guarded by all.mu.
	created *step.Created
	exits   exits
	ending  bool // the step is being ended, by us or from outside
	// saidAborted: the user was told that the step is being ended.
	saidAborted bool
}

// sink is where a stream of the tasks ends.
type sink struct {
	w    io.Writer
	file *os.File // nil: one of srun's own streams
	// late names a file that is opened once the step has its number; empty: none.
	late string
	task int64 // only this task's; -1: all
}

// ask asks for the step and returns when it is there.
func (r *run) ask() error {
	r.tellJob()
	if err := r.conn.SendJSON(step.FrameRequest, r.req); err != nil {
		return slurmerr.Wrap(slurmerr.Unreachable, err, "")
	}
	for {
		f, err := r.conn.Receive()
		if err != nil && r.all.hasGivenUp() {
			return slurmerr.Newf(slurmerr.Refused, "Unable to create step for job %d: %s", r.req.JobID, jobs.ErrDone)
		}
		if err != nil {
			return r.lost(err)
		}
		if f.Type == step.FrameDone {
			return r.refusal()
		}
		if f.Type == step.FrameCreated {
			if err := r.begin(f); err != nil {
				return r.lost(err)
			}
			return nil
		}
		r.early(f)
	}
}

func (s *steps) hasGivenUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.givenUp
}

// stay follows the step until it is over.
func (r *run) stay() error {
	if err := step.Follow(r.conn, r.input, r.take); err != nil {
		return r.lost(err)
	}
	return nil
}

// early handles what may come before the step is there.
func (r *run) early(f *step.Frame) {
	switch f.Type {
	case step.FrameRefused:
		r.refused = append(r.refused, string(f.Data))
		r.refusedCode = int(f.Flags)
	case step.FrameWaiting:
		r.info("%s", f.Data)
	}
}

// refusal is the error of a step that was not created.
func (r *run) refusal() error {
	if len(r.refused) == 0 {
		return &slurmerr.Error{Code: 1}
	}
	e := slurmerr.New(slurmerr.Refused, r.refused[0])
	for _, line := range r.refused[1:] {
		e.Message += "\n" + line
	}
	if r.refusedCode != 0 {
		e.Code = r.refusedCode
		e = e.Hint("Job step aborted")
	}
	return e
}

func (r *run) lost(err error) error {
	return slurmerr.Wrap(slurmerr.Unreachable, err, "Connection to the job lost: "+err.Error())
}

// begin takes over what the step is.
func (r *run) begin(f *step.Frame) error {
	var c step.Created
	if err := f.Decode(&c); err != nil {
		return err
	}
	if int(c.Tasks) != len(c.TaskNode) {
		return fmt.Errorf("%w: %d tasks, places of %d", step.ErrFrame, c.Tasks, len(c.TaskNode))
	}
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.created = &c
	r.exits.begin(&c)
	r.tellLaunch()
	return nil
}

// sendInput starts to send the tasks what they read.
func (r *run) sendInput() {
	if r.in == nil {
		return
	}
	task, tasks := step.AllTasks, make([]uint32, 0, r.created.Tasks)
	if n, err := strconv.ParseUint(r.req.Command.Stdin, 10, 31); err == nil {
		task = uint32(n) - r.first
		if len(r.all.parts) == 1 || uint32(n) >= r.first && task < r.created.Tasks {
			tasks = append(tasks, task)
		}
	} else {
		for t := range r.created.Tasks {
			tasks = append(tasks, t)
		}
	}
	r.input = step.NewInput(r.conn, tasks, step.Window)
	go func() {
		r.input.Copy(r.in, task)
		if r.pipe != nil {
			r.pipe.Close() //nolint:errcheck // it never fails; nobody reads any more
		}
	}()
}

// take handles one frame of the running step.
func (r *run) take(f *step.Frame) error {
	if done, err := r.all.exchange(r, f); done {
		return err
	}
	switch f.Type {
	case step.FrameStdout:
		return r.write(&r.out, f)
	case step.FrameStderr:
		return r.write(&r.err, f)
	case step.FrameNotice:
		r.o.p.Err.Write(f.Data) //nolint:errcheck // nobody to tell
	case step.FrameStarted:
		r.tellStarted(f)
	case step.FrameExit:
		var e step.Exit
		if err := f.Decode(&e); err != nil {
			return err
		}
		r.exited(&e)
	case step.FrameNodeLost:
		var n step.NodeLost
		if err := f.Decode(&n); err != nil {
			return err
		}
		r.nodeLost(&n)
	case step.FrameAborted:
		var a step.Aborted
		if err := f.Decode(&a); err != nil {
			return err
		}
		r.aborted(&a)
	}
	return nil
}

// write passes a task's output on, line by line with --label. srun goes on
// without a reader: the exit codes still count.
func (r *run) write(s *sink, f *step.Frame) error {
	of := *f
	of.Task += r.first
	if s.task >= 0 && int64(of.Task) != s.task {
		return nil
	}
	if !r.parsed.Step.Label {
		s.w.Write(f.Data) //nolint:errcheck // as above
		return nil
	}
	s.w.Write(step.Label(&of, r.all.tasks)) //nolint:errcheck // as above
	return nil
}

// info is a line that --quiet suppresses.
func (r *run) info(format string, args ...any) {
	if !r.quiet {
		r.o.say(format, args...)
	}
}
