// Package sreport reports the usage of accounts, users, jobs and the whole cluster.
package sreport

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Accounting is the access to a cluster that sreport needs.
type Accounting interface {
	ClusterInfo(ctx context.Context) (map[string]any, error)
	Usage(ctx context.Context, q *status.UsageQuery) (*status.UsageList, error)
	Associations(ctx context.Context) (*status.AcctState, error)
	Reservations(ctx context.Context) (*status.ReservationList, error)
	Records(ctx context.Context, q *status.RecordQuery) (*status.RecordList, error)
}

// Options are sreport's dependencies, flags and conditions.
type Options struct {
	p       *stdio.Process
	connect func() (Accounting, error)

	style     format.FieldStyle
	unit      unit
	tres      []string
	tresTyped string // as --tres or tres= had them
	// tresGiven: --tres or tres= was given. tresNamed: it is not "all".
	tresGiven, tresNamed bool

	start, end   time.Time
	format       string
	formatGiven  bool // it may be empty
	users        []string
	accounts     []string
	reservations []string
	clusters     []string

	ofWCKeys         bool   // the report is about wckeys
	kind             string // the type of the report: "cluster", "job", "user" or "reservation"
	byUser           bool   // it is AccountUtilizationByUser
	topCount         int
	tree             bool
	group            bool
	flat             bool
	countJobs        bool
	grouping         []int32      // the upper bounds of the classes of job sizes
	invalidCondition bool         // the report is printed, but the command fails
	notes            bytes.Buffer // on conditions, which are printed once the TRES are known
}

// New returns the command. connect is called once, after the command line has
// been parsed.
func New(p *stdio.Process, connect func() (Accounting, error)) *Options {
	return &Options{p: p, connect: connect, topCount: 10, grouping: []int32{50, 250, 500, 1000}, tres: []string{"cpu"}}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, words, err := option.Sreport.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	exclusive := []string{"local", "all_clusters", "cluster"}
	if len(slices.DeleteFunc(exclusive, func(name string) bool { return !v.Has(name) })) > 1 {
		return &slurmerr.Error{Code: 1, Before: []string{
			"Only one cluster option can be used (--all_clusters OR --cluster OR --local)"}}
	}
	o.clusters = v.All("cluster")
	o.style.NoHeader = v.Has("noheader")
	if last := v.Last("parsable", "parsable2"); last != "" {
		o.style.Delimiter, o.style.Ending = "|", last == "parsable"
	}
	o.unit = units[1].unit
	if v.Has("time") {
		o.setUnit(v.Get("time"))
	}
	if v.Has("tres") {
		o.setTRES(v.Get("tres"))
	}
	if len(words) == 0 {
		return o.interactive(ctx)
	}
	return o.command(ctx, words)
}

// failed returns an error whose explanation has been printed already.
func failed() error { return &slurmerr.Error{Code: 1} }

// interactive reads and runs commands until "quit" or the end of the input. It
// fails if one of them has failed.
func (o *Options) interactive(ctx context.Context) error {
	_, _, typed := o.p.WindowSize()
	var result error
	prompt := keyvalue.Prompt{
		Text: "sreport: ", In: bufio.NewReader(o.p.In), Print: o.p.Print, Echo: !typed,
		Run: func(words []string) (done bool) {
			if isQuit(words[0]) {
				return true
			}
			next := *o // conditions apply to one command
			next.notes = bytes.Buffer{}
			if err := next.command(ctx, words); err != nil {
				slurmerr.Print(o.p.Err, "sreport", err)
				result = failed()
			}
			o.style, o.unit = next.style, next.unit
			return false
		},
	}
	if err := prompt.Loop(); err != nil {
		return err
	}
	return result
}

func isQuit(word string) bool {
	return keyvalue.Abbreviates(word, "quit", 4) || keyvalue.Abbreviates(word, "exit", 1)
}

