package squeue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/dump"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// checks returns those of values that Slurm refuses where they stand.
func (o *Options) checks(ctx context.Context) option.Checks {
	checks := jobs.ClusterChecks(ctx, "clusters", o.connect)
	checks["jobs"] = func(text string) error {
		_, err := ids(value.SplitJobs(text))
		return err
	}
	checks["steps"] = func(text string) error {
		_, err := stepIDs(text)
		return err
	}
	checks["states"] = func(text string) error {
		_, err := states(strings.FieldsFunc(text, func(r rune) bool { return r == ',' }))
		return err
	}
	checks["iterate"] = func(text string) error {
		_, err := interval(text)
		return err
	}
	checks["user"] = func(text string) error { // an unknown one is no error
		o.users = append(o.users, strings.FieldsFunc(text, func(r rune) bool { return r == ',' })...)
		return nil
	}
	return checks
}

// complete sets o from the parsed options. It removes words that belong to options from
// rest.
func (o *Options) complete(v *option.Values, rest *[]string) error {
	o.noHeader, o.long, o.verbose = v.Has("noheader"), v.Has("long"), v.Has("verbose")
	o.split = v.Has("priority")
	o.array, o.unique = v.Has("array"), v.Has("array-unique")
	o.settings = format.Settings{NoConvert: v.Has("noconvert"), Location: o.p.Now().Location()}
	var err error
	if o.settings.Layout, err = format.ParseTimeFormat(o.p.Env("SLURM_TIME_FORMAT")); err != nil {
		slurmerr.Print(o.p.Err, "squeue", err)
	}
	o.settings.ArrayLen = format.ArrayLen(o.p.Env("SLURM_BITSTR_LEN"))
	o.clusters = v.List("clusters")
	o.federated = (v.Has("federation") || v.Has("sibling")) && !v.Has("local") && len(o.clusters) == 0
	if err := o.filter.set(v); err != nil {
		return err
	}
	o.users = v.Given("user")
	if err := o.completeDump(v); err != nil {
		return err
	}
	if v.Has("iterate") {
		if o.every, err = interval(v.Get("iterate")); err != nil {
			return err
		}
	}
	if err := o.completeJobs(v, rest); err != nil {
		return err
	}
	if err := o.completeSteps(v, rest); err != nil {
		return err
	}
	return o.completeLayout(v)
}

// interval parses the value of --iterate.
func interval(text string) (time.Duration, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0, &slurmerr.Error{After: "\n", Message: "--iterate=" + printable.Escape(text)}
	}
	return time.Duration(n) * time.Second, nil
}

// completeJobs parses -j, whose value may be the next word.
func (o *Options) completeJobs(v *option.Values, rest *[]string) (err error) {
	if !v.Has("jobs") {
		return nil
	}
	text, given := v.ValueOrOperand("jobs", rest)
	list := value.SplitJobs(text)
	o.filter.nothing = o.filter.nothing || given && len(list) == 0
	o.filter.IDs, err = ids(list)
	return err
}

// completeDump parses --json and --yaml. As in Slurm, they include jobs in all states
// unless states are given.
func (o *Options) completeDump(v *option.Values) error {
	syntax, name := dump.JSON, "json"
	if v.Has("yaml") {
		syntax, name = dump.YAML, "yaml"
	}
	if !v.Has(name) {
		return nil
	}
	f, ok := dump.ParseForm(syntax, v.Get(name))
	if !ok {
		return slurmerr.Newf(slurmerr.Refused, "--%s=%s: unknown data parser (v0.0.38 to v0.0.44)", name, v.Get(name))
	}
	f.Command = []string{"squeue", "--" + name}
	o.dump, o.named = &f, true
	if len(o.filter.States) == 0 {
		o.filter.States = []string{"all"}
	}
	return nil
}

// completeLayout sets the columns: the requested ones, or those of -l and --start.
func (o *Options) completeLayout(v *option.Values) error {
	letters, names := v.Has("format"), v.Has("Format")
	if o.long || v.Has("start") { // they override the variables
		letters, names = letters && v.Last("format") != "", names && v.Last("Format") != ""
	}
	if v.Has("start") && !both(v) {
		names = false // as in Slurm
	}
	if letters && names && !both(v) {
		// An option overrides the variables, and SQUEUE_FORMAT is read first.
		letters = v.Last("format", "Format") != "Format"
		names = !letters
	}
	switch {
	case letters && names:
		if v.Last("format", "Format") == "format" {
			return slurmerr.New(slurmerr.Refused, "-o (--format) is incompatible with -O (--Format)")
		}
		return slurmerr.New(slurmerr.Refused, "-O (--Format) is incompatible with -o (--format)")
	case letters && o.long && !o.steps:
		return option.FormatAndLong()
	}
	o.order = v.Get("sort")
	usual := !v.Has("sort") // as in Slurm, an empty value is no order, and not the usual one
	if o.steps {
		if usual {
			o.order = format.StepOrder
		}
		o.completeStepLayout(v)
		return nil
	}
	text := format.JobDefault
	switch {
	case letters:
		text = v.Get("format")
	case v.Has("start"):
		text = format.JobStart
	case o.long:
		text = format.JobLong
	}
	if usual {
		o.order = format.JobOrder
		if v.Has("start") {
			o.order = format.JobOrderStart
		}
	}
	if names {
		o.layout, o.badColumns = format.ParseNames(format.JobColumns(), v.Get("Format"))
	} else {
		o.layout, o.badColumns = format.ParseLetters(format.JobColumns(), text)
	}
	o.named = o.named || o.layout.Has("Cluster")
	return nil
}

// both reports whether -o and -O are on the command line.
func both(v *option.Values) bool { return v.Last("format") != "" && v.Last("Format") != "" }

// states parses a list of state names, or "all" alone.
func states(list []string) ([]string, error) {
	if len(list) == 1 && strings.EqualFold(list[0], "all") {
		return []string{"all"}, nil
	}
	var out []string
	for _, text := range list {
		state, ok := status.ParseJobState(text)
		if !ok {
			return nil, &slurmerr.Error{
				After: "\n",
				Message: fmt.Sprintf("Invalid job state specified: %s\nValid job states include: %s",
					printable.Escape(text), strings.Join(status.JobStates, ",")),
			}
		}
		out = append(out, state)
	}
	return out, nil
}

func nodes(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	list, err := hostlist.ExpandLenient(text)
	if line := hostlist.RangeError(err); line != "" {
		return nil, slurmerr.New(slurmerr.Refused,
			printable.Escape(line)+"\n'"+printable.Escape(text)+"' invalid entry for --nodelist")
	}
	if err != nil {
		return nil, slurmerr.Newf(slurmerr.Refused, "Invalid node name %s", printable.Escape(text))
	}
	return list, nil
}
