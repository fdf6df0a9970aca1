// Package sattach shows the output of a running step and exits with the step's exit
// code. The step continues when sattach ends.
package sattach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/value"
)

// Cluster is the access to a cluster that sattach needs.
type Cluster interface {
	AttachTo(ctx context.Context, name string) (io.ReadWriteCloser, error)
}

// Options is one call of sattach.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)

	job      string // as given by the user
	step     int32
	label    bool
	layout   bool
	out, err int64 // the only task to show; -1: all

	created step.Created
	code    int
}

// New returns the command. connect is called once.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run runs the command. The error carries the exit code of the step.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, rest, err := option.Sattach.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil {
		return err
	}
	if err := o.parseStep(rest); err != nil {
		return err
	}
	o.label, o.layout = v.Has("label"), v.Has("layout")
	if err := o.filters(v); err != nil {
		return err
	}
	conn, err := o.attach(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return o.follow(conn)
}

// filters parses the numbers of the tasks to show.
func (o *Options) filters(v *option.Values) (err error) {
	var in int64
	for _, f := range []struct {
		name string
		to   *int64
	}{{"input-filter", &in}, {"output-filter", &o.out}, {"error-filter", &o.err}} {
		if *f.to = -1; v.Has(f.name) {
			if *f.to, err = strconv.ParseInt(v.Get(f.name), 10, 32); err != nil || *f.to < 0 {
				return slurmerr.Newf(slurmerr.Refused, "Invalid numeric value \"%s\" for %s.", v.Get(f.name), f.name)
			}
		}
	}
	return nil
}

const usage = "Usage: sattach [options] <jobid.stepid>\n"

// parseStep parses JOB.STEP.
func (o *Options) parseStep(args []string) error {
	fail := func(text string) error {
		if err := o.p.Print(usage); err != nil {
			return err
		}
		return slurmerr.New(slurmerr.Refused, text)
	}
	if len(args) != 1 {
		return fail("too many parameters") // Slurm's message for none as well
	}
	id, err := value.ParseStepID(args[0])
	switch {
	case err != nil:
		return slurmerr.New(slurmerr.Fatal, err.Error())
	case id.Step == "":
		return fail("Failed to parse stepid from command line options")
	}
	o.job, o.step = id.JobID(), step.ParseID(id.Step)
	return nil
}

// attach connects to the job's agent.
func (o *Options) attach(ctx context.Context) (*step.Conn, error) {
	cluster, err := o.connect()
	if err != nil {
		return nil, err
	}
	c, err := cluster.AttachTo(ctx, o.job)
	switch kube.KindOf(err) {
	case kube.NotFound:
		return nil, slurmerr.New(slurmerr.Refused, "Could not get job step info: "+jobs.ErrInvalidID)
	case kube.Conflict: // the job is pending, or has ended
		return nil, slurmerr.New(slurmerr.Refused, "Could not get job step info: "+err.Error())
	case kube.Forbidden:
		return nil, slurmerr.New(slurmerr.Denied, "Could not get job step info: "+jobs.ErrDenied)
	}
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Unreachable, err, "Could not get job step info: "+err.Error())
	}
	return step.NewClient(c)
}

// follow shows the step until it is over.
func (o *Options) follow(conn *step.Conn) error {
	if err := conn.SendJSON(step.FrameAttach, step.Attach{StepID: o.step, LayoutOnly: o.layout}); err != nil {
		return slurmerr.Wrap(slurmerr.Unreachable, err, "")
	}
	f, err := conn.Receive()
	if err != nil {
		return slurmerr.Wrap(slurmerr.Unreachable, err, "Connection to the job lost: "+err.Error())
	}
	if f.Type == step.FrameRefused {
		return slurmerr.New(slurmerr.Refused, string(f.Data))
	}
	if err := f.Decode(&o.created); err != nil {
		return err
	}
	if o.layout {
		return o.p.Print(layout(&o.created))
	}
	if err := step.Follow(conn, nil, o.handleFrame); err != nil {
		return slurmerr.Wrap(slurmerr.Unreachable, err, "Connection to the job lost: "+err.Error())
	}
	if o.code == 0 {
		return nil
	}
	return &slurmerr.Error{Code: o.code}
}

// layout returns the output of --layout.
func layout(c *step.Created) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Job step layout:\n\t%d tasks, %d nodes (%s)\n\n", c.Tasks, len(c.Nodes), hostlist.Fold(c.Nodes))
	for i, name := range c.Nodes {
		fmt.Fprintf(&b, "\tNode %d (%s), %d task(s): ", i, name, c.PerNode[i])
		for t, node := range c.TaskNode {
			if int(node) == i {
				fmt.Fprintf(&b, "%d ", t)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// handleFrame handles a frame of the step.
func (o *Options) handleFrame(f *step.Frame) error {
	switch f.Type {
	case step.FrameStdout:
		return o.write(o.p.Out, o.out, f)
	case step.FrameStderr:
		return o.write(o.p.Err, o.err, f)
	case step.FrameNotice:
		_, err := o.p.Err.Write(f.Data)
		return err
	case step.FrameExit:
		var e step.Exit
		if err := f.Decode(&e); err != nil {
			return err
		}
		o.exited(&e)
	}
	return nil
}

// exited reports how tasks ended.
func (o *Options) exited(e *step.Exit) {
	ws := syscall.WaitStatus(e.Status)
	o.code = max(o.code, step.ExitCode(e.Status))
	for _, t := range e.Tasks {
		switch {
		case ws.Signaled():
			fmt.Fprintf(o.p.Err, "sattach: error: task %d killed by signal %d\n", t, int(ws.Signal()))
		case ws.ExitStatus() != 0:
			fmt.Fprintf(o.p.Err, "sattach: error: task %d exited with exit code %d\n", t, ws.ExitStatus())
		}
	}
}

// errClosed ends sattach when its output can no longer be written.
var errClosed = errors.New("the output was closed")

// write writes a task's output, unless another task was selected.
func (o *Options) write(w io.Writer, only int64, f *step.Frame) error {
	if only >= 0 && int64(f.Task) != only {
		return nil
	}
	data := f.Data
	if o.label {
		data = step.Label(f, o.created.Tasks)
	}
	if _, err := w.Write(bytes.Clone(data)); err != nil {
		return errClosed
	}
	return nil
}
