// Package sstat shows what the steps of running jobs use. It asks the agents
// of the job, by the way that srun from outside takes, so users see what their
// own jobs use.
package sstat

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
)

// Cluster is what sstat needs of a cluster.
type Cluster interface {
	Attach(ctx context.Context, id int64) (io.ReadWriteCloser, error)
}

// Options is one call of sstat.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)

	jobs     []target
	all      bool // steps of a job of which none is named
	pids     bool
	fields   []format.Field
	at       []int // of the table
	style    format.FieldStyle
	settings format.AcctSettings
}

// target is a job, or a step of it.
type target struct {
	job  int64
	step int32
	one  bool // step is meant, not the job
}

// New makes the command. connect is called once, after the command line has
// been read.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, rest, err := option.Sstat.Begin(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
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
		if err := o.show(ctx, cluster, t); err != nil {
			return err
		}
	}
	return nil
}

// complete reads the options.
func (o *Options) complete(v *option.Values, rest []string) error {
	list := v.List("jobs")
	for _, word := range rest { // sstat takes jobs without -j, too
		list = append(list, strings.Split(word, ",")...)
	}
	if len(list) == 0 {
		return slurmerr.New(slurmerr.Refused, "You didn't give me any jobs to stat.")
	}
	for _, text := range list {
		t, ok := parse(text)
		if !ok {
			return slurmerr.New(slurmerr.Fatal, "Bad job/step specified: "+text)
		}
		o.jobs = append(o.jobs, t)
	}
	o.all, o.pids = v.Has("allsteps"), v.Has("pidformat")
	names := defaults
	switch {
	case o.pids:
		names = "JobID,Nodelist,Pids"
	case v.Has("format"):
		names = v.Get("format")
	}
	var bad string
	if o.at, o.fields, bad = format.ParseFields(table, names); bad != "" {
		return slurmerr.Newf(slurmerr.Refused, "Invalid field requested: \"%s\"", bad)
	}
	o.style.NoHeader = v.Has("noheader")
	if v.Has("parsable") || v.Has("parsable2") {
		o.style.Delimiter, o.style.Ending = "|", v.Has("parsable") && !v.Has("parsable2")
	}
	o.settings.Settings = format.Settings{Now: o.p.Now().Unix(), Location: o.p.Now().Location(), NoConvert: v.Has("noconvert")}
	return nil
}

// special are the steps that have a name.
var special = map[string]int32{"batch": wire.StepBatch, "extern": wire.StepExtern, "interactive": wire.StepInteractive}

// parse reads JOB or JOB.STEP.
func parse(text string) (t target, ok bool) {
	id, name, one := strings.Cut(text, ".")
	var err error
	if t.job, err = strconv.ParseInt(id, 10, 64); err != nil || t.job < 1 {
		return t, false
	}
	if t.one = one; !one {
		return t, true
	}
	if t.step, ok = special[strings.ToLower(name)]; ok {
		return t, true
	}
	n, err := strconv.ParseInt(name, 10, 32)
	t.step = int32(n)
	return t, err == nil && n >= 0
}

// show prints what a job's steps use. What cannot be shown is said; the rest
// follows, as with Slurm.
func (o *Options) show(ctx context.Context, cluster Cluster, t target) error {
	list, err := ask(ctx, cluster, t)
	if err != nil {
		o.say("couldn't get steps for job %d", t.job)
		return nil //nolint:nilerr // said
	}
	if !t.one && !o.all {
		list = slices.DeleteFunc(list, func(u step.Usage) bool { return u.Record.ID < 0 })
		list = list[:min(len(list), 1)]
	}
	switch {
	case len(list) > 0:
		return o.print(t.job, list)
	case t.one:
		o.say("StepId=%d.%s not found running.", t.job, stepName(t.step))
	default:
		o.say("No steps running for job %d", t.job)
	}
	return nil
}

func (o *Options) say(text string, args ...any) {
	fmt.Fprintf(o.p.Err, "sstat: error: "+text+"\n", args...)
}

func stepName(id int32) string {
	for name, n := range special {
		if n == id {
			return name
		}
	}
	return strconv.Itoa(int(id))
}

// ask asks the agents of a job.
func ask(ctx context.Context, cluster Cluster, t target) ([]step.Usage, error) {
	c, err := cluster.Attach(ctx, t.job)
	if err != nil {
		return nil, err
	}
	conn, err := step.NewClient(c)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var q step.Query
	if t.one {
		q.Steps = []int32{t.step}
	}
	if err := conn.SendJSON(step.FrameQuery, &q); err != nil {
		return nil, err
	}
	var list []step.Usage
	err = step.Follow(conn, nil, func(f *step.Frame) error {
		var u step.Usage
		if f.Type != step.FrameUsage {
			return fmt.Errorf("%w: type %d", step.ErrFrame, f.Type)
		}
		err := f.Decode(&u)
		list = append(list, u)
		return err
	})
	return list, err
}
