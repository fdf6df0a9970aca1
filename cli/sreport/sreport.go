// Package sreport reports what was used: by accounts, users and jobs, and of
// the whole cluster.
package sreport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// Accounting is what sreport needs of a cluster.
type Accounting interface {
	Usage(ctx context.Context, q *status.UsageQuery) (*status.UsageList, error)
	Associations(ctx context.Context) (*status.AcctState, error)
	Reservations(ctx context.Context) (*status.ReservationList, error)
	Records(ctx context.Context, q *status.RecordQuery) (*status.RecordList, error)
}

// Options are what sreport needs and what it was told.
type Options struct {
	p       *stdio.Process
	connect func() (Accounting, error)

	style format.FieldStyle
	unit  unit
	tres  []string
	// listed: --tres was given; chosen: by names.
	listed, chosen bool

	start, end time.Time
	format     string
	users      []string
	accounts   []string
	names      []string // of reservations

	kind     string // of the report
	top      int
	tree     bool
	group    bool
	flat     bool
	count    bool
	doubtful bool // some condition was not understood
	grouping []int32
}

// New makes the command. connect is called once, after the command line has
// been read.
func New(p *stdio.Process, connect func() (Accounting, error)) *Options {
	return &Options{p: p, connect: connect, top: 10, grouping: []int32{50, 250, 500, 1000}, tres: []string{"cpu"}}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, words, err := option.Sreport.Begin(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
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

// begins tells whether word is name or a beginning of it with so many letters.
func begins(word, name string, least int) bool {
	return len(word) >= least && len(word) <= len(name) && strings.EqualFold(word, name[:len(word)])
}

// reports by their type, each with its name.
var reports = map[string][]struct {
	name string
	run  func(*Options, *data) error
}{
	"cluster": {
		{"AccountUtilizationByUser", (*Options).accountByUser}, {"UserUtilizationByAccount", (*Options).userByAccount},
		{"UserUtilizationByWckey", (*Options).userByWCKey}, {"WCKeyUtilizationByUser", (*Options).wckeyByUser}, {"Utilization", (*Options).utilization},
	},
	"job":  {{"SizesByAccount", (*Options).sizesByAccount}, {"SizesByAccountAndWcKey", (*Options).sizesByBoth}, {"SizesByWckey", (*Options).sizesByWCKey}},
	"user": {{"TopUsage", (*Options).topUsage}},

	"reservation": {{"Utilization", (*Options).reservations}},
}

var validReports = map[string]string{
	"cluster": `"AccountUtilizationByUser", "UserUtilizationByAccount", "UserUtilizationByWckey", "Utilization", and "WCKeyUtilizationByUser"`,
	"job":     `"SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey"`,
	"user":    `"Top"`,

	"reservation": `"Utilization"`,
}

func (o *Options) report(ctx context.Context, words []string) error {
	kind := ""
	for _, k := range []string{"cluster", "job", "user", "reservation"} {
		if begins(words[0], k, 1) {
			kind = k
		}
	}
	if kind == "" {
		fmt.Fprintf(o.p.Err, "invalid keyword: %s\n", words[0])
		return &slurmerr.Error{Code: 1}
	}
	if len(words) < 2 {
		fmt.Fprintf(o.p.Err, "too few arguments for keyword:%s\n", words[0])
		return &slurmerr.Error{Code: 1}
	}
	name := words[1]
	for _, r := range reports[kind] {
		if begins(name, r.name, 1) {
			o.kind = kind
			if err := o.settings(words[2:]); err != nil {
				return err
			}
			d, err := o.read(ctx, kind)
			if err != nil {
				return err
			}
			if err := r.run(o, d); err != nil || !o.doubtful {
				return err
			}
			return &slurmerr.Error{Code: 1}
		}
	}
	fmt.Fprintf(o.p.Err, "Not valid report %s\nValid %s reports are, %s\n", name, kind, validReports[kind])
	return &slurmerr.Error{Code: 1}
}

// settings reads what follows the report's name.
func (o *Options) settings(words []string) error {
	now := o.p.Now()
	y, m, d := now.Date()
	o.start = time.Date(y, m, d-1, 0, 0, 0, 0, now.Location())
	o.end = time.Date(y, m, d, 0, 0, 0, 0, now.Location())
	for _, w := range words {
		key, v, ok := strings.Cut(w, "=")
		switch {
		case !ok && begins(key, "tree", 4):
			o.tree = true
		case !ok && begins(key, "group", 5):
			o.group = true
		case !ok && begins(key, "FlatView", 2):
			o.flat = true
		case !ok && begins(key, "PrintJobCount", 2):
			o.count = true
		case !ok && begins(key, "all_clusters", 1), !ok && begins(key, "where", 5):
		case begins(key, "start", 1), begins(key, "end", 1):
			t, err := value.PastInstant(v, now)
			if err != nil { // the usual time is taken
				fmt.Fprintln(o.p.Err, badTime(v, err))
				continue
			}
			if begins(key, "start", 1) {
				o.start = t
			} else {
				o.end = t
			}
		case begins(key, "format", 1):
			o.format = v
		case begins(key, "names", 1) && o.kind == "reservation":
			o.names = append(o.names, strings.Split(v, ",")...)
		case begins(key, "users", 1):
			o.users = append(o.users, strings.Split(v, ",")...)
		case begins(key, "accounts", 1):
			o.accounts = append(o.accounts, strings.Split(strings.ToLower(v), ",")...)
		case begins(key, "TopCount", 1) && o.kind == "user":
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 {
				return slurmerr.Newf(slurmerr.Refused, "Invalid value for TopCount (%s)", v)
			}
			o.top = n
		case begins(key, "grouping", 1) && o.kind == "job":
			if err := o.setGrouping(v); err != nil {
				return err
			}
		case begins(key, "clusters", 1), begins(key, "tres", 2) && o.setTRES(v):
		default:
			fmt.Fprintf(o.p.Err, " Unknown condition: %s\nUse keyword set to modify value\n", format.Escape(w))
			o.doubtful = true
		}
	}
	return o.trim(now)
}

func (o *Options) setTRES(v string) bool {
	o.tres, o.listed, o.chosen = strings.Split(strings.ToLower(v), ","), true, !strings.EqualFold(v, "all")
	return true
}

func (o *Options) setGrouping(v string) error {
	o.grouping = nil
	for text := range strings.SplitSeq(v, ",") {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return slurmerr.Newf(slurmerr.Refused, "Bad grouping: %s", v)
		}
		o.grouping = append(o.grouping, int32(n))
	}
	slices.Sort(o.grouping)
	return nil
}

// trim rounds the time to whole hours, as Slurm's reports do: from half past on
// it is the next one.
func (o *Options) trim(now time.Time) error {
	hour := func(t time.Time) time.Time {
		h := t.Hour()
		if t.Minute() >= 30 {
			h++
		}
		return time.Date(t.Year(), t.Month(), t.Day(), h, 0, 0, 0, t.Location())
	}
	if o.end.After(now) {
		o.end = now
	}
	o.start, o.end = hour(o.start), hour(o.end)
	if !o.end.After(o.start) {
		o.end = o.start.Add(time.Hour)
	}
	return nil
}

func badTime(text string, err error) string {
	pos := 0
	var at *value.InstantError
	if errors.As(err, &at) {
		pos = at.Pos
	}
	return fmt.Sprintf("Invalid time specification (pos=%d): %s", pos, format.Escape(text))
}

// data is what a report is made of.
type data struct {
	*status.UsageList
	state   *status.AcctState
	seconds int64
	parent  map[string]string

	// Of a report on reservations alone.
	booked  []status.Reservation
	records []status.Record
}

func (o *Options) read(ctx context.Context, kind string) (*data, error) {
	c, err := o.connect()
	if err != nil {
		return nil, err
	}
	list, err := c.Usage(ctx, &status.UsageQuery{Start: o.start.Unix(), End: o.end.Unix(), Jobs: kind == "job", Reservations: kind == "reservation"})
	if err != nil {
		return nil, err
	}
	state, err := c.Associations(ctx)
	if err != nil {
		return nil, err
	}
	d := &data{UsageList: list, state: state, seconds: o.end.Unix() - o.start.Unix(), parent: map[string]string{}}
	for _, a := range state.Accounts {
		if a.Name != root {
			d.parent[a.Name] = a.Parent
			if a.Parent == "" {
				d.parent[a.Name] = root
			}
		}
	}
	if err := o.knownTRES(d); err != nil {
		return nil, err
	}
	if kind == "reservation" {
		if err := d.readReservations(ctx, c, o); err != nil {
			return nil, err
		}
	}
	d.Items = slices.DeleteFunc(d.Items, func(u status.Usage) bool { return len(o.users) > 0 && !slices.Contains(o.users, u.User) })
	return d, nil
}

// root is the account above all others.
const root = "root"

// whole is what the cluster could have given of a TRES.
func (d *data) whole(tres string) int64 {
	if d.Reported != nil {
		return d.Reported[tres]
	}
	return d.Capacity[tres] * d.seconds
}

// above are an account and those above it.
func (d *data) above(account string) []string {
	out := []string{account}
	for len(out) < 100 && account != root {
		up, ok := d.parent[account]
		if !ok {
			up = root
		}
		if account == "" || up == account {
			break
		}
		out, account = append(out, up), up
	}
	return out
}

// head writes the title of a report.
func (o *Options) head(title, unit string, secs bool) error {
	if o.style.NoHeader {
		return nil
	}
	const layout = "2006-01-02T15:04:05"
	line := strings.Repeat("-", 80)
	span := ""
	if secs {
		span = fmt.Sprintf(" (%d secs)", o.end.Unix()-o.start.Unix())
	}
	return o.p.Print(fmt.Sprintf("%s\n%s %s - %s%s\n%s\n%s\n", line, title, o.start.Format(layout), o.end.Add(-time.Second).Format(layout), span, unit, line))
}

// usageUnit is the second line of the title.
func (o *Options) usageUnit() string {
	if !o.unit.amount {
		return "Usage reported in " + o.unit.name
	}
	what := "TRES"
	if !o.listed {
		what = "CPU"
	}
	return "Usage reported in " + what + " " + o.unit.name
}

// fields are the columns that were asked for, as far as there are such.
func (o *Options) fields(table []format.Field) (at []int, chosen []format.Field) {
	for item := range strings.SplitSeq(o.format, ",") {
		i, f, bad := format.ParseFields(table, shownNames(item))
		if bad != "" {
			fmt.Fprintf(o.p.Err, " Unknown field '%s'\n", format.Escape(item))
			o.doubtful = true
			continue
		}
		at, chosen = append(at, i...), append(chosen, f...)
	}
	return at, chosen
}

// print writes lines of the columns asked for.
func (o *Options) print(table []format.Field, usual string, rows []map[string]string) error {
	var at []int
	var chosen []format.Field
	for name := range strings.SplitSeq(usual, ",") {
		i := slices.IndexFunc(table, func(f format.Field) bool { return f.Name == name })
		at, chosen = append(at, i), append(chosen, table[i])
	}
	if o.format != "" {
		at, chosen = o.fields(table)
	}
	b := format.AppendFieldHeader(nil, chosen, o.style)
	values := make([]string, len(at))
	for _, r := range rows {
		for i, k := range at {
			values[i] = r[table[k].Name]
		}
		b = format.AppendFields(b, chosen, values, o.style)
	}
	_, err := o.p.Out.Write(b)
	return err
}
