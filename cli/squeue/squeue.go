// Package squeue lists the jobs and job steps in the queue.
package squeue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/dump"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Lister is the interface of the cluster that squeue needs.
type Lister interface {
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
	OwnJobs(ctx context.Context) (*status.JobList, error)
	Steps(ctx context.Context, f jobs.StepFilter) (*status.StepList, error)
	Nodes(ctx context.Context) (*status.NodeList, error)
	Watch(ctx context.Context, f jobs.Filter, each func(*status.JobEvent) error, lost func(error)) error
	Cluster(ctx context.Context, names []string) (string, error)
	User() string
}

// Options are the dependencies and options of squeue.
type Options struct {
	p       *stdio.Process
	connect func() (Lister, error)

	filter   filter
	layout   format.Layout[status.Job]
	order    string
	settings format.Settings

	steps          bool // -s
	stepIDs        []string
	stepLayout     format.Layout[status.Step]
	badStepColumns []string // of stepLayout
	badColumns     []string // of layout, until they are reported
	users          []string // of every -u, of which the last counts
	reportedUsers  bool     // the errors about unknown users are printed

	noHeader bool
	long     bool
	verbose  bool
	array    bool
	unique   bool       // --array-unique
	split    bool       // -P
	dump     *dump.Form // --json, --yaml; nil: a table
	every    time.Duration
	clusters []string // -M
	named    bool     // the cluster's name is shown
	// federated: the jobs of all clusters of the federation are listed together.
	federated bool

	view   bool // show the terminal UI
	screen func(ctx context.Context, s jobs.Screen) error
}

// New returns the command. It calls connect once, after it has parsed the command line;
// connect sends no requests.
func New(p *stdio.Process, connect func() (Lister, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	set := option.Squeue
	if o.view = o.view || hasTUI(args); o.view {
		set = option.Sview
	}
	v, rest, err := set.Checked(o.checks(ctx)).ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return o.afterUsers(ctx, err)
	}
	if o.view && o.terminal() {
		return o.open(ctx, v, rest, args)
	}
	if err := o.complete(v, &rest); err != nil {
		return o.afterUsers(ctx, err)
	}
	if len(rest) > 0 {
		slurmerr.Print(o.p.Err, "squeue", &slurmerr.Error{Message: "Unrecognized option: " + rest[0]})
		fmt.Fprint(o.p.Err, set.Usage())
		return &slurmerr.Error{Code: 1}
	}
	if o.verbose {
		if err := o.p.Print(o.settingsText(v)); err != nil {
			return err
		}
	}
	return run(ctx, o)
}

// run connects to the cluster, or to all of its federation, and prints the list.
func run(ctx context.Context, o *Options) error {
	var away error // the first cluster of the federation that cannot be used
	queue, err := o.lister(ctx, func(err error) {
		slurmerr.Print(o.p.Err, "squeue", err)
		if away == nil {
			away = &slurmerr.Error{Code: slurmerr.ExitCode(err)}
		}
	})
	if err != nil {
		return err
	}
	return cmp.Or(o.lists(ctx, queue), away)
}

// lister returns the cluster, or its federation. report is called with the error of each other
// cluster that cannot be used.
func (o *Options) lister(ctx context.Context, report func(error)) (Lister, error) {
	if o.federated {
		return jobs.ConnectFederation(ctx, o.p, report)
	}
	return o.connect()
}

// lists prints the list once or repeatedly.
func (o *Options) lists(ctx context.Context, queue Lister) (err error) {
	o.filter.me(queue.User(), o.p)
	if len(o.filter.Nodes) > 0 { // unknown users are reported first
		if err := o.checkUsers(ctx, queue); err != nil {
			return err
		}
	}
	if err := o.checkNodes(ctx, queue); err != nil {
		return err
	}
	o.reportStepColumns()
	if len(o.clusters) > 0 || o.named {
		if o.settings.Cluster, err = queue.Cluster(ctx, o.clusters); err != nil {
			return err
		}
	}
	switch {
	case o.steps:
		return o.p.Repeat(ctx, o.every, func() error { return listSteps(ctx, o, queue) })
	case o.every > 0 && o.dump == nil && !o.filter.nothing && !o.federated:
		return follow(ctx, o, queue)
	}
	return o.p.Repeat(ctx, o.every, func() error { return list(ctx, o, queue) })
}

// checkNodes returns an error for nodes that the cluster does not have.
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
			return slurmerr.Newf(slurmerr.Refused, "Invalid node name %s", printable.Escape(name))
		}
	}
	return nil
}