// command prints a report, or changes a setting of the reports that follow.
func (o *Options) command(ctx context.Context, words []string) error {
	abbreviates := func(name string, least int) bool { return keyvalue.Abbreviates(words[0], name, least) }
	switch word := words[0]; {
	case abbreviates("help", 2):
		return o.p.Print(option.Sreport.Help())
	case isQuit(word), abbreviates("verbose", 4), abbreviates("quiet", 4):
		return nil
	case abbreviates("version", 4):
		return o.p.Print("slurm " + build.Slurm + "\n")
	case strings.EqualFold(word, "parsable"), strings.EqualFold(word, "parsable2"):
		o.style.Delimiter, o.style.Ending = "|", len(word) == len("parsable")
		return nil
	case abbreviates("time", 1):
		if len(words) < 2 {
			return o.tooFewArguments(word)
		}
		o.setUnit(words[1])
		return nil
	}
	return o.report(ctx, words)
}

func (o *Options) tooFewArguments(word string) error {
	fmt.Fprintf(o.p.Err, "too few arguments for keyword:%s\n", printable.Escape(word))
	return failed()
}

// report is one report of sreport(1).
type report struct {
	name  string
	print func(*Options, *data) error
}

// reportType is a group of reports: the first word of a command.
type reportType struct {
	name    string
	valid   string // the names of its reports, as Slurm's message lists them
	reports []report
}

// reportTypes are in Slurm's order. They refer to functions that use the table,
// so it is filled at start.
var reportTypes []reportType

func init() {
	reportTypes = []reportType{
		{
			name: "cluster",
			valid: `"AccountUtilizationByUser", "UserUtilizationByAccount", "UserUtilizationByWckey", ` +
				`"Utilization", and "WCKeyUtilizationByUser"`,
			reports: []report{
				{"AccountUtilizationByUser", (*Options).accountByUser},
				{"UserUtilizationByAccount", (*Options).userByAccount},
				{"UserUtilizationByWckey", (*Options).userByWCKey},
				{"WCKeyUtilizationByUser", (*Options).wckeyByUser},
				{"Utilization", (*Options).utilization},
			},
		},
		{
			name:  "job",
			valid: `"SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey"`,
			reports: []report{
				{"SizesByAccount", (*Options).sizesByAccount},
				{"SizesByAccountAndWcKey", (*Options).sizesByAccountAndWCKey},
				{"SizesByWckey", (*Options).sizesByWCKey},
			},
		},
		{name: "user", valid: `"Top"`, reports: []report{{"TopUsage", (*Options).topUsage}}},
		{
			name: "reservation", valid: `"Utilization"`,
			reports: []report{{"Utilization", (*Options).reservationUtilization}},
		},
	}
}

func findReportType(word string) *reportType {
	for i := range reportTypes {
		if keyvalue.Abbreviates(word, reportTypes[i].name, 1) {
			return &reportTypes[i]
		}
	}
	return nil
}

func (t *reportType) find(word string) *report {
	for i := range t.reports {
		if keyvalue.Abbreviates(word, t.reports[i].name, 1) {
			return &t.reports[i]
		}
	}
	return nil
}

// report prints the report that words name: its type, its name and conditions.
func (o *Options) report(ctx context.Context, words []string) error {
	t := findReportType(words[0])
	if t == nil {
		fmt.Fprintf(o.p.Err, "invalid keyword: %s\n", printable.Escape(words[0]))
		return failed()
	}
	if len(words) < 2 {
		return o.tooFewArguments(words[0])
	}
	r := t.find(words[1])
	if r == nil {
		fmt.Fprintf(o.p.Err, "Not valid report %s\nValid %s reports are, %s\n", words[1], t.name, t.valid)
		return failed()
	}
	o.kind, o.ofWCKeys = t.name, strings.Contains(strings.ToLower(r.name), "wckey")
	o.byUser = r.name == "AccountUtilizationByUser"
	if err := o.parseConditions(r.name, words[2:]); err != nil {
		return err
	}
	d, err := o.read(ctx)
	if err != nil {
		return err
	}
	if err := r.print(o, d); err != nil || !o.invalidCondition {
		return err
	}
	return failed()
}
