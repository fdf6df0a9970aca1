package scancel

import (
	"context"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// checks returns those of values that Slurm refuses where they stand.
func (o *Options) checks(ctx context.Context) option.Checks {
	checks := jobs.ClusterChecks(ctx, "clusters", o.connect)
	checks["SLURM_CLUSTERS"] = checks["clusters"] // the message names the option, as Slurm's
	checks["signal"] = func(text string) error {
		if text == "" {
			return nil // refused after the other options
		}
		_, err := parseSignal(text)
		return err
	}
	checks["state"] = func(text string) error {
		_, err := parseStates([]string{text}, "Invalid job state specified: ")
		return err
	}
	return checks
}

// complete builds the operation from the options.
func (o *Options) complete(v *option.Values, args []string) (err error) {
	o.verbose, o.quiet = v.Has("verbose"), v.Has("quiet")
	o.interactive, o.me = v.Has("interactive"), v.Has("me")
	o.op = status.Operation{Verb: status.OpCancel, Batch: v.Has("batch"), Full: v.Has("full"),
		Names: single(v, "name"), Users: single(v, "user"), Partitions: single(v, "partition"),
		Accounts: lower(single(v, "account")), QOS: lower(single(v, "qos")), WCKeys: single(v, "wckey"),
		Reservations: single(v, "reservation")}
	if v.Last("me", "user") == "user" {
		o.me = false
	} else if o.me {
		o.op.Users = nil // the last of the two counts
	}
	o.clusters, o.sibling = v.List("clusters"), v.Has("sibling")
	if err := o.checkEmpty(v); err != nil {
		return err
	}
	if o.variable != nil { // checked even if --state overrides it
		if _, err := parseStates([]string{*o.variable}, "Unrecognized SCANCEL_STATE value: "); err != nil {
			return err
		}
	}
	if o.op.States, err = parseStates(single(v, "state"), "Invalid job state specified: "); err != nil {
		return err
	}
	if v.Has("signal") || o.op.Batch { // --full alone ends the whole job
		o.op.Verb = status.OpSignal
		if o.op.Signal, err = parseSignal(v.Get("signal")); err != nil {
			return err
		}
	}
	if text := v.Get("nodelist"); text != "" {
		if o.op.Nodes, err = hostlist.ExpandLenient(text); err != nil {
			return slurmerr.Newf(slurmerr.Refused, "Invalid node list %s", text)
		}
		o.nothing = o.nothing || len(o.op.Nodes) == 0 // of commas alone
	}
	if o.op.Jobs, err = parseIDs(args); err != nil {
		return err
	}
	if len(o.op.Jobs) == 0 && !o.filtered() && !o.me && !o.nothing {
		return slurmerr.New(slurmerr.Refused, "No job identification provided")
	}
	return nil
}

// switches are the input variables that are true or false.
var switches = map[string]bool{
	"SCANCEL_BATCH": true, "SCANCEL_FULL": true, "SCANCEL_INTERACTIVE": true, "SCANCEL_VERBOSE": true,
}

// lookupEnv returns an input variable. One that turns an option on does so with the
// value true; values other than true and false are reported and have no effect.
func (o *Options) lookupEnv(name string) (text string, ok bool) {
	text, ok = o.p.LookupEnv(name)
	if ok && name == "SCANCEL_STATE" {
		o.variable = &text
	}
	if !ok || !switches[name] {
		return text, ok
	}
	switch strings.ToLower(text) {
	case "true":
		return text, true
	case "false":
	default:
		o.println("error: Unrecognized " + name + " value: " + printable.Escape(text))
	}
	return "", false
}

// single returns the value of an option, or nil. Filters of scancel(1) are one name: a
// comma is a part of it.
func single(v *option.Values, name string) []string {
	if !v.Has(name) {
		return nil
	}
	return []string{v.Get(name)}
}

// lower returns the names of accounts or QOS as they are stored.
func lower(names []string) []string {
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	return names
}

// checkEmpty refuses an empty user or signal. Any other filter with an empty value, most
// likely an unset variable of a script, selects no job.
func (o *Options) checkEmpty(v *option.Values) error {
	switch {
	case v.Has("user") && v.Get("user") == "":
		return slurmerr.New(slurmerr.Refused, "Invalid user name: ")
	case v.Has("signal") && v.Get("signal") == "":
		return &slurmerr.Error{Code: 1, Before: []string{"Unknown job signal: "}}
	}
	for _, name := range []string{"name", "partition", "account", "qos", "nodelist", "wckey", "reservation"} {
		o.nothing = o.nothing || v.Has(name) && v.Get(name) == ""
	}
	for _, name := range []string{"partition", "account", "qos", "reservation"} { // a list is no name
		o.nothing = o.nothing || strings.Contains(v.Get(name), ",")
	}
	return nil
}

// parseIDs parses the ids of jobs and steps.
func parseIDs(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		for _, id := range value.SplitJobs(arg) {
			if line := badTasks(id); line != "" {
				return nil, slurmerr.New(slurmerr.Refused, printable.Escape(line)+
					"\nInvalid job id "+printable.Escape(id))
			}
			number := id[:len(id)-len(strings.TrimLeft(id, "0123456789"))]
			if !jobID().MatchString(id) && !stepID().MatchString(id) || strings.Trim(number, "0") == "" {
				return nil, slurmerr.Newf(slurmerr.Refused, "Invalid job id %s", printable.Escape(id))
			}
			if strings.HasSuffix(id, ".") { // as in Slurm
				id += "0"
			}
			out = append(out, id)
		}
	}
	return out, nil
}

// badTasks returns the error about an invalid range among the tasks of an array, or "".
func badTasks(id string) string {
	job, tasks, found := strings.Cut(id, "_[")
	if !found || job == "" || strings.Trim(job, "0123456789") != "" {
		return "" // the tasks are not read
	}
	_, err := hostlist.Expand("[" + tasks)
	return hostlist.RangeError(err)
}

// parseStates parses the values of --state or of its variable. message precedes a value that
// is not a state.
func parseStates(list []string, message string) ([]string, error) {
	var out []string
	for _, text := range list {
		state, ok := status.ParseJobState(text)
		if !ok || state != "PENDING" && state != "RUNNING" && state != "SUSPENDED" {
			return nil, &slurmerr.Error{Code: 1, Before: []string{
				message + text, "Valid job states are PENDING, RUNNING, and SUSPENDED"}}
		}
		out = append(out, state)
	}
	return out, nil
}

// parseSignal parses the name or number of a signal. An empty text means SIGKILL.
func parseSignal(text string) (int32, error) {
	if text == "" {
		return 9, nil
	}
	n, err := value.SignalNumber(text)
	if err != nil {
		return 0, &slurmerr.Error{Code: 1, Before: []string{"Unknown job signal: " + text}}
	}
	return n, nil
}
