// Package sacctmgr shows and changes accounts, users, associations and QOS. It computes
// which objects a command changes, prints that, asks for confirmation, and requests all
// of the changes at once or none.
package sacctmgr

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Manager is what sacctmgr uses of a cluster.
type Manager interface {
	Associations(ctx context.Context) (*status.AcctState, error)
	ClusterInfo(ctx context.Context) (map[string]any, error)
	Usage(ctx context.Context, q *status.UsageQuery) (*status.UsageList, error)
	Manage(ctx context.Context, changes []status.AcctChange) error
	NodeEvents(ctx context.Context, q *status.EventQuery) (*status.EventList, error)
	Transactions(ctx context.Context, q *status.TransactionQuery) (*status.TransactionList, error)
	Archive(ctx context.Context, r *status.ArchiveRequest) error
	Records(ctx context.Context, q *status.RecordQuery) (*status.RecordList, error)
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
}

// Options are sacctmgr's dependencies and flags.
type Options struct {
	p       *stdio.Process
	connect func() (Manager, error)

	manager  Manager
	in       *bufio.Reader
	yes      bool // -i
	quiet    bool
	assocs   bool // -s
	style    format.FieldStyle
	readonly bool
}

// New returns the command. connect is called once, when the cluster is needed.
func New(p *stdio.Process, connect func() (Manager, error)) *Options {
	return &Options{p: p, connect: connect}
}

// failed returns an error whose explanation has been printed already.
func failed() error { return &slurmerr.Error{Code: 1} }

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, words, err := option.Sacctmgr.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	o.yes, o.quiet = v.Has("immediate"), v.Has("quiet")
	o.assocs, o.readonly = v.Has("associations"), v.Has("readonly")
	o.style.NoHeader = v.Has("noheader")
	if last := v.Last("parsable", "parsable2"); last != "" {
		o.style.Delimiter, o.style.Ending = "|", last == "parsable"
	}
	o.in = bufio.NewReader(o.p.In)
	if len(words) > 0 {
		return o.command(ctx, words)
	}
	return o.interactive(ctx)
}

// interactive reads and runs commands until "quit" or the end of the input. It fails if
// one of them has failed.
func (o *Options) interactive(ctx context.Context) error {
	_, _, typed := o.p.WindowSize()
	var failed error
	prompt := keyvalue.Prompt{
		Text: "sacctmgr: ", In: o.in, Print: o.p.Print, Echo: !typed,
		Run: func(words []string) (done bool) {
			if keyvalue.Abbreviates(words[0], "quit", 4) || keyvalue.Abbreviates(words[0], "exit", 4) {
				return true
			}
			if err := o.command(ctx, words); err != nil {
				slurmerr.Print(o.p.Err, "sacctmgr", err)
				failed = &slurmerr.Error{Code: 1}
			}
			return false
		},
	}
	if err := prompt.Loop(); err != nil {
		return err
	}
	return failed
}

// verb is one of sacctmgr's commands.
type verb struct {
	name  string
	least int // letters that are enough of it
	run   func(*Options, context.Context, []string) error
}

// verbs are in Slurm's order. They refer to functions that use the table, so it
// is filled at start.
var verbs []verb

func init() {
	text := func(text func() string) func(*Options, context.Context, []string) error {
		return func(o *Options, _ context.Context, _ []string) error { return o.p.Print(text()) }
	}
	nothing := func(*Options, context.Context, []string) error { return nil }
	verbs = []verb{
		{"add", 3, (*Options).add},
		{"create", 1, (*Options).add},
		{"modify", 1, (*Options).modify},
		{"delete", 3, (*Options).remove},
		{"remove", 3, (*Options).remove},
		{"list", 3, (*Options).show},
		{"show", 3, (*Options).show},
		{"dump", 3, (*Options).dump},
		{"load", 2, (*Options).load},
		{"version", 4, text(func() string { return "slurm " + build.Slurm + "\n" })},
		{"help", 1, text(option.Sacctmgr.Help)},
		{"archive", 3, (*Options).archive},
		{"clear", 3, impossible("clear")},
		{"reconfigure", 3, impossible("reconfigure")},
		{"shutdown", 3, impossible("shutdown")},
		{"verbose", 4, nothing},
		{"quiet", 4, nothing},
		{"oneliner", 1, nothing},
		{"associations", 3, nothing},
	}
}

// impossible returns a command that applies to slurmdbd alone.
func impossible(name string) func(*Options, context.Context, []string) error {
	return func(*Options, context.Context, []string) error {
		return slurmerr.Newf(slurmerr.Refused, "%s is not possible here: the scheduler keeps the database "+
			"(see its --accounting-retention and --accounting-archive)", name)
	}
}

// command runs one command.
func (o *Options) command(ctx context.Context, words []string) error {
	for _, v := range verbs {
		if keyvalue.Abbreviates(words[0], v.name, v.least) {
			return v.run(o, ctx, words[1:])
		}
	}
	fmt.Fprintf(o.p.Err, "invalid keyword: %s\n", printable.Escape(words[0]))
	return failed()
}

// server returns the cluster, and connects to it at the first call.
func (o *Options) server() (Manager, error) {
	if o.manager == nil {
		m, err := o.connect()
		if err != nil {
			return nil, err
		}
		o.manager = m
	}
	return o.manager, nil
}

// operator reports whether the caller is an operator.
func (o *Options) operator(ctx context.Context) (bool, error) {
	m, err := o.server()
	if err != nil {
		return false, err
	}
	info, err := m.ClusterInfo(ctx)
	is, _ := info["operator"].(bool)
	return is, err
}

// readState reads the accounts, users and QOS of the cluster.
func (o *Options) readState(ctx context.Context) (*state, error) {
	m, err := o.server()
	if err != nil {
		return nil, err
	}
	present, err := m.Associations(ctx)
	if err != nil {
		return nil, err
	}
	return newState(present), nil
}

// printUnlessQuiet prints what Slurm shows of a change.
func (o *Options) printUnlessQuiet(text string) {
	if !o.quiet {
		fmt.Fprint(o.p.Out, text)
	}
}

// explain prints a refusal to its stream and returns the error with which the
// command ends.
func (o *Options) explain(err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	out := o.p.Err
	if r.toStdout {
		out = o.p.Out
	}
	fmt.Fprintln(out, printable.EscapeLines(r.Error()))
	return failed()
}

// confirm prints the question and reads a yes or a no. The end of the input is
// a no.
func (o *Options) confirm(question string) (bool, error) {
	const attempts = 10
	fmt.Fprint(o.p.Out, question)
	for range attempts {
		line, err := o.in.ReadString('\n')
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(o.p.Out)
			return false, nil
		}
		if err != nil {
			return false, err
		}
		fmt.Fprint(o.p.Out, "Y or N please\n(N/y): ")
	}
	return false, nil
}
