package sacct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/dump"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// complete sets the fields that follow from the options.
func (o *Options) complete(v *option.Values) error {
	for _, step := range []func(*option.Values) error{
		o.layout, o.lists, o.people, o.jobs, o.ranges, o.states, o.times, o.completePart, o.chooseFlags,
	} {
		if err := step(v); err != nil {
			return err
		}
	}
	return nil
}

// layout parses the options for the output format.
func (o *Options) layout(v *option.Values) error {
	times, err := format.ParseTimeFormat(o.p.Env("SLURM_TIME_FORMAT"))
	if err != nil {
		slurmerr.Print(o.p.Err, "sacct", err)
	}
	o.settings.Settings = format.Settings{Location: o.p.Now().Location(), Layout: times, NoConvert: v.Has("noconvert")}
	if v.Has("units") {
		o.settings.Unit = strings.ToUpper(v.Get("units"))[0] // the rest does not count
	}
	o.style.NoHeader = v.Has("noheader")
	if last := v.Last("parsable", "parsable2"); last != "" {
		o.style.Delimiter, o.style.Ending = "|", last == "parsable"
		if v.Has("delimiter") {
			o.style.Delimiter = v.Get("delimiter")
			o.style.Undelimited = o.style.Delimiter == ""
		}
	}
	chosen := v.Last("format") != "" // not by the environment
	if chosen && v.Has("long") {
		return option.FormatAndLong()
	}
	var fields []string
	switch {
	case chosen:
		fields = append(fields, v.JoinedGiven("format")) // several lists add up
	case v.Has("format") && !v.Has("brief") && !v.Has("long"):
		fields = append(fields, v.Get("format"))
	}
	if v.Has("brief") {
		fields = append(fields, format.AcctBrief)
	}
	if v.Has("long") {
		fields = append(fields, format.AcctLong)
	}
	if fields == nil {
		fields = []string{format.AcctDefault}
	}
	for _, syntax := range []dump.Syntax{dump.YAML, dump.JSON} {
		name := syntax.String()
		if !v.Has(name) {
			continue
		}
		f, ok := dump.ParseForm(syntax, v.Get(name))
		if !ok {
			return slurmerr.Newf(
				slurmerr.Refused,
				"--%s=%s: unknown data parser (v0.0.38 to v0.0.44)",
				name,
				printable.Escape(v.Get(name)),
			)
		}
		f.Command = []string{"sacct", "--" + name}
		o.dump = &f
	}
	return o.chooseFields(strings.Join(fields, ","))
}

// renamed are the fields that Slurm 23.02 renamed: by their later names in lower case,
// the later name and that of 22.05. The later names are neither abbreviated nor listed.
var renamed = map[string][2]string{
	"planned":       {"Planned", "Reserved"},
	"plannedcpu":    {"PlannedCPU", "ResvCPU"},
	"plannedcpuraw": {"PlannedCPURAW", "ResvCPURAW"},
}

func (o *Options) chooseFields(text string) error {
	var items []string
	headers := map[int]string{} // of the fields that were given by a later name
	for item := range strings.SplitSeq(format.FieldsBeforeGap(text), ",") {
		item = strings.TrimSpace(item)
		name, _, _ := strings.Cut(item, "%")
		switch later, ok := renamed[strings.ToLower(name)]; {
		case name == "":
		case strings.EqualFold(item, "ALL"):
			for _, f := range format.AcctFields {
				items = append(items, f.Name)
			}
		case ok:
			headers[len(items)] = later[0]
			items = append(items, later[1]+item[len(name):])
		default:
			items = append(items, item)
		}
	}
	var bad string
	if o.at, o.fields, bad = format.ParseSharedFields(format.AcctFields, strings.Join(items, ","), true); bad != "" {
		return slurmerr.Newf(slurmerr.Refused, "Invalid field requested: \"%s\"", bad)
	}
	for i, name := range headers {
		o.fields[i].Name = name
	}
	return nil
}

