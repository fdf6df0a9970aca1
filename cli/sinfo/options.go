package sinfo

import (
	"context"
	"fmt"
	"slices"
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
)

// checks returns those of values that Slurm refuses where they stand.
func (o *Options) checks(ctx context.Context) option.Checks {
	checks := jobs.ClusterChecks(ctx, "clusters", o.connect)
	checks["states"] = func(text string) error {
		_, err := states(strings.FieldsFunc(text, func(r rune) bool { return r == ',' }))
		return err
	}
	checks["iterate"] = func(text string) error {
		_, err := interval(text)
		return err
	}
	return checks
}

// interval parses the value of --iterate.
func interval(text string) (time.Duration, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0, slurmerr.Newf(slurmerr.Refused, "Error: invalid entry for --iterate=%s", text)
	}
	return time.Duration(n) * time.Second, nil
}

// complete sets o from the parsed options.
func (o *Options) complete(v *option.Values) (err error) {
	o.noHeader, o.long, o.verbose = v.Has("noheader"), v.Has("long"), v.Has("verbose")
	o.clusters, o.booked = v.List("clusters"), v.Has("reservation")
	o.single, o.exact, o.hidden = v.Has("Node"), v.Has("exact"), v.Has("all")
	o.reasons = v.Has("list-reasons")
	if err := o.completePartitions(v); err != nil {
		return err
	}
	o.settings = format.Settings{Location: o.p.Now().Location(), NoConvert: v.Has("noconvert")}
	if o.settings.Layout, err = format.ParseTimeFormat(o.p.Env("SLURM_TIME_FORMAT")); err != nil {
		slurmerr.Print(o.p.Err, "sinfo", err)
	}
	if err := o.completeDump(v); err != nil {
		return err
	}
	if !v.Has("states") {
		o.states = nil
	} else if o.states, err = states(v.List("states")); err != nil {
		return err
	}
	if text := v.Get("nodes"); text != "" {
		if o.nodes, err = hostlist.ExpandLenient(text); err != nil {
			if line := hostlist.RangeError(err); line != "" {
				return slurmerr.New(slurmerr.Refused,
					printable.Escape(line)+"\n'"+printable.Escape(text)+"' invalid entry for --nodes")
			}
			return slurmerr.Newf(slurmerr.Refused, "Invalid node list %s", text)
		}
	}
	if v.Has("iterate") {
		if o.every, err = interval(v.Get("iterate")); err != nil {
			return err
		}
	}
	o.keep = chosen(v)
	if v.Has("nodes") && len(v.List("nodes")) == 0 {
		o.keep = func(*status.Node) bool { return false }
	}
	return o.completeLayout(v)
}

// completePartitions sets the partitions of -p and SINFO_PARTITION, and those of -a and
// SINFO_ALL. An option overrides the variable of the other option.
func (o *Options) completePartitions(v *option.Values) error {
	all, partition := v.Has("all"), v.Has("partition")
	allGiven, partitionGiven := v.Last("all") != "", v.Last("partition") != ""
	switch {
	case allGiven && partitionGiven:
		return slurmerr.New(slurmerr.Refused, "Conflicting options, -a and -p, specified. Please choose one or the other.")
	case all && partition && !allGiven && !partitionGiven:
		return slurmerr.New(slurmerr.Refused, "Conflicting options, SINFO_ALL and SINFO_PARTITION, specified. "+
			"Please choose one or the other.")
	case allGiven:
	default:
		if o.partitions = v.List("partition"); partition && len(o.partitions) == 0 {
			o.partitions = []string{""} // a list without names selects no partition
		}
	}
	return nil
}

// chosen returns the filter of -d, -r and -R.
func chosen(v *option.Values) func(*status.Node) bool {
	responds := func(n *status.Node) bool { return !slices.Contains(n.Flags, "NOT_RESPONDING") }
	switch {
	case v.Has("list-reasons") && v.Has("states"):
		return nil
	case v.Has("list-reasons"):
		return func(n *status.Node) bool {
			return n.Reason != "" && (n.State == "DOWN" || slices.Contains(n.Flags, "DRAIN") || !responds(n))
		}
	case v.Has("dead"):
		return func(n *status.Node) bool { return !responds(n) }
	case v.Has("responding"):
		return responds
	}
	return nil
}

// completeLayout sets the columns and the order.
func (o *Options) completeLayout(v *option.Values) error {
	last := v.Last("format", "Format")
	names := v.Has("Format")
	letters := v.Has("format") && !names
	if letters && last == "" && (o.single || o.reasons || v.Has("summarize")) {
		letters = false // these override SINFO_FORMAT
	}
	if last != "" && o.long {
		return option.FormatAndLong()
	}
	text, order := o.usual(v.Has("summarize"))
	if letters {
		text = v.Get("format")
	}
	if v.Has("sort") {
		order = v.Get("sort")
	}
	o.order = order
	o.skipEmpty = o.reasons && !letters && !names && !v.Has("summarize")
	var bad []string
	if names {
		o.layout, bad = format.ParseNodeNames(v.Get(last)) // as in Slurm, that of -o too
		fmt.Fprint(o.p.Err, format.InvalidColumns("sinfo", bad))
		return nil
	}
	o.layout, bad = format.ParseNodeLetters(text)
	for _, b := range bad {
		text := printable.Escape(b)
		if b == "" { // as in Slurm, the byte that ends the format
			text = "\x00"
		}
		fmt.Fprintf(o.p.Err, "Invalid node format specification: %s\n", text)
	}
	return nil
}

// usual returns the format and order of -s, -R, -N and -l.
func (o *Options) usual(summary bool) (text, order string) {
	switch {
	case summary && o.single:
		return format.NodeSummary, "N"
	case summary:
		return format.NodeSummary, "#P"
	case o.single && o.long:
		return format.NodeCentricLong, "N"
	case o.single:
		return format.NodeCentric, "N"
	case o.reasons && o.long:
		return format.NodeReasonsLong, "N"
	case o.reasons:
		return format.NodeReasons, "N"
	case o.long:
		return format.NodeLong, "#P,-t"
	}
	return format.NodeDefault, "#P,-t"
}

// states parses -t: each item is a set of states that a node must have at the same time;
// nil: any state.
func states(list []string) ([][]string, error) {
	out := [][]string{}
	for _, text := range list {
		if strings.EqualFold(text, "all") && len(list) == 1 { // in a list it is short for allocated
			return nil, nil
		}
		set, bad := format.NodeStates(text)
		if bad != "" {
			return nil, slurmerr.Newf(slurmerr.Refused, "Bad state string: %q\nvalid states: %s",
				bad, strings.Join(format.NodeStateNames, ","))
		}
		out = append(out, set)
	}
	return out, nil
}

// completeDump parses --json and --yaml.
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
	f.Command = []string{"sinfo", "--" + name}
	o.dump, o.named = &f, true
	return nil
}
