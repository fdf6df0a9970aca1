// Package sacctmgr shows and changes accounts, users, associations and QOS. It
// works out what a command means for the objects, shows it, asks, and has all
// of the changes made at once or none.
package sacctmgr

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Manager is what sacctmgr needs of a cluster.
type Manager interface {
	Associations(ctx context.Context) (*status.AcctState, error)
	Manage(ctx context.Context, changes []status.AcctChange) error
	NodeEvents(ctx context.Context, q *status.EventQuery) (*status.EventList, error)
	Transactions(ctx context.Context, q *status.TransactionQuery) (*status.TransactionList, error)
	Archive(ctx context.Context, r *status.ArchiveRequest) error
	Records(ctx context.Context, q *status.RecordQuery) (*status.RecordList, error)
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
}

// Options are what sacctmgr needs and what it was told.
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

// New makes the command. connect is called once, when the cluster is needed.
func New(p *stdio.Process, connect func() (Manager, error)) *Options {
	return &Options{p: p, connect: connect}
}

// failed is an error that has been explained already.
func failed() error { return &slurmerr.Error{Code: 1} }

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, words, err := option.Sacctmgr.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	o.yes, o.quiet, o.assocs, o.readonly = v.Has("immediate"), v.Has("quiet"), v.Has("associations"), v.Has("readonly")
	o.style.NoHeader = v.Has("noheader")
	if v.Has("parsable") || v.Has("parsable2") {
		o.style.Delimiter, o.style.Ending = "|", v.Has("parsable") && !v.Has("parsable2")
	}
	o.in = bufio.NewReader(o.p.In)
	if len(words) > 0 {
		return o.command(ctx, words)
	}
	return o.interactive(ctx)
}

