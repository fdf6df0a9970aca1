// Package sprio shows the factors of the priorities of pending jobs.
package sprio

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is the access to a cluster that sprio needs.
type Cluster interface {
	Priorities(ctx context.Context, f jobs.PriorityFilter) (*status.PriorityList, error)
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
	Cluster(ctx context.Context, names []string) (string, error)
}

// Options are the dependencies and the options of sprio.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)

	filter jobs.PriorityFilter
	text   string // of -o
	// formatted: -o or its variable was given; else job and factors are shown.
	formatted bool
	job       string // columns of the job
	factors   string // columns of the factors; empty: those with a weight
	noHeader  bool
	weights   bool
	norm      bool     // normalized priorities
	byJob     bool     // -j
	jobs      string   // the list of -j
	users     []string // of every -u, of which the last counts
	nothing   bool     // a list of users, partitions or jobs has no elements: no job matches
	clusters  []string
	order     string // of -S
}

// New returns the command. connect is called once, after the command line has been
// parsed.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, rest, err := option.Sprio.Checked(o.checks(ctx)).ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return o.afterUsers(ctx, err)
	}
	if err := o.jobsOf(v, &rest); err != nil {
		return err
	}
	if len(rest) > 0 {
		slurmerr.Print(o.p.Err, "sprio", &slurmerr.Error{Message: "Unrecognized option: " + rest[0]})
		fmt.Fprint(o.p.Err, option.Sprio.Usage())
		return &slurmerr.Error{Code: 1}
	}
	if err := o.complete(v); err != nil {
		return err
	}
	if v.Has("verbose") {
		if err := o.p.Print(o.settingsText(v)); err != nil {
			return err
		}
	}
	return run(ctx, o)
}

// settingsText returns the block of settings that --verbose prints before the list.
func (o *Options) settingsText(v *option.Values) string {
	given := func(name string) string { return cmp.Or(v.Get(name), "(null)") }
	return format.SettingsBlock(11, [][2]any{
		{"format", given("format")},
		{"job_flag", format.Digit(v.Has("jobs"))},
		{"jobs", cmp.Or(o.jobs, "(null)")},
		{"partition", given("partition")},
		{"users", given("user")},
		{"verbose", v.Count("verbose")},
	}) + "\n\n"
}

// complete sets the fields that follow from the options.
func (o *Options) complete(v *option.Values) error {
	o.noHeader, o.weights = v.Has("noheader"), v.Has("weights")
	o.clusters, o.order = v.List("cluster"), v.Get("sort")
	o.filter.Users, o.filter.Partitions = v.List("user"), v.List("partition")
	o.users = v.Given("user")
	for _, name := range []string{"user", "partition"} {
		o.nothing = o.nothing || v.Has(name) && len(v.List(name)) == 0
	}
	return o.completeLayout(v)
}

// jobsOf sets the jobs of -j, whose value may also be the first word that is not an option; it
// is removed from rest. Without any value, -j lists all jobs.
func (o *Options) jobsOf(v *option.Values, rest *[]string) error {
	if !v.Has("jobs") {
		return nil
	}
	text, given := v.ValueOrOperand("jobs", rest)
	if err := checkIDs(text); err != nil {
		return err
	}
	o.jobs = text
	for id := range strings.SplitSeq(text, ",") {
		if id != "" {
			o.filter.IDs = append(o.filter.IDs, id)
		}
	}
	o.byJob = given
	o.nothing = given && len(o.filter.IDs) == 0
	return nil
}

// checks returns those of values that Slurm refuses where they stand.
func (o *Options) checks(ctx context.Context) option.Checks {
	checks := jobs.ClusterChecks(ctx, "cluster", o.connect)
	checks["jobs"] = checkIDs
	checks["user"] = func(text string) error { // an unknown one is no error
		o.users = append(o.users, strings.FieldsFunc(text, func(r rune) bool { return r == ',' })...)
		return nil
	}
	return checks
}

