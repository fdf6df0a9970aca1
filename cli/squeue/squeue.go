// Package squeue lists the jobs and job steps in the queue.
package squeue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/dump"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Lister is what squeue needs of a cluster.
type Lister interface {
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
	OwnJobs(ctx context.Context) (*status.JobList, error)
	Steps(ctx context.Context, f jobs.StepFilter) (*status.StepList, error)
	Nodes(ctx context.Context) (*status.NodeList, error)
	Watch(ctx context.Context, f jobs.Filter, each func(*status.JobEvent) error, lost func(error)) error
	Cluster(ctx context.Context, names []string) (string, error)
	User() string
}

// Options are what squeue needs and what it was told.
type Options struct {
	p       *stdio.Process
	connect func() (Lister, error)

	filter   filter
	layout   format.Layout[status.Job]
	order    string
	settings format.Settings

	steps      bool // -s
	stepIDs    []string
	stepLayout format.Layout[status.Step]

	noHeader bool
	long     bool
	array    bool
	split    bool       // -P
	dump     *dump.Form // --json, --yaml; nil: a table
	every    time.Duration
	clusters []string // -M
	named    bool     // the cluster's name is shown

	view   bool // the terminal UI is asked for
	screen func(ctx context.Context, s jobs.Screen) error
}

// New makes the command. connect is called once, after the command line has
// been read; it sends nothing.
func New(p *stdio.Process, connect func() (Lister, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	set := option.Squeue
	if o.view = o.view || asksView(args); o.view {
		set = option.Sview
	}
	v, rest, err := set.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	if o.view && o.terminal() {
		return o.open(ctx, v, rest, args)
	}
	if err := o.complete(v, &rest); err != nil {
		return err
	}
	if len(rest) > 0 {
		slurmerr.Print(o.p.Err, "squeue", &slurmerr.Error{Message: "Unrecognized option: " + rest[0]})
		fmt.Fprint(o.p.Err, set.Usage())
		return &slurmerr.Error{Code: 1}
	}
	return run(ctx, o)
}

// run lists once, or again and again.
func run(ctx context.Context, o *Options) error {
	queue, err := o.connect()
	if err != nil {
		return err
	}
	o.filter.me(queue.User(), o.p)
	if err := o.checkNodes(ctx, queue); err != nil {
		return err
	}
	if len(o.clusters) > 0 || o.named {
		if o.settings.Cluster, err = queue.Cluster(ctx, o.clusters); err != nil {
			return err
		}
	}
	switch {
	case o.steps:
		return o.p.Repeat(ctx, o.every, func() error { return listSteps(ctx, o, queue) })
	case o.every > 0 && o.dump == nil:
		return follow(ctx, o, queue)
	}
	return o.p.Repeat(ctx, o.every, func() error { return list(ctx, o, queue) })
}

// checkNodes refuses nodes that the cluster does not have.
func (o *Options) checkNodes(ctx context.Context, queue Lister) error {
	if len(o.filter.Nodes) == 0 {
		return nil
	}
	got, err := queue.Nodes(ctx)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(got.Items))
	for i := range got.Items {
		known[got.Items[i].Name] = true
	}
	for _, name := range o.filter.Nodes {
		if !known[name] {
			return slurmerr.Newf(slurmerr.Refused, "Invalid node name %s", format.Escape(name))
		}
	}
	return nil
}

func list(ctx context.Context, o *Options, queue Lister) error {
	got, err := queue.Jobs(ctx, o.ask())
	if jobs.IsQueueUnavailable(err) {
		return own(ctx, o, queue, err)
	}
	if err != nil {
		return err
	}
	o.warn(got.UnknownUsers)
	got.Items = o.filter.keep(got.Items)
	if id, single := o.filter.single(); single && len(got.Items) == 0 {
		if missing, err := o.missing(ctx, queue, id); err != nil || missing {
			return orUnknown(err)
		}
	}
	if o.dump != nil {
		return o.write(got, queue.User())
	}
	return o.show(got)
}

// ask is what the server is asked.
func (o *Options) ask() jobs.Filter {
	f := o.filter.Filter
	if o.dump == nil {
		f.Fields = o.fields()
	}
	return f
}

// warn tells of users that the cluster does not know, as Slurm does.
func (o *Options) warn(users []string) {
	for _, u := range users {
		fmt.Fprintf(o.p.Err, "squeue: error: Invalid user: %s\n\n", format.Escape(u))
	}
}

// own lists what the API server tells of the user's jobs when the queue does
// not answer. The command fails all the same: the list is not what was asked.
func own(ctx context.Context, o *Options, queue Lister, cause error) error {
	got, err := queue.OwnJobs(ctx)
	if err != nil {
		return cause
	}
	fmt.Fprintln(o.p.Err, "squeue: the queue does not answer; these are your own jobs, as last stored")
	if err := o.show(got); err != nil {
		return err
	}
	return cause
}

// missing tells an unknown job from one that only the filters leave out, or a
// task that its array does not have.
func (o *Options) missing(ctx context.Context, queue Lister, id string) (bool, error) {
	whole, _, task := strings.Cut(id, "_")
	if !task && !o.filter.narrow() {
		return true, nil
	}
	all, err := queue.Jobs(ctx, jobs.Filter{IDs: []string{whole}, States: jobs.AllStates, Fields: []string{"id"}})
	return err == nil && len(all.Items) == 0, err
}

func orUnknown(err error) error {
	if err != nil {
		return err
	}
	return &slurmerr.Error{Before: []string{"slurm_load_jobs error: Invalid job id specified"}, Code: 1}
}

// fields are the row fields that the listing reads.
func (o *Options) fields() []string {
	seen := map[string]bool{}
	var out []string
	for _, list := range [][]string{o.layout.Fields(), splitting(o.layout.Fields()), o.parting(), format.SortFields(o.order), o.filter.fields()} {
		for _, f := range list {
			if !seen[f] {
				seen[f] = true
				out = append(out, f)
			}
		}
	}
	return out
}

// splitting are the fields that tell an array whose tasks are shown apart, for
// a listing that shows fields of the array's tasks at all.
func splitting(shown []string) []string {
	if slices.Contains(shown, "arrayTaskID") {
		return []string{"dependency"}
	}
	return nil
}

// write prints the rows as --json and --yaml do.
func (o *Options) write(got *status.JobList, user string) error {
	f := *o.dump
	f.Slurm, f.Cluster, f.User, f.Now = build.Slurm, o.settings.Cluster, user, got.Time
	_, err := o.p.Out.Write(dump.Jobs(f, format.SortJobs(got.Items, "i")))
	return err
}

// parting are the fields that -P needs.
func (o *Options) parting() []string {
	if o.split {
		return []string{"partition", "state"}
	}
	return nil
}