// interactive reads commands until the end or "quit".
func (o *Options) interactive(ctx context.Context) error {
	for {
		if err := o.p.Print("sacctmgr: "); err != nil {
			return err
		}
		line, err := o.in.ReadString('\n')
		words := split(line)
		if len(words) > 0 {
			if oneOf(words[0], "quit", 4) || oneOf(words[0], "exit", 4) {
				return nil
			}
			slurmerr.Print(o.p.Err, "sacctmgr", o.command(ctx, words))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// split cuts a line into words; quotes hold words together.
func split(line string) []string {
	var out []string
	var word strings.Builder
	quote, open := byte(0), false
	for i := range len(line) {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if open || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteByte(c)
		}
	}
	if open || word.Len() > 0 {
		out = append(out, word.String())
	}
	return out
}

// oneOf tells whether word is name or a beginning of it with so many letters.
func oneOf(word, name string, least int) bool {
	return len(word) >= min(least, len(name)) && len(word) <= len(name) && strings.EqualFold(word, name[:len(word)])
}

func (o *Options) command(ctx context.Context, words []string) error {
	verb, rest := words[0], words[1:]
	switch {
	case oneOf(verb, "add", 3), oneOf(verb, "create", 1):
		return o.change(ctx, "add", rest)
	case oneOf(verb, "modify", 1):
		return o.change(ctx, "modify", rest)
	case oneOf(verb, "delete", 3), oneOf(verb, "remove", 3):
		return o.change(ctx, "delete", rest)
	case oneOf(verb, "list", 3), oneOf(verb, "show", 3):
		return o.show(ctx, rest)
	case oneOf(verb, "dump", 3):
		return o.dump(ctx, rest)
	case oneOf(verb, "load", 2):
		return o.load(ctx, rest)
	case oneOf(verb, "version", 4):
		return o.p.Print("slurm " + build.Slurm + "\n")
	case oneOf(verb, "help", 1):
		return o.p.Print(option.Sacctmgr.Help())
	case oneOf(verb, "archive", 3):
		return o.archive(ctx, rest)
	case oneOf(verb, "clear", 3), oneOf(verb, "reconfigure", 3), oneOf(verb, "shutdown", 3):
		return slurmerr.Newf(slurmerr.Refused, "%s is not possible here: the scheduler keeps the database (see its --accounting-retention and --accounting-archive)", verb)
	case oneOf(verb, "verbose", 4), oneOf(verb, "quiet", 4), oneOf(verb, "oneliner", 1), oneOf(verb, "associations", 3):
		return nil
	}
	fmt.Fprintf(o.p.Err, "invalid keyword: %s\n", verb)
	return failed()
}

// server is the cluster, connected to when it is first needed.
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

// world reads the present state.
func (o *Options) world(ctx context.Context) (*world, error) {
	m, err := o.server()
	if err != nil {
		return nil, err
	}
	state, err := m.Associations(ctx)
	if err != nil {
		return nil, err
	}
	return newWorld(state), nil
}

// entities that may be changed, as the message about another says.
const (
	changeable = `Input line must include "Account", "Cluster", "Coordinator", "Federation", "QOS", "Resource", or "User"`
	modifiable = `Input line must include "Account", "Cluster", "Federation", "Job", "QOS", "Resource" or "User"`
)

// change does add, modify or delete: it works out the changes, shows them,
// asks, and has them made.
func (o *Options) change(ctx context.Context, verb string, words []string) error {
	if o.readonly {
		fmt.Fprintln(o.p.Err, "Can't run this command in readonly mode.")
		return failed()
	}
	w, err := o.world(ctx)
	if err != nil {
		return err
	}
	var run func(*plan, []pair) error
	entity := ""
	if len(words) > 0 {
		entity = words[0]
	}
	table := map[string]map[string]func(*plan, []pair) error{
		"account":     {"add": addAccounts, "modify": modifyAccounts, "delete": deleteAccounts},
		"user":        {"add": addUsers, "modify": modifyUsers, "delete": deleteUsers},
		"qos":         {"add": addQOS, "modify": modifyQOS, "delete": deleteQOS},
		"coordinator": {"add": addCoordinators, "delete": deleteCoordinators},
		"cluster":     {"add": oneCluster, "modify": modifyCluster, "delete": oneCluster},
	}
	for name, verbs := range table {
		if oneOf(strings.TrimSuffix(strings.ToLower(entity), "s"), strings.TrimSuffix(name, "s"), 2) || oneOf(entity, name, 2) {
			run = verbs[verb]
		}
	}
	if run == nil {
		entities := changeable
		if verb == "modify" {
			entities = modifiable
		}
		fmt.Fprintf(o.p.Err, "No valid entity in %s command\n%s\n", verb, entities)
		return failed()
	}
	p := &plan{world: w}
	err = run(p, pairs(words[1:]))
	o.tell(p.text.String())
	if err != nil {
		return o.explain(err)
	}
	changes := w.changes()
	switch {
	case len(changes) > 0:
	case verb == "modify": // it was so before
		return nil
	default:
		return failed()
	}
	return o.commit(ctx, changes)
}

func (o *Options) tell(text string) {
	if !o.quiet {
		fmt.Fprint(o.p.Out, text)
	}
}

// refusal is an explanation on a command's own standard error, as it is.
type refusal string

func (r refusal) Error() string { return string(r) }

// told is a refusal that Slurm writes to standard output.
type told string

func (t told) Error() string { return string(t) }

func (o *Options) explain(err error) error {
	var t told
	if errors.As(err, &t) {
		fmt.Fprintln(o.p.Out, string(t))
		return failed()
	}
	var r refusal
	if errors.As(err, &r) {
		out := o.p.Err
		if strings.HasPrefix(string(r), " Nothing ") { // that is no error
			out = o.p.Out
		}
		fmt.Fprintln(out, string(r))
		return failed()
	}
	return err
}

func (o *Options) commit(ctx context.Context, changes []status.AcctChange) error {
	if !o.yes {
		ok, err := o.ask()
		if err != nil {
			return err
		}
		if !ok {
			o.tell(" Changes Discarded\n")
			return failed()
		}
	}
	err := o.manager.Manage(ctx, changes)
	if err != nil && err.Error() == string(errDenied) {
		fmt.Fprintf(o.p.Err, "sacctmgr: error: Your user doesn't have privilege to perform this action\n")
	}
	if err != nil {
		fmt.Fprintf(o.p.Err, " Error with request: %v\n", err)
		return failed()
	}
	return nil
}

// errDenied is the server's text for what the caller may not do.
const errDenied = "Access/permission denied"

// ask wants a yes or a no; the end of the input is a no.
func (o *Options) ask() (bool, error) {
	return o.askWith("Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): ")
}

func (o *Options) askWith(question string) (bool, error) {
	fmt.Fprint(o.p.Out, question)
	for range 10 {
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

// pair is one KEY=VALUE, KEY+=VALUE or KEY-=VALUE of a command line, or a bare
// word (no key).
type pair struct{ key, op, value, text string }

func pairs(words []string) []pair {
	var out []pair
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		p := pair{text: w, op: "="}
		switch {
		case !ok:
			p.value = w
		case strings.HasSuffix(key, "+"), strings.HasSuffix(key, "-"):
			p.key, p.op, p.value = key[:len(key)-1], key[len(key)-1:], value
		default:
			p.key, p.value = key, value
		}
		p.value = strings.Trim(p.value, `"'`)
		out = append(out, p)
	}
	return out
}

// list splits a value at commas.
func (p pair) list() []string {
	var out []string
	for s := range strings.SplitSeq(p.value, ",") {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (p pair) lower() []string {
	out := p.list()
	for i := range out {
		out[i] = strings.ToLower(out[i])
	}
	return out
}

func (p pair) is(names ...string) bool {
	for _, n := range names {
		if oneOf(p.key, n, 3) {
			return true
		}
	}
	return false
}