// checkIDs refuses a list with anything but ids of jobs.
func checkIDs(text string) error {
	for id := range strings.SplitSeq(text, ",") {
		number, _, _ := strings.Cut(id, "+") // a component
		if _, ok := jobs.ParseID(number); !ok && id != "" {
			return slurmerr.Newf(slurmerr.Refused, "Invalid job id: %s", printable.Escape(id))
		}
	}
	return nil
}

// completeLayout sets the columns.
func (o *Options) completeLayout(v *option.Values) error {
	long, norm := v.Has("long"), v.Has("norm")
	o.norm = norm
	if v.Last("format") != "" && long { // not by the environment
		return option.FormatAndLong()
	}
	o.job = format.PriorityJob
	if o.formatted = v.Has("format") && !long; o.formatted {
		o.text = v.Get("format")
	}
	if v.Has("sibling") && !v.Has("local") && !long && len(o.clusters) == 0 {
		o.job += format.PriorityCluster
	}
	if v.Has("user") || long {
		o.job += format.PriorityUser
	}
	switch {
	case long && norm:
		o.factors = format.PriorityLongNorm
	case norm:
		o.factors = format.PriorityNorm
	case long:
		o.factors = format.PriorityLong
	}
	return nil
}

func run(ctx context.Context, o *Options) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	s := &format.Settings{}
	if len(o.clusters) > 0 {
		if s.Cluster, err = c.Cluster(ctx, o.clusters); err != nil {
			return err
		}
	}
	if err := o.known(ctx, c); err != nil {
		return err
	}
	list, err := c.Priorities(ctx, o.filter)
	if err != nil {
		return err
	}
	if o.nothing { // a list without elements
		list.Items = nil
	}
	if o.byJob && len(list.Items) == 0 {
		return o.p.Print("Unable to find jobs matching user/id(s) specified\n")
	}
	return o.show(list, s)
}

// known prints Slurm's errors about users that the cluster does not have, also of lists that a
// later one replaces.
func (o *Options) known(ctx context.Context, c Cluster) error {
	if len(o.users) == 0 {
		return nil
	}
	got, err := c.Jobs(ctx, jobs.Filter{IDs: []string{"0"}, Users: o.users, Fields: []string{"id"}})
	if err != nil {
		return err
	}
	for _, u := range o.p.Unknown("passwd", got.UnknownUsers) {
		fmt.Fprintf(o.p.Err, "sprio: error: Invalid user: %s\n\n", printable.Escape(u))
	}
	return nil
}

// afterUsers returns an error about the command line. As in Slurm, the errors about unknown users
// of options before it are printed first.
func (o *Options) afterUsers(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if c, unreachable := o.connect(); unreachable == nil {
		_ = o.known(ctx, c) // the error about the command line is what matters
	}
	return err
}

func (o *Options) show(list *status.PriorityList, s *format.Settings) error {
	text := o.text
	if text == "" && !o.formatted {
		text = o.job + cmp.Or(o.factors, format.PriorityFactors(list))
	}
	layout, bad := format.ParseLetters(format.PriorityColumns(), text)
	fmt.Fprint(o.p.Err, format.InvalidColumns("sprio", bad))
	// Text that is not a field is removed from the line.
	layout = slices.DeleteFunc(
		layout,
		func(c format.Cell[status.Priority]) bool { return c.Column == nil && strings.HasPrefix(c.Text, "%") },
	)
	var out []byte
	if !o.noHeader {
		out = layout.AppendHeader(out)
	}
	if o.weights {
		out = format.AppendWeights(out, layout, list, o.norm)
		_, err := o.p.Out.Write(out)
		return err
	}
	if err := sorted(list.Items, o.order, s); err != nil {
		_, _ = o.p.Out.Write(out) // what Slurm has printed by then
		return err
	}
	for i := range list.Items {
		out = layout.AppendRow(out, &list.Items[i], s)
	}
	_, err := o.p.Out.Write(out)
	return err
}