func list(ctx context.Context, o *Options, queue Lister) error {
	if o.filter.nothing && o.dump == nil {
		if err := o.checkUsers(ctx, queue); err != nil {
			return err
		}
		if id, single := o.filter.single(); single {
			if missing, err := o.missing(ctx, queue, id); err != nil || missing {
				return o.unknown(err)
			}
		}
		return o.show(&status.JobList{})
	}
	// Slurm reports the unknown users of every -u, also if a later -u or --me replaces them.
	if len(o.users) > 0 && !slices.Equal(o.users, o.filter.Users) {
		if err := o.checkUsers(ctx, queue); err != nil {
			return err
		}
	}
	got, err := queue.Jobs(ctx, o.request())
	if jobs.IsQueueUnavailable(err) {
		return own(ctx, o, queue, err)
	}
	if err != nil {
		return err
	}
	o.warnUnknown(got.UnknownUsers)
	got.Items = o.filter.keep(got.Items)
	if id, single := o.filter.single(); single && len(got.Items) == 0 {
		if missing, err := o.missing(ctx, queue, id); err != nil || missing {
			return o.unknown(err)
		}
	}
	if o.dump != nil {
		return o.write(got, queue.User())
	}
	return o.show(got)
}

// checkUsers prints Slurm's errors about unknown users without listing their jobs.
func (o *Options) checkUsers(ctx context.Context, queue Lister) error {
	users := o.filter.Users
	if len(o.users) > 0 {
		users = o.users
	}
	if len(users) == 0 || o.reportedUsers {
		return nil
	}
	got, err := queue.Jobs(ctx, jobs.Filter{IDs: []string{"0"}, Users: users, Fields: []string{"id"}})
	if err != nil {
		return err
	}
	o.warnUnknown(got.UnknownUsers)
	return nil
}

// afterUsers returns an error about the command line. As in Slurm, the errors about unknown users
// of options before it are printed first.
func (o *Options) afterUsers(ctx context.Context, err error) error {
	if err == nil || len(o.users) == 0 {
		return err
	}
	if queue, unreachable := o.connect(); unreachable == nil {
		_ = o.checkUsers(ctx, queue) // the error about the command line is what matters
	}
	return err
}

// request returns the filter for the server.
func (o *Options) request() jobs.Filter {
	f := o.filter.Filter
	if o.dump == nil {
		f.Fields = o.fields()
	}
	return f
}

// warnUnknown prints Slurm's errors about unknown users.
func (o *Options) warnUnknown(users []string) {
	if o.reportedUsers {
		return
	}
	o.reportedUsers = true
	for _, u := range o.p.Unknown("passwd", users) {
		fmt.Fprintf(o.p.Err, "squeue: error: Invalid user: %s\n\n", printable.Escape(u))
	}
}

// own lists the user's own jobs from the API server if the queue API is unavailable. The
// command still fails, as the list is not complete.
func own(ctx context.Context, o *Options, queue Lister, cause error) error {
	got, err := queue.OwnJobs(ctx)
	if err != nil {
		return cause
	}
	fmt.Fprintln(o.p.Err, "squeue: the queue API is unavailable; these are your own jobs, as last stored")
	if err := o.show(got); err != nil {
		return err
	}
	return cause
}

// missing reports whether the job does not exist, as opposed to one that the filters
// omit, or a task that its array does not have.
func (o *Options) missing(ctx context.Context, queue Lister, id string) (bool, error) {
	whole, _, task := strings.Cut(id, "_")
	if !task && !o.filter.narrow() && !o.filter.nothing {
		return true, nil
	}
	all, err := queue.Jobs(ctx, jobs.Filter{IDs: []string{whole}, States: jobs.AllStates, Fields: []string{"id"}})
	return err == nil && len(all.Items) == 0, err
}

// unknown returns the error about a job that does not exist, if err is nil. With -M, the name of
// the cluster is printed all the same.
func (o *Options) unknown(err error) error {
	if err != nil {
		return err
	}
	if len(o.clusters) > 0 && !o.noHeader && o.dump == nil {
		if err := o.p.Print("CLUSTER: " + o.settings.Cluster + "\n"); err != nil {
			return err
		}
	}
	return &slurmerr.Error{Before: []string{"slurm_load_jobs error: Invalid job id specified"}, Code: 1}
}

// fields returns the row fields that the list needs.
func (o *Options) fields() []string {
	seen := map[string]bool{}
	var out []string
	shown := o.layout.Fields()
	for _, list := range [][]string{
		shown, splitFields(shown), o.partitionFields(), format.SortFields(o.order), o.filter.fields(),
	} {
		for _, f := range list {
			if !seen[f] {
				seen[f] = true
				out = append(out, f)
			}
		}
	}
	return out
}

// splitFields returns the fields that decide whether the tasks of an array have separate
// rows, if the list shows task ids.
func splitFields(shown []string) []string {
	if slices.Contains(shown, "arrayTaskID") {
		return []string{"dependency"}
	}
	return nil
}

// write prints the document of --json or --yaml.
func (o *Options) write(got *status.JobList, user string) error {
	f := *o.dump
	f.Slurm, f.Cluster, f.User, f.Now = build.Slurm, o.settings.Cluster, user, got.Time
	_, err := o.p.Out.Write(dump.Jobs(f, format.SortJobs(got.Items, "i")))
	return err
}

// partitionFields returns the fields that -P needs.
func (o *Options) partitionFields() []string {
	if o.split {
		return []string{"partition", "state"}
	}
	return nil
}
