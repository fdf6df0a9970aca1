// Package seff shows how well a finished job used its allocation.
package seff

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Accounting is the access to a cluster that seff needs.
type Accounting interface {
	Records(ctx context.Context, q *status.RecordQuery) (*status.RecordList, error)
}

// Options are the dependencies and options of seff.
type Options struct {
	p       *stdio.Process
	connect func() (Accounting, error)
}

// New returns the command. connect is called once, after the command line has been
// parsed.
func New(p *stdio.Process, connect func() (Accounting, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, jobs, err := option.Seff.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	if len(jobs) != 1 {
		return &slurmerr.Error{Code: 1, Before: []string{"Usage: seff [Options] <Jobid>"}}
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	list, err := c.Records(ctx, &status.RecordQuery{Jobs: jobs})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return &slurmerr.Error{Code: 2, Before: []string{"Job not found."}}
	}
	r := list.Items[0]
	for _, x := range list.Items {
		if fmt.Sprint(x.ID) == jobs[0] || format.AcctID(&x) == jobs[0] {
			r = x
		}
	}
	return o.p.Print(text(&r, list.Time))
}

// text returns the report about a job.
func text(r *status.Record, now int64) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("Job ID: %d", r.ID)
	if r.ArrayJobID != 0 {
		say("Array Job ID: %s", format.AcctID(r))
	}
	say("Cluster: %s", printable.Escape(r.Cluster))
	say("User/Group: %s/%s", printable.Escape(r.User), printable.Escape(r.Group))
	if r.State == "PENDING" {
		say("State: PENDING\nEfficiency not available for jobs in the PENDING state.")
		return strings.TrimRight(b.String(), "\n") + "\n"
	}
	say("State: %s (exit code %d)", r.State, r.ExitCode)
	nodes := max(1, r.Nodes)
	if nodes == 1 {
		say("Cores: %d", r.CPUs)
	} else {
		say("Nodes: %d\nCores per node: %d", nodes, r.CPUs/nodes)
	}
	row := &format.AcctRow{Job: r}
	elapsed := format.AcctElapsed(row, &format.AcctSettings{Settings: format.Settings{Now: now}})
	var cpu, peak int64
	for i := range r.Steps {
		s := &r.Steps[i]
		cpu += s.UserCPU + s.SystemCPU
		peak = max(peak, s.RSS.Total)
	}
	wall := elapsed * int64(r.CPUs)
	say("CPU Utilized: %s", clock(cpu/1e6))
	say("CPU Efficiency: %.2f%% of %s core-walltime", share(float64(cpu)/1e6, float64(wall)), clock(wall))
	say("Job Wall-clock time: %s", clock(elapsed))
	say("Memory Utilized: %s (estimated maximum)", size(peak))
	asked := memory(r)
	if asked > 0 {
		say(
			"Memory Efficiency: %.2f%% of %s (%s/node)",
			share(float64(peak), float64(asked)),
			size(asked),
			size(asked/int64(nodes)),
		)
	}
	if r.End == 0 {
		say("WARNING: Efficiency statistics may be misleading for %s jobs.", r.State)
	}
	return b.String()
}

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part / whole
}

// memory returns the allocated memory of the job, in bytes.
func memory(r *status.Record) int64 {
	for item := range strings.SplitSeq(r.AllocTRES, ",") {
		text, ok := strings.CutPrefix(item, "mem=")
		if !ok || text == "" {
			continue
		}
		n, unit := int64(0), byte('M')
		if _, err := fmt.Sscanf(text, "%d%c", &n, &unit); err != nil && n == 0 {
			return 0
		}
		shift := strings.IndexByte("KMGTP", unit)
		return n << (10 * (shift + 1))
	}
	return 0
}

func clock(seconds int64) string {
	if d := seconds / 86400; d > 0 {
		return fmt.Sprintf("%d-%02d:%02d:%02d", d, seconds/3600%24, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

// size formats a number of bytes with two decimals, as seff does.
func size(bytes int64) string {
	f, unit := float64(bytes)/1024, 0
	for f >= 1024 && unit < 4 {
		f, unit = f/1024, unit+1
	}
	return fmt.Sprintf("%.2f %cB", f, "KMGTP"[unit])
}
