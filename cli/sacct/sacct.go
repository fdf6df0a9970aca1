// Package sacct shows the jobs and steps in accounting.
package sacct

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/dump"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Accounting is what sacct needs of a cluster.
type Accounting interface {
	Records(ctx context.Context, q *status.RecordQuery) (*status.RecordList, error)
	Script(ctx context.Context, id string) ([]byte, error)
	Environment(ctx context.Context, id string) ([]string, error)
}

// Options are the dependencies and the options of sacct.
type Options struct {
	p       *stdio.Process
	connect func() (Accounting, error)

	query    status.RecordQuery
	given    status.RecordQuery  // the users, groups and QOS up to the first wrong value
	steps    map[string][]string // requested job -> requested steps; absent: all
	clusters []string
	reasons  []string

	at       []int // of format.AcctFields
	fields   []format.Field
	style    format.FieldStyle
	settings format.AcctSettings
	dump     *dump.Form // of --json or --yaml; nil: fields
	part     *part      // of -B or --env-vars; nil: fields
	flags    []string
	badNodes error // why -N is no list of nodes
	nothing  bool  // a filter is an empty list: no job matches
	untilNow bool  // the time window ends now: no jobs that become eligible later
	// ownComponents: of heterogeneous jobs only the components that -j names (--whole-hetjob=no).
	ownComponents bool
	unasked       bool // --allusers: the query does not have the users that were given
	groupsFirst   bool // -g stands before -u
}

