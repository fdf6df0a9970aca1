package srun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/option"
)

// run is a step from its request to its end, or its part in one component of a
// heterogeneous job.
type run struct {
	o      *Options
	all    *steps
	remote bool
	parsed *option.Parsed
	part   bool // of a step over several components
	quiet  bool
	dir    string
	req    *step.Request

	conn   *step.Conn
	in     io.Reader // nil: no input
	inFile *os.File
	input  *step.Input
	out    sink
	err    sink
	// restore restores the terminal; nil: it was not changed.
	restore func()

	refused     []string
	refusedCode int            // exit code; 0: the default
	first       uint32         // number of its first task in the whole step
	pipe        *io.PipeReader // in, if parts share what srun reads

	// The rest is guarded by all.mu.
	created *step.Created
	exits   exits
	ending  bool // the step is being terminated, by srun or from outside
	// abortReported means that the termination was reported to the user.
	abortReported bool
}

// sink is the destination of an output stream of the tasks.
type sink struct {
	w    io.Writer
	file *os.File // nil: one of srun's own streams
	// stepPattern is the name of a file that is opened when the step has its
	// number; empty: none.
	stepPattern string
	task        int64 // only the output of this task; -1: all
	reported    bool  // output was lost, and the user knows
}

// create requests the step and returns when it was created.
func (r *run) create() error {
	if err := r.conn.SendJSON(step.FrameRequest, r.req); err != nil {
		return slurmerr.Wrap(slurmerr.Unreachable, err, "")
	}
	for {
		f, err := r.conn.Receive()
		if err != nil && r.all.isCanceled() {
			return slurmerr.Newf(slurmerr.Refused, "Unable to create step for job %d: %s", r.req.JobID, jobs.ErrDone)
		}
		if err != nil {
			return r.connError(err)
		}
		if f.Type == step.FrameDone {
			return r.refusal()
		}
		if f.Type == step.FrameCreated {
			if err := r.setCreated(f); err != nil {
				return r.connError(err)
			}
			return nil
		}
		r.handlePending(f)
	}
}

// isCanceled reports whether a signal has ended the wait for the step.
func (s *steps) isCanceled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.canceled
}

// wait handles the step's frames until it is over.
func (r *run) wait() error {
	if err := step.Follow(r.conn, r.input, r.handleFrame); err != nil {
		return r.connError(err)
	}
	return nil
}

// handlePending handles a frame that arrives before the step is created.
func (r *run) handlePending(f *step.Frame) {
	switch f.Type {
	case step.FrameRefused:
		r.refused = append(r.refused, string(f.Data))
		r.refusedCode = int(f.Flags)
	case step.FrameWaiting:
		r.info("%s", f.Data)
	}
}

// refusal returns the error of a step that was not created.
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

// connError returns the error of a broken connection.
func (r *run) connError(err error) error {
	return slurmerr.Wrap(slurmerr.Unreachable, err, "Connection to the job lost: "+err.Error())
}

// setCreated records the description of the created step.
func (r *run) setCreated(f *step.Frame) error {
	var c step.Created
	if err := f.Decode(&c); err != nil {
		return err
	}
	if int(c.Tasks) != len(c.TaskNode) {
		return fmt.Errorf("%w: %d tasks, nodes of %d", step.ErrFrame, c.Tasks, len(c.TaskNode))
	}
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.created = &c
	r.exits.init(&c)
	r.reportLaunch()
	return nil
}

// sendInput starts to send the tasks their input.
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
			r.pipe.Close() //nolint:errcheck // it never fails
		}
	}()
}

// handleFrame handles a frame of the running step.
func (r *run) handleFrame(f *step.Frame) error {
	if done, err := r.all.handleMPI(r, f); done {
		return err
	}
	switch f.Type {
	case step.FrameStdout:
		return r.write(&r.out, f)
	case step.FrameStderr:
		return r.write(&r.err, f)
	case step.FrameNotice:
		r.o.p.Err.Write(f.Data) //nolint:errcheck // it cannot be reported
	case step.FrameStarted:
		r.reportStarted(f)
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

// write writes a task's output, line by line with --label. The step continues without a
// reader, because its exit code still counts.
func (r *run) write(s *sink, f *step.Frame) error {
	whole := *f
	whole.Task += r.first
	if s.task >= 0 && int64(whole.Task) != s.task {
		return nil
	}
	data := f.Data
	if r.parsed.Step.Label {
		data = step.Label(&whole, r.all.tasks)
	}
	if _, err := s.w.Write(data); err != nil {
		r.reportLoss(s, err)
	}
	return nil
}

// reportLoss reports once that output is lost which somebody wants: a file system is full or
// read-only, or failed. A reader that has gone wants nothing.
func (r *run) reportLoss(s *sink, err error) {
	causes := []error{syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT, syscall.EFBIG, syscall.EIO}
	if s.reported || !slices.ContainsFunc(causes, func(e error) bool { return errors.Is(err, e) }) {
		return
	}
	s.reported = true
	name := "its output"
	if s.file != nil {
		name = s.file.Name()
	}
	r.o.printf("error: output of step %s is lost: cannot write to %s: %s", r.id(), name, strerror.Text(err))
}

// info prints a line that --quiet suppresses.
func (r *run) info(format string, args ...any) {
	if !r.quiet {
		r.o.printf(format, args...)
	}
}
