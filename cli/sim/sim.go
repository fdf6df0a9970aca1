// Package sim implements berth sim, which simulates the scheduling of a workload trace
// with the scheduler's planner and reports the results.
package sim

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/slurmconf"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/topology"
)

// options are the flags.
type options struct {
	policy, estimates, format, weights string
	starts, picture, machine           string
	processors, addNodes               int
	first, count                       int
	users, firstFit                    bool
	poolOptions
}

// Commands returns berth's subcommands for simulation.
func Commands(p *stdio.Process) []*cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "sim TRACE.swf",
		Short: "Simulate the scheduling of a workload trace",
		Long: `Simulate the scheduling of a workload trace with the scheduler's planner, and print
statistics of waiting times, slowdowns and utilization.

The trace is in the Standard Workload Format, optionally gzip-compressed. By
default the machine is a pool with the number of processors in the trace's
header; with --machine it has the nodes of a slurm.conf, and the switches of the
topology.conf next to it if TopologyPlugin names a plugin that reads it. Jobs that request more
than the machine has, or that did not run, are skipped and counted.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return run(p, &o, args[0]) },
	}
	o.add(c)
	return []*cobra.Command{c}
}

func (o *options) add(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.policy, "policy", "default", "scheduling policy: "+strings.Join(policyNames, ", "))
	f.StringVar(&o.estimates, "estimates", "user", "time limits: user (as in the trace) or actual (the run times)")
	f.StringVar(&o.format, "format", "text", "text, json or csv")
	f.StringVar(&o.starts, "starts", "", "write the id, submission, start, end and processors of each job to this `file`")
	f.StringVar(&o.picture, "picture", "", "draw the schedule as SVG into this `file`")
	f.BoolVar(&o.users, "users", false, "also print the statistics of each user")
	f.StringVar(&o.machine, "machine", "", "slurm.conf `file` with the nodes of the machine")
	f.BoolVar(&o.firstFit, "first-fit", false, "place jobs as on a machine without switches")
	f.IntVar(&o.processors, "processors", 0, "number of processors of the machine (default: MaxProcs of the trace)")
	f.IntVar(&o.addNodes, "add-nodes", 0, "add this number of nodes, each like the first one")
	f.StringVar(
		&o.weights,
		"weights",
		"",
		"multifactor priorities with these weights instead of the order of submission (`list`: age=N,fairshare=N,jobsize=N,partition=N,qos=N,assoc=N)",
	)
	f.StringVar(
		&o.pools,
		"pools",
		poolsAlways,
		"when nodes in state CLOUD of --machine run: always, planned (as the scheduler does) or eager (a node for every job that waits)",
	)
	f.Int64Var(&o.boot, "boot-time", defaultBoot, "how many `seconds` nodes in state CLOUD take to boot")
	f.IntVar(&o.first, "first", 0, "skip this number of jobs at the beginning of the trace")
	f.IntVar(&o.count, "count", 0, "simulate at most this number of jobs")
}

// bad returns an error about the command line.
func bad(format string, args ...any) error { return slurmerr.Newf(slurmerr.Refused, format, args...) }

func (o *options) check() error {
	if _, ok := policies[o.policy]; !ok {
		return bad("unknown policy %q; valid policies are %s", o.policy, strings.Join(policyNames, ", "))
	}
	if o.estimates != "user" && o.estimates != "actual" {
		return bad("invalid --estimates %q, expected user or actual", o.estimates)
	}
	if o.format != "text" && o.format != "json" && o.format != "csv" {
		return bad("invalid --format %q, expected text, json or csv", o.format)
	}
	if o.processors < 0 || o.addNodes < 0 || o.first < 0 || o.count < 0 {
		return bad("--processors, --add-nodes, --first and --count must not be negative")
	}
	if o.weights != "" && policies[o.policy].priority != nil {
		return bad("--policy %s and --weights are mutually exclusive", o.policy)
	}
	if o.pools != poolsAlways && o.pools != poolsPlanned && o.pools != poolsEager {
		return bad("invalid --pools %q, expected always, planned or eager", o.pools)
	}
	if o.pools != poolsAlways && (o.machine == "" || o.weights != "" || o.addNodes > 0) {
		return bad("--pools needs --machine, and excludes --weights and --add-nodes")
	}
	if o.boot < 1 {
		return bad("--boot-time must be positive")
	}
	if o.machine != "" && o.processors > 0 {
		return bad("--machine and --processors are mutually exclusive")
	}
	return nil
}

func run(p *stdio.Process, o *options, file string) error {
	if err := o.check(); err != nil {
		return err
	}
	t, err := open(p, file)
	if err != nil {
		return err
	}
	machine, err := o.build(p, t)
	if err != nil {
		return err
	}
	r, done, err := simulate(o, t, machine)
	if err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{
		o.starts:  func(w io.Writer) error { return writeStarts(w, done) },
		o.picture: func(w io.Writer) error { return picture(w, machine, done) },
	} {
		if err := toFile(name, write); err != nil {
			return err
		}
	}
	return r.write(p.Out, o.format)
}

// open reads the trace; "-" is standard input.
func open(p *stdio.Process, file string) (*trace, error) {
	in := p.In
	if file != "-" {
		text, err := p.ReadFile(file)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(text)
	}
	t, err := readTrace(in)
	if bad := (*lineError)(nil); errors.As(err, &bad) {
		return nil, slurmerr.Newf(slurmerr.Refused, "%s:%d: %s", file, bad.line, bad.text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// build returns the nodes of the machine. Without --machine, it is a single node with all
// processors.
func (o *options) build(p *stdio.Process, t *trace) ([]backfill.Node, error) {
	if o.machine != "" {
		return o.configured(p)
	}
	n := cmp.Or(o.processors, t.processors)
	if n == 0 {
		return nil, bad("the trace does not have the number of processors (MaxProcs); use --processors")
	}
	if n += o.addNodes; n > 1<<24 {
		return nil, bad("too many processors (%d)", n)
	}
	return []backfill.Node{{Name: "machine", CPUs: n}}, nil
}

// configured returns the nodes of a slurm.conf, in the order of their weights.
func (o *options) configured(p *stdio.Process) ([]backfill.Node, error) {
	conf, err := slurmconf.Parse(o.machine, p.ReadFile)
	if err != nil {
		return nil, err
	}
	var network *topology.Network
	if conf.HasTopology() {
		file := filepath.Join(filepath.Dir(o.machine), "topology.conf")
		if network, err = slurmconf.ParseTopology(file, p.ReadFile, conf); err != nil {
			return nil, err
		}
	}
	var out []backfill.Node
	positions := map[string]int{}
	for i := range conf.Nodes {
		positions[conf.Nodes[i].Name] = i
	}
	slices.SortStableFunc(conf.Nodes, func(a, b slurmconf.Node) int { return max(1, a.Weight) - max(1, b.Weight) })
	o.idle = idleOf(conf)
	for _, n := range conf.Nodes {
		o.cloud = append(o.cloud, n.State == slurmconf.StateCloud)
		b := backfill.Node{
			Position:       positions[n.Name],
			Name:           n.Name,
			CPUs:           n.CPUs,
			ThreadsPerCore: n.ThreadsPerCore,
			Sockets:        n.Sockets,
			Memory:         n.RealMemory,
			Unavailable:    n.State != "" && n.State != slurmconf.StateCloud,
			TopologyPath:   network.Path(n.Name),
		}
		for _, g := range n.GRES {
			b.GRES = append(b.GRES, backfill.GRES{Name: g.Name, Type: g.Type, Count: g.Count})
		}
		out = append(out, b)
	}
	if len(out) == 0 {
		return nil, bad("%s has no nodes", o.machine)
	}
	for i := range o.addNodes {
		more := out[0]
		more.Name, more.Position = fmt.Sprintf("added%d", i+1), len(conf.Nodes)+i
		out = append(out, more)
	}
	return out, nil
}

// simulate simulates the scheduling of the trace on the machine.
func simulate(o *options, t *trace, machine []backfill.Node) (*report, []*ran, error) {
	processors := 0
	for i := range machine {
		if !machine[i].Unavailable {
			processors += machine[i].CPUs
		}
	}
	pol := policies[o.policy]
	var w *weighing
	if o.weights != "" {
		given, err := parseWeights(o.weights)
		if err != nil {
			return nil, nil, bad("%v", err)
		}
		w = newWeighing(given, processors)
	}
	t.filter(processors)
	jobs := t.jobs[min(o.first, len(t.jobs)):]
	if o.count > 0 {
		jobs = jobs[:min(o.count, len(jobs))]
	}
	planned := machine
	if o.firstFit {
		planned = withoutSwitches(machine)
	}
	if o.pools != poolsAlways && !slices.Contains(o.cloud, true) {
		return nil, nil, bad("%s has no nodes in state CLOUD", o.machine)
	}
	done, cost := o.replay(planned, pol, jobs, o.asker(pol, machine), w)
	r := &report{
		Policy:     o.policy,
		Estimates:  o.estimates,
		Processors: processors,
		Dropped:    t.dropped + len(jobs) - len(done),
		figures:    figuresOf(done, processors),
		Network:    switchFiguresOf(machine, done),
		Pools:      cost,
	}
	if o.users {
		r.Users = perUser(done, processors)
	}
	return r, done, nil
}

// asker returns a function that converts a job of the trace to a pending job.
func (o *options) asker(pol policy, machine []backfill.Node) func(*traceJob) backfill.Job {
	remembers := o.machine != "" && machine[0].Memory > 0
	return func(j *traceJob) backfill.Job {
		b := backfill.Job{Tasks: j.processors, Duration: j.estimate, User: j.user, Since: j.submit}
		if o.estimates == "actual" {
			b.Duration = j.run
		}
		if remembers {
			b.MemPerCPU = j.memory / 1024
		}
		if pol.priority != nil {
			b.Priority = pol.priority(j)
		}
		return b
	}
}

// toFile creates the file and calls write with it. It does nothing without a name.
func toFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(filepath.Clean(name))
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	return f.Close()
}
