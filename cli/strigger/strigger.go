// Package strigger implements strigger, which refuses to create triggers and names the
// alternatives in Kubernetes. The list of triggers is always empty.
package strigger

import (
	"context"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
)

// Options are the dependencies of strigger.
type Options struct{ p *stdio.Process }

// New returns the command.
func New(p *stdio.Process) *Options { return &Options{p: p} }

// events are the options for the events of a trigger.
var events = []string{
	"down", "up", "drained", "fail", "fini", "idle", "reconfig", "time_limit", "burst_buffer",
	"primary_slurmctld_failure", "primary_slurmctld_resumed_operation", "primary_slurmctld_resumed_control",
	"primary_slurmctld_acct_buffer_full", "backup_slurmctld_failure", "backup_slurmctld_resumed_operation",
	"backup_slurmctld_assumed_control", "primary_slurmdbd_failure", "primary_slurmdbd_resumed_operation",
	"primary_database_failure", "primary_database_resumed_operation",
}

// Run parses args and runs the command.
func (o *Options) Run(_ context.Context, args []string) error {
	v, _, err := option.Strigger.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	if err := check(v); err != nil {
		return err
	}
	switch {
	case v.Has("get"):
		return nil
	case v.Has("clear") && v.Has("quiet"):
		return nil
	case v.Has("clear"):
		return &slurmerr.Error{Before: []string{"slurm_clear_trigger: No such process"}, Code: 1}
	}
	return slurmerr.New(slurmerr.Refused,
		"triggers are not possible here: the cluster runs programs of users only in jobs").
		Hint(
			"when a job ends: sbatch --dependency=afterany:JOB, or kubectl wait batchjobs --for=jsonpath='{.status.state}'=COMPLETED",
		).
		Hint("when a node changes: kubectl get nodes --watch, or an alert on the kube-state-metrics of nodes").
		Hint("when the scheduler or its database fails: the readiness of its Deployment, and its log")
}

// check returns the error of Slurm's strigger about invalid options.
func check(v *option.Values) error {
	verbs, waits := 0, false
	for _, name := range []string{"set", "get", "clear"} {
		if v.Has(name) {
			verbs++
		}
	}
	for _, e := range events {
		waits = waits || v.Has(e)
	}
	job := v.Get("jobid")
	switch _, known := jobs.ParseID(job); {
	case job != "" && !known:
		return bad("Invalid jobid " + printable.Escape(job))
	case verbs != 1:
		return bad("You must use exactly one of the following options: --set, --get or --clear")
	case v.Has("clear") && job == "" && !v.Has("id") && !v.Has("user"):
		return bad("You must specify a --id, --jobid, or --user to clear")
	case v.Has("set") && !waits:
		return bad("You must specify a trigger (--" + strings.Join(events, ", --") + ")")
	case v.Has("set") && v.Get("program") == "":
		return bad("You must specify a --program value")
	case v.Has("set") && !strings.HasPrefix(v.Get("program"), "/"):
		return bad(`The --program value must start with "/"`)
	case (v.Has("fini") || v.Has("time_limit")) && job == "":
		return bad("You must specify a --jobid value")
	}
	return nil
}

func bad(text string) error { return slurmerr.New(slurmerr.Refused, text) }