// lists reads the plain filters.
func (o *Options) lists(v *option.Values) error {
	q := &o.query
	q.Accounts, q.Partitions, q.QOS = lower(v.All("accounts")), v.All("partition"), lower(v.List("qos"))
	for _, name := range []string{"accounts", "partition", "qos", "name"} {
		o.nothing = o.nothing || v.Has(name) && len(v.All(name)) == 0
	}
	o.nothing = o.nothing || v.Has("nodelist") && strings.Trim(v.First("nodelist"), ",") == "" // the first one counts
	q.Names, q.WCKeys, q.Constraints = v.All("name"), v.All("wckeys"), v.All("constraints")
	if v.HasEmpty("wckeys") {
		q.WCKeys = nil // as in Slurm, any
	}
	q.Duplicates, q.NoSteps = v.Has("duplicates"), v.Has("allocations")
	o.reasons = v.All("reason")
	o.clusters = v.All("cluster")
	if slices.Contains(lower(o.clusters), "all") || o.p.Env(kube.EnvCluster) != "" { // or this is one of them
		o.clusters = nil
	}
	if text := v.First("nodelist"); text != "" {
		var err error
		if q.Nodes, err = hostlist.ExpandLenient(text); err != nil {
			o.badNodes = &slurmerr.Error{Message: "Invalid argument", Code: int(syscall.EINVAL)}
			o.nothing = true
		}
	}
	return nil
}

func lower(list []string) []string {
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	return list
}

// namesComponent reports whether -j names the record itself, if it is a component of a
// heterogeneous job.
func (o *Options) namesComponent(r *status.Record) bool {
	own, offset := strconv.FormatInt(r.ID, 10), fmt.Sprintf("%d+%d", r.HetJobID, r.HetOffset)
	return r.HetJobID == 0 || slices.Contains(o.query.Jobs, own) || slices.Contains(o.query.Jobs, offset)
}

// people parses users and groups, by name or number. Without any, the caller's own jobs
// are listed, unless jobs are named or the caller is root.
func (o *Options) people(v *option.Values) error {
	q := &o.query
	for _, u := range v.All("uid") {
		if n, err := strconv.ParseInt(u, 10, 64); err == nil {
			q.UserIDs = append(q.UserIDs, n)
		} else {
			q.Users = append(q.Users, u)
		}
	}
	for _, g := range v.All("gid") {
		if n, err := strconv.ParseInt(g, 10, 64); err == nil {
			q.GroupIDs = append(q.GroupIDs, n)
		} else {
			q.Groups = append(q.Groups, g)
		}
	}
	o.groupsFirst = v.Precedes("gid", "uid")
	named := len(q.Users)+len(q.UserIDs)+len(q.Groups)+len(q.GroupIDs) > 0
	if v.Last("allusers", "uid") == "allusers" { // a later --uid counts, as in Slurm
		o.unasked = len(q.Users) > 0
		q.Users, q.UserIDs = nil, nil
		return nil
	}
	q.Me = !named && !o.namesJobs(v) && !v.Has("nodelist") && o.p.UID != 0
	return nil
}

// ranges reads -i, -I, -k and -K.
func (o *Options) ranges(v *option.Values) (err error) {
	if o.query.NNodes, err = span(v, "nnodes", "node"); err != nil {
		return err
	}
	if o.query.NCPUs, err = span(v, "ncpus", "cpu"); err != nil {
		return err
	}
	for i, name := range []string{"timelimit-min", "timelimit-max"} {
		if minutes, err := value.Minutes(v.Get(name)); err == nil { // else it is not given
			o.query.TimeLimit[i] = int64(minutes)
		}
	}
	if !v.Has("timelimit-min") { // the greatest alone bounds nothing
		o.query.TimeLimit = [2]int64{}
	}
	return nil
}

// span reads N or N-M.
func span(v *option.Values, name, what string) (r [2]int64, err error) {
	if !v.Has(name) {
		return r, nil
	}
	return parseSpan(v.Get(name), what)
}

// parseSpan parses N or N-M; an empty text is any number.
func parseSpan(text, what string) (r [2]int64, err error) {
	if text == "" {
		return r, nil
	}
	low, high, both := strings.Cut(text, "-")
	bad := func() error {
		return slurmerr.Newf(slurmerr.Refused, "Invalid numeric value %q for requested %s range.", text, what)
	}
	if r[0], err = strconv.ParseInt(low, 10, 32); err != nil || r[0] < 0 {
		return r, bad()
	}
	if !both {
		return r, nil
	}
	if r[1], err = strconv.ParseInt(high, 10, 32); err != nil || r[1] < 1 {
		return r, bad()
	}
	return r, nil
}