// New returns the command. connect is called once, after the command line has been
// parsed.
func New(p *stdio.Process, connect func() (Accounting, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, rest, err := option.Sacct.Checked(o.checks()).ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil {
		return o.earlier(ctx, err)
	}
	if v.Has("helpformat") {
		return o.p.Print(helpFormat())
	}
	if len(rest) > 0 {
		return slurmerr.Newf(slurmerr.Refused, "Unknown arguments:\n %s", strings.Join(rest, "\n "))
	}
	o.given.QOS = lower(v.All("qos"))
	if err := o.complete(v); err != nil {
		return o.earlier(ctx, err)
	}
	return run(ctx, o)
}

// earlier returns the error about an unknown user, group or QOS, which Slurm finds before
// it comes to err; err if there is none.
func (o *Options) earlier(ctx context.Context, err error) error {
	q := &o.given
	if err == nil || len(q.Users)+len(q.Groups)+len(q.QOS) == 0 {
		return err
	}
	cluster, failed := o.connect()
	if failed != nil {
		return err
	}
	return cmp.Or(o.unknownGiven(ctx, cluster), err)
}

// unknownGiven returns the error about a user, group or QOS of the command line that does
// not exist.
func (o *Options) unknownGiven(ctx context.Context, cluster Accounting) error {
	q := o.given
	q.Start, q.End = 1, 1 // no record is of interest
	list, err := o.records(ctx, cluster, q)
	if err != nil {
		return nil //nolint:nilerr // the error of the command itself counts
	}
	return o.unknown(list)
}

// helpFormat lists the fields, four in a line.
func helpFormat() string {
	var b strings.Builder
	for i, f := range format.AcctFields {
		fmt.Fprintf(&b, "%-19s", f.Name)
		if i%4 == 3 || i == len(format.AcctFields)-1 {
			b.WriteString("\n")
		} else {
			b.WriteString(" ")
		}
	}
	return b.String()
}

func run(ctx context.Context, o *Options) error {
	if o.badNodes != nil { // which Slurm finds once it has printed the header
		if o.part == nil && o.dump == nil {
			if err := o.show(nil); err != nil {
				return err
			}
		}
		return o.badNodes
	}
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	if o.unasked { // the query does not name them
		if err := o.unknownGiven(ctx, cluster); err != nil {
			return err
		}
	}
	list, err := o.records(ctx, cluster, o.query)
	if err != nil {
		return err
	}
	if err := o.unknown(list); err != nil {
		return err
	}
	missing := o.missing(list)
	o.settings.Now = list.Time
	list.Items = slices.DeleteFunc(list.Items, func(r status.Record) bool {
		return o.nothing || o.ownComponents && !o.namesComponent(&r) ||
			o.untilNow && r.Eligible > list.Time || len(o.reasons) > 0 &&
			!slices.ContainsFunc(o.reasons, func(s string) bool { return strings.EqualFold(s, r.Reason) }) ||
			len(o.clusters) > 0 && !slices.Contains(o.clusters, r.Cluster) ||
			len(o.flags) > 0 && !slices.ContainsFunc(o.flags,
				func(f string) bool { return slices.Contains(format.AcctFlags(&r), f) })
	})
	for i := range list.Items {
		o.chooseSteps(&list.Items[i])
	}
	switch {
	case o.part != nil:
		err = o.showParts(ctx, cluster, list.Items)
	case o.dump != nil:
		err = o.print(list)
	default:
		err = o.show(list.Items)
	}
	if err == nil {
		err = missing
	}
	return err
}

// missing returns why records may be missing in the list; nil: every requested record
// is in it. A script takes a job that is not listed for one that has ended, or never
// existed.
func (o *Options) missing(list *status.RecordList) error {
	listed := func(id string) bool {
		id, _, _ = strings.Cut(id, "_")
		id, _, _ = strings.Cut(id, "+")
		n, err := strconv.ParseInt(id, 10, 64)
		return err == nil &&
			slices.ContainsFunc(
				list.Items,
				func(r status.Record) bool { return n == r.ID || n == r.ArrayJobID || n == r.HetJobID },
			)
	}
	if list.Warning == "" {
		return nil
	}
	if len(o.query.Jobs) > 0 && !slices.ContainsFunc(o.query.Jobs, func(id string) bool { return !listed(id) }) {
		fmt.Fprintln(o.p.Err, "sacct: "+list.Warning)
		return nil
	}
	return slurmerr.New(slurmerr.Refused, list.Warning)
}

// unknown refuses users, groups and QOS that do not exist.
func (o *Options) unknown(list *status.RecordList) error {
	if len(list.UnknownUsers) > 0 && (!o.groupsFirst || len(list.UnknownGroups) == 0) {
		return slurmerr.New(slurmerr.Refused, "Invalid user id: "+printable.Escape(list.UnknownUsers[0]))
	}
	if len(list.UnknownGroups) > 0 {
		return slurmerr.New(slurmerr.Refused, "Invalid group id: "+printable.Escape(list.UnknownGroups[0]))
	}
	if list.UnknownQOS != "" {
		slices.SortStableFunc(list.QOS, func(a, b string) int { // the QOS that every cluster has is the first
			return cmp.Compare(format.Digit(a != "normal"), format.Digit(b != "normal"))
		})
		e := slurmerr.New(slurmerr.Fatal, "problem processing qos list")
		e.Before = []string{
			fmt.Sprintf(
				"sacct: error: You gave a bad qos '%s'. Valid QOS's are %s",
				printable.Escape(list.UnknownQOS),
				strings.Join(list.QOS, ","),
			),
		}
		return e
	}
	return nil
}

// show prints a line for each job and step.
func (o *Options) show(items []status.Record) error {
	b := format.AppendFieldHeader(nil, o.fields, o.style)
	values := make([]string, len(o.fields))
	line := func(r *format.AcctRow) {
		for i, at := range o.at {
			values[i] = format.AcctValue(format.AcctFields[at].Name, r, &o.settings)
		}
		b = format.AppendFields(b, o.fields, values, o.style)
	}
	for i := range items {
		r := &items[i]
		if o.wholeJob(r) {
			line(&format.AcctRow{Job: r})
		}
		for k := range r.Steps {
			line(&format.AcctRow{Job: r, Step: &r.Steps[k]})
		}
	}
	if _, err := o.p.Out.Write(b); err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	return nil
}

// wanted returns the requested steps of a record; all: every step, and the job.
func (o *Options) wanted(r *status.Record) (steps []string, all bool) {
	if len(o.query.Jobs) == 0 {
		return nil, true
	}
	names := []string{format.AcctID(r), fmt.Sprint(r.ID), fmt.Sprint(r.ArrayJobID), fmt.Sprint(r.HetJobID)}
	for _, name := range names {
		list, ok := o.steps[name]
		switch {
		case ok && slices.Contains(list, ""):
			return nil, true
		case ok:
			steps = append(steps, list...)
		}
	}
	return steps, len(steps) == 0
}

func (o *Options) wholeJob(r *status.Record) bool {
	_, all := o.wanted(r)
	return all
}

func (o *Options) chooseSteps(r *status.Record) {
	onlyPending := strings.Join(slices.Compact(slices.Clone(o.query.States)), ",") == "PENDING"
	if o.query.NoSteps || onlyPending { // steps are never pending
		r.Steps = nil
		return
	}
	if steps, all := o.wanted(r); !all {
		r.Steps = slices.DeleteFunc(r.Steps, func(s status.StepRecord) bool { return !slices.Contains(steps, s.Step) })
	}
}
