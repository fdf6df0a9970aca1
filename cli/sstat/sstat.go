// Package sstat shows what the steps of running jobs use. It queries the agents of the
// job, over the same connection as srun outside of a job, so users see the usage of
// their own jobs only.
package sstat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// Cluster is the access to a cluster that sstat needs.
type Cluster interface {
	AttachTo(ctx context.Context, name string) (io.ReadWriteCloser, error)
}

// Options is one call of sstat.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)

	jobs     []target
	all      bool // all steps of jobs without a step
	pids     bool
	fields   []format.Field
	at       []int // indexes of fields in table
	style    format.FieldStyle
	settings format.AcctSettings
}

// target is a job or one of its steps.
type target struct {
	job  string // as given by the user
	id   status.Record
	step int32
	name string // of the step
	one  bool   // the step, not the whole job
}

// New returns the command. connect is called once, after the command line was parsed.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	set := option.Sstat.Checked(option.Checks{"jobs": checkJobs})
	v, rest, err := set.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return withoutHint(err)
	}
	if v.Has("helpformat") {
		return o.p.Print(helpFormat())
	}
	if err := o.complete(v, rest); err != nil {
		return err
	}
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	if err := o.p.Print(string(format.AppendFieldHeader(nil, o.fields, o.style))); err != nil {
		return err
	}
	for _, t := range o.jobs {
		if err := o.show(ctx, cluster, &t); err != nil {
			return err
		}
	}
	return nil
}

// withoutHint returns an error about the command line as sstat prints it, without the
// hint about --help.
func withoutHint(err error) error {
	if e, ok := errors.AsType[*slurmerr.Error](err); ok && e.Kind == slurmerr.Usage {
		return &slurmerr.Error{Code: 1, Before: []string{"sstat: " + e.Message}}
	}
	return err
}

// checkJobs returns an error for a list of -j with something else than jobs and steps.
func checkJobs(list string) error {
	for text := range strings.SplitSeq(list, ",") {
		if _, err := parse(text); err != nil && text != "" {
			return slurmerr.New(slurmerr.Fatal, err.Error())
		}
	}
	return nil
}

// complete evaluates the options.
func (o *Options) complete(v *option.Values, rest []string) error {
	o.all, o.pids = v.Has("allsteps"), v.Has("pidformat")
	list := v.All("jobs")
	for _, word := range rest { // sstat accepts jobs without -j as well
		list = append(list, strings.Split(word, ",")...)
	}
	for i, text := range list {
		if slices.Contains(list[:i], text) {
			continue
		}
		t, err := parse(text)
		if err != nil {
			return slurmerr.New(slurmerr.Fatal, err.Error())
		}
		o.jobs = append(o.jobs, t)
	}
	var lists []string // they add up
	v.Occurrences(func(name, text string) {
		if name == "pidformat" {
			text = "JobID,Nodelist,Pids"
		}
		lists = append(lists, text)
	}, "format", "pidformat")
	if lists == nil {
		lists = []string{defaults}
	}
	var bad string
	names := format.FieldsBeforeGap(strings.Join(lists, ","))
	if o.at, o.fields, bad = format.ParseSharedFields(table, names, false); bad != "" {
		return slurmerr.Newf(slurmerr.Refused, "Invalid field requested: \"%s\"", bad)
	}
	if len(o.jobs) == 0 {
		return slurmerr.New(slurmerr.Refused, "You didn't give me any jobs to stat.")
	}
	o.style.NoHeader = v.Has("noheader")
	if last := v.Last("parsable", "parsable2"); last != "" {
		o.style.Delimiter, o.style.Ending = "|", last == "parsable"
	}
	now := o.p.Now()
	o.settings.Sstat = true
	o.settings.Settings = format.Settings{Now: now.Unix(), Location: now.Location(), NoConvert: v.Has("noconvert")}
	return nil
}

// parse parses JOB or JOB.STEP.
func parse(text string) (t target, err error) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return t, errors.New("Bad job/step specified: " + text) //nolint:staticcheck // Slurm's text
	}
	id, err := value.ParseStepID(text)
	t.job, t.step, t.one = id.JobID(), step.ParseID(id.Step), id.Step != ""
	t.name = id.Step
	t.id.ID = id.Job
	if task, ok := strings.CutPrefix(id.Suffix, "_"); ok {
		t.id.ArrayJobID, t.id.ArrayTaskID = id.Job, task
	} else {
		t.id.ID += value.Leading(id.Suffix)
	}
	return t, err
}

// show prints what the steps of a job use. As in Slurm, it reports a job that it cannot
// show, and returns no error.
func (o *Options) show(ctx context.Context, cluster Cluster, t *target) error {
	var list []step.Usage
	var err error
	if t.job != "0" {
		list, err = queryUsage(ctx, cluster, t)
	}
	if err != nil {
		o.printError("couldn't get steps for job %s", number(t.job))
		return nil //nolint:nilerr // it was reported
	}
	running := len(list) > 0
	if !t.one && !o.all {
		list = slices.DeleteFunc(list, func(u step.Usage) bool { return u.Record.ID < 0 })
		list = list[:min(len(list), 1)]
	}
	switch {
	case len(list) > 0:
		return o.print(&t.id, list)
	case running: // only its batch script, which Slurm does not mention
	case t.one:
		o.printError("StepId=%s.%s not found running.", withoutTask(t.job), t.name)
	default:
		o.printError("No steps running for job %s", number(t.job))
	}
	return nil
}

// printError prints an error line.
func (o *Options) printError(text string, args ...any) {
	fmt.Fprintf(o.p.Err, "sstat: error: "+text+"\n", args...)
}

// queryUsage queries the agents of a job. A job that does not run has no steps.
func queryUsage(ctx context.Context, cluster Cluster, t *target) ([]step.Usage, error) {
	c, err := cluster.AttachTo(ctx, t.job)
	switch {
	case kube.KindOf(err) == kube.Conflict:
		return nil, nil
	case kube.KindOf(err) == kube.NotFound && strings.Contains(t.job, "_"):
		return nil, missingTask(ctx, cluster, t, err)
	case err != nil:
		return nil, err
	}
	conn, err := step.NewClient(c)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if t.one {
		return step.QueryUsage(conn, t.step)
	}
	return step.QueryUsage(conn)
}

// missingTask returns the error about a task that does not exist. As in Slurm, it is nil if its array
// does: then the task has no steps.
func missingTask(ctx context.Context, cluster Cluster, t *target, missing error) error {
	c, err := cluster.AttachTo(ctx, number(t.job))
	switch {
	case err == nil:
		return c.Close()
	case kube.KindOf(err) == kube.Conflict:
		return nil
	}
	return missing
}

// number returns the number of a job's id, without its task or component.
func number(id string) string { return id[:len(id)-len(strings.TrimLeft(id, "0123456789"))] }

// withoutTask returns a job's id without its task.
func withoutTask(id string) string {
	job, _, _ := strings.Cut(id, "_")
	return job
}