// stateNames are Slurm's short forms.
var stateNames = map[string]string{
	"bf": "BOOT_FAIL", "ca": "CANCELLED", "cd": "COMPLETED", "dl": "DEADLINE", "f": "FAILED", "nf": "NODE_FAIL",
	"oom": "OUT_OF_MEMORY", "pd": "PENDING", "pr": "PREEMPTED", "r": "RUNNING", "rq": "REQUEUED", "rs": "RESIZING",
	"rv": "REVOKED", "s": "SUSPENDED", "to": "TIMEOUT", "cg": "COMPLETING", "cf": "CONFIGURING",
}

func (o *Options) states(v *option.Values) error {
	for _, text := range v.All("state") {
		name, err := parseState(text)
		if err != nil {
			return err
		}
		o.query.States = append(o.query.States, name)
	}
	return nil
}

// parseState returns the long name of a state.
func parseState(text string) (string, error) {
	if long, ok := stateNames[strings.ToLower(text)]; ok {
		return long, nil
	}
	upper := strings.ToUpper(text)
	for _, long := range stateNames {
		if long == upper {
			return long, nil
		}
	}
	return "", slurmerr.Newf(slurmerr.Fatal, "unrecognized job state value '%s'", text)
}

// times parses -S and -E; see sacct(1), DEFAULT TIME WINDOW.
func (o *Options) times(v *option.Values) error {
	now := o.p.Now()
	start, end := time.Time{}, time.Time{}
	for _, x := range []struct {
		name string
		to   *time.Time
	}{{"starttime", &start}, {"endtime", &end}} {
		if v.Get(x.name) == "" {
			continue
		}
		t, err := value.PastInstant(v.Get(x.name), now)
		if err != nil {
			return badTime(v.Get(x.name), err)
		}
		*x.to = t
	}
	if start.IsZero() {
		switch y, m, d := now.Date(); {
		case o.namesJobs(v):
		case len(o.query.States) > 0:
			start = now
		default:
			start = time.Date(y, m, d, 0, 0, 0, 0, now.Location())
		}
	}
	if end.IsZero() && len(o.query.States) > 0 {
		end = start // those that were in these states then
	}
	until := end
	if until.IsZero() {
		until = now
	}
	if start.After(until) {
		const layout = "2006-01-02T15:04:05"
		return slurmerr.Newf(
			slurmerr.Refused,
			"Start time (%s) requested is after end time (%s).",
			start.Format(layout),
			until.Format(layout),
		)
	}
	if v.Has("verbose") {
		o.reportWindow(start, until)
	}
	if !start.IsZero() {
		o.query.Start = start.Unix()
	}
	if !end.IsZero() || !o.namesJobs(v) && len(o.query.States) > 0 {
		o.query.End = until.Unix()
	}
	o.untilNow = o.query.End == 0 && (!o.namesJobs(v) || len(o.query.States) > 0)
	if v.Has("truncate") {
		o.settings.From, o.settings.To = o.query.Start, until.Unix()
	}
	return nil
}

// reportWindow prints the time window of the jobs, and the states in it that were requested.
func (o *Options) reportWindow(start, end time.Time) {
	what, from := "Eligible", "Epoch 0"
	if len(o.query.States) > 0 {
		what = strings.Join(o.query.States, ",")
	}
	if !start.IsZero() {
		from = start.Format(time.ANSIC)
	}
	fmt.Fprintf(o.p.Err, "sacct: Jobs %s in the time window from %s to %s\n", what, from, end.Format(time.ANSIC))
}

func badTime(text string, err error) error {
	e := &slurmerr.Error{Code: 1}
	pos := 0
	if at, ok := err.(*value.InstantError); ok { //nolint:errorlint // it comes straight from the parser
		pos = at.Pos
	}
	e.Before = []string{fmt.Sprintf("Invalid time specification (pos=%d): %s", pos, text)}
	return e
}

// chooseFlags reads -F.
func (o *Options) chooseFlags(v *option.Values) error {
	var err error
	if v.Has("flags") {
		o.flags, err = parseFlags(v.Get("flags"))
		o.nothing = o.nothing || len(o.flags) == 0
	}
	return err
}

// parseFlags parses a list of flags.
func parseFlags(text string) (flags []string, err error) {
	for f := range strings.SplitSeq(text, ",") {
		if f == "" {
			continue
		}
		at := slices.IndexFunc(format.AcctFlagNames, func(name string) bool { return strings.EqualFold(name, f) })
		if at < 0 {
			return nil, slurmerr.New(slurmerr.Refused, "str_2_job_flags: Invalid job flag "+printable.Escape(f))
		}
		flags = append(flags, format.AcctFlagNames[at])
	}
	return flags, nil
}
