// Package scancel cancels jobs, or sends them signals.
package scancel

import (
	"bufio"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Queue is the access to a cluster that scancel needs.
type Queue interface {
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
	Operate(ctx context.Context, op status.Operation) (*status.OperationResult, error)
	Cluster(ctx context.Context, names []string) (string, error)
	User() string
}

// Options is one call of scancel.
type Options struct {
	p       *stdio.Process
	connect func() (Queue, error)

	op          status.Operation
	me          bool
	clusters    []string
	missing     []string // with -i: given jobs that do not exist
	verbose     bool
	quiet       bool
	variable    *string // SCANCEL_STATE; nil: not set
	interactive bool
	sibling     bool // --sibling: no job belongs to a federation
	nothing     bool // a filter is empty: no job matches
}

// New returns the command. connect is called once, after the command line was parsed.
func New(p *stdio.Process, connect func() (Queue, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, rest, err := option.Scancel.Checked(o.checks(ctx)).ParseAndReport(args, o.lookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	if err := o.complete(v, rest); err != nil {
		return err
	}
	return run(ctx, o)
}

// run sends the operation and reports its result.
func run(ctx context.Context, o *Options) error {
	queue, err := o.connect()
	if err != nil {
		return err
	}
	if err := o.check(ctx, queue); err != nil {
		return err
	}
	if err := o.addMe(queue.User()); err != nil {
		return err
	}
	if o.nothing {
		if len(o.op.Jobs) == 0 {
			return o.report(nil)
		}
		o.op.Partitions = []string{""} // of no job; ids that do not exist are reported all the same
	}
	if o.sibling {
		return o.refuseSibling(ctx, queue)
	}
	if o.interactive {
		if err := o.choose(ctx, queue); err != nil {
			return err
		}
		if len(o.op.Jobs) == 0 {
			return o.report(o.absent())
		}
	}
	if o.verbose {
		for _, id := range o.op.Jobs {
			o.println(o.describe(id) + " " + id)
		}
	}
	result, err := queue.Operate(ctx, o.op)
	if err != nil {
		return err
	}
	if o.verbose && len(o.op.Jobs) == 0 {
		for _, item := range result.Items {
			o.println(o.describe(item.Job) + " " + printable.Escape(item.Job))
		}
	}
	return o.report(append(o.absent(), result.Items...))
}

// check returns an error for unknown clusters and users.
func (o *Options) check(ctx context.Context, queue Queue) error {
	if len(o.clusters) > 0 {
		if _, err := queue.Cluster(ctx, o.clusters); err != nil {
			return err
		}
	}
	if len(o.op.Users) == 0 {
		return nil
	}
	for _, u := range o.op.Users { // one name, not a list
		if strings.Contains(u, ",") {
			return slurmerr.Newf(slurmerr.Refused, "Invalid user name: %s", printable.Escape(u))
		}
	}
	list, err := queue.Jobs(ctx, jobs.Filter{IDs: []string{"0"}, Users: o.op.Users, Fields: []string{"id"}})
	if err != nil {
		return err
	}
	for _, u := range o.p.Unknown("passwd", list.UnknownUsers) {
		return slurmerr.Newf(slurmerr.Refused, "Invalid user name: %s", printable.Escape(u))
	}
	return nil
}

// absent returns the results for jobs that -i did not find.
func (o *Options) absent() []status.OperationStatus {
	var out []status.OperationStatus
	for _, id := range o.missing {
		out = append(out, status.OperationStatus{
			Job: id, Error: jobs.ErrInvalidID, Code: status.CodeInvalidJobID,
		})
	}
	return out
}

// describe returns the beginning of a line about a job or step.
func (o *Options) describe(id string) string {
	kind := "job"
	if strings.Contains(id, ".") {
		kind = "step"
	}
	if o.op.Verb == status.OpSignal {
		return fmt.Sprintf("Signal %d to %s", o.op.Signal, kind)
	}
	return "Terminating " + kind
}

// println prints a line to the error stream.
func (o *Options) println(text string) { fmt.Fprintf(o.p.Err, "scancel: %s\n", text) }

// addMe turns --me into a filter by user. An empty user name would be no filter, and all
// jobs would match.
func (o *Options) addMe(user string) error {
	if !o.me {
		return nil
	}
	if user == "" {
		return slurmerr.New(slurmerr.Refused, "--me: the credential does not name a user; choose one with --user")
	}
	o.op.Users = append(o.op.Users, user)
	return nil
}

// choose lists the matching jobs and asks about each, or about a given step.
func (o *Options) choose(ctx context.Context, queue Queue) error {
	op, f := &o.op, o.filter()
	in := bufio.NewScanner(o.p.In)
	named := op.Jobs
	op.Jobs = nil
	if len(named) == 0 {
		named = []string{""}
	}
	for _, name := range named {
		job, step, _ := strings.Cut(name, ".")
		if f.IDs = nil; name != "" {
			f.IDs = []string{job}
		}
		list, err := queue.Jobs(ctx, f)
		if err != nil {
			return err
		}
		list.Items = slices.DeleteFunc(list.Items, func(j status.Job) bool { return j.State == "COMPLETING" })
		if len(list.Items) == 0 && name != "" {
			o.missing = append(o.missing, name)
		}
		for i := range list.Items {
			j := &list.Items[i]
			id := format.JobID(j)
			if step != "" {
				id += "." + step
			}
			if o.confirm(in, j, id) {
				op.Jobs = append(op.Jobs, id)
			}
		}
	}
	return nil
}

// filter selects the jobs of the operation, without their ids.
func (o *Options) filter() jobs.Filter {
	op := &o.op
	return jobs.Filter{Users: op.Users, States: op.States, Partitions: op.Partitions, Names: op.Names,
		Accounts: op.Accounts, QOS: op.QOS, Nodes: op.Nodes, WCKeys: op.WCKeys, Reservations: op.Reservations}
}

// confirm asks the user whether to cancel a job or step.
func (o *Options) confirm(in *bufio.Scanner, j *status.Job, id string) bool {
	for {
		kind := "job_id"
		if strings.Contains(id, ".") {
			kind = "step_id"
		}
		fmt.Fprintf(o.p.Out, "Cancel %s=%s name=%s partition=%s [y/n]? ",
			kind, id, printable.Escape(j.Name), j.Partition)
		if !in.Scan() {
			return false
		}
		switch answer := strings.ToLower(strings.TrimSpace(in.Text())); {
		case strings.HasPrefix(answer, "y"):
			return true
		case strings.HasPrefix(answer, "n"):
			return false
		}
	}
}

// filtered reports whether jobs were selected by their properties.
func (o *Options) filtered() bool {
	op := &o.op
	return len(op.Users)+len(op.Names)+len(op.Partitions)+len(op.States)+len(op.Accounts)+len(op.QOS)+
		len(op.WCKeys)+len(op.Reservations)+len(op.Nodes) > 0
}

// filters returns the filters for Slurm's message.
func (o *Options) filters() string {
	op, text := &o.op, ""
	for _, f := range []struct {
		name string
		list []string
	}{{"account", op.Accounts}, {"job_name", op.Names}, {"nodelist", op.Nodes}, {"partition", op.Partitions},
		{"qos", op.QOS},
		{"reservation", op.Reservations}, {"state", op.States}, {"user_name", op.Users}, {"wckey", op.WCKeys}} {
		if len(f.list) > 0 {
			text += " " + f.name + "=" + printable.Escape(strings.Join(f.list, ","))
		}
	}
	if text == "" {
		return ""
	}
	return ", including:" + text + " "
}

// exitCodes are the exit codes of errors other than 1: the low byte of Slurm's error
// number.
var exitCodes = map[status.ErrorCode]int{
	status.CodeAccessDenied:       210,
	status.CodeComponentOperation: 60,
}

// exitNoStep is the exit code for a step that its job does not have.
const exitNoStep = 225

// report reports the jobs that could not be cancelled. As in Slurm 22.05, an unknown or
// finished job is not an error of a plain cancellation.
func (o *Options) report(items []status.OperationStatus) error {
	code := 0
	for _, item := range items {
		if item.Error == "" {
			continue
		}
		what, name := "job id", item.Job
		harmless := item.Ended()
		if strings.Contains(item.Job, ".") {
			what, harmless = "job step id", false
		}
		harmless = harmless && !o.interactive
		plain := o.op.Verb == status.OpCancel && !o.filtered()
		if (!harmless || !plain) && code == 0 {
			code = max(1, exitCodes[item.Code])
			if item.NoStep {
				code = exitNoStep
			}
		}
		if item.NoStep { // Slurm names the job alone
			name, _, _ = strings.Cut(name, ".")
		}
		if o.verbose || item.NoStep || (!harmless || !plain) && !o.quiet {
			o.println(fmt.Sprintf("error: Kill job error on %s %s: %s", what, name, printable.Escape(item.Error)))
		}
	}
	if len(items) == 0 && o.verbose {
		o.println("error: No active jobs match ALL job filters" + o.filters())
	}
	if code == 0 {
		return nil
	}
	return &slurmerr.Error{Code: code}
}

// jobID matches the ids of jobs: 12, 12_3, 12_[1-3,5], 12+1.
var jobID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]+(_([0-9]*|\*|\[[0-9,:-]+\])|\+[0-9]+)?$`)
})

// stepID matches the ids of steps.
var stepID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]+([_+][0-9]+)?\.([0-9]*|batch|extern|interactive)$`)
})
