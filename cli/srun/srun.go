// Package srun runs a program as a step of a job. The job's agents run the tasks
// (internal/step). srun requests the step, forwards the standard streams, reports
// in Slurm's words how tasks end, and exits with the highest exit code of its
// tasks.
package srun

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/internal/jobs/alloc"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is the access to a cluster that srun needs outside of a job.
type Cluster interface {
	alloc.Cluster
	Nodes(ctx context.Context) (*status.NodeList, error)
}

// Options is one call of srun.
type Options struct {
	p         *stdio.Process
	connect   func() (Cluster, error)
	connected Cluster // nil: not connected yet
	// Signals delivers the signals that srun handles; nil: those of the process.
	Signals <-chan os.Signal

	site *siteScripts
}

// siteScripts are the site's prolog and epilog of srun: paths, or texts of scripts.
// They are known once srun is connected.
type siteScripts struct{ prolog, epilog string }

// New returns the command. connect is called at most once, and never for a step of
// the job in which srun runs.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect, site: &siteScripts{}}
}

// Run runs the command. The error carries srun's exit code.
func (o *Options) Run(ctx context.Context, args []string) error {
	parts, err := o.parts(ctx, args)
	if err != nil {
		return err
	}
	err = o.run(ctx, parts, args)
	if parts[0].Client.Quiet > 1 {
		return slurmerr.Suppress("srun", err)
	}
	return err
}

func (o *Options) run(ctx context.Context, parts []*option.Parsed, args []string) error {
	first := parts[0]
	if asked, err := first.Client.PrintRequested(option.Srun, o.p.Print); asked {
		return err
	}
	for _, p := range parts {
		if done, err := o.mpi(ctx, p); done || err != nil {
			return err
		}
	}
	if err := inheritCommands(parts); err != nil && !first.Client.TestOnly {
		return err
	}
	for _, p := range parts {
		if err := o.setTasksFromPrograms(p); err != nil {
			return err
		}
	}
	if err := o.checkGID(first); err != nil {
		return err
	}
	if first.Client.TestOnly {
		return o.testOnly(ctx, parts, args)
	}
	signals, stop := o.notifySignals()
	defer stop()
	if first.Step.JobID == 0 {
		return o.allocateAndRun(ctx, parts, args, signals)
	}
	return o.runInJob(ctx, parts, signals)
}

// runInJob runs the step in the job that its options name.
func (o *Options) runInJob(ctx context.Context, parts []*option.Parsed, signals <-chan os.Signal) error {
	o.reportOptions(ctx, parts)
	targets := make([]stepTarget, len(parts))
	for i, p := range parts {
		if err := p.ReadNodes(o.p.ReadFile); err != nil {
			return err
		}
		if err := p.VerifyStep(); err != nil {
			return err
		}
		o.warn(p)
		target, err := o.targetOf(p)
		if err != nil {
			return err
		}
		targets[i] = target
		if err := o.checkExcluded(ctx, p); err != nil {
			return err
		}
	}
	return o.runSteps(ctx, targets, signals)
}

// targetOf returns the target of a step in the job that it names: the job in which
// srun runs, or another one, such as that of salloc.
func (o *Options) targetOf(p *option.Parsed) (stepTarget, error) {
	if o.p.Env(wire.EnvStepSocket) != "" && o.p.Env(wire.EnvJobID) == strconv.FormatInt(p.Step.JobID, 10) {
		return stepTarget{parsed: p, dial: o.local}, nil
	}
	cluster, err := o.cluster()
	if err != nil {
		return stepTarget{}, err
	}
	return stepTarget{parsed: p, dial: o.attach(cluster, p.Step.JobID), remote: true}, nil
}

// cluster connects to the cluster once.
func (o *Options) cluster() (Cluster, error) {
	if o.connected == nil {
		cluster, err := o.connect()
		if err != nil {
			return nil, err
		}
		o.connected = cluster
	}
	return o.connected, nil
}

// warn prints the warnings of the option table.
func (o *Options) warn(p *option.Parsed) {
	for _, w := range p.Warnings {
		o.printf("%s", w)
	}
}

// notifySignals returns the signals that srun handles, until stop is called.
func (o *Options) notifySignals() (signals <-chan os.Signal, stop func()) {
	if o.Signals != nil {
		return o.Signals, func() {}
	}
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGCONT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGPIPE, syscall.SIGWINCH)
	return ch, func() { signal.Stop(ch) }
}

// dial connects to an agent that runs steps of the job.
type dial func(ctx context.Context) (*step.Conn, error)

// local connects to the agent on this node.
func (o *Options) local(ctx context.Context) (*step.Conn, error) {
	conn, err := step.Dial(ctx, o.p.Env(wire.EnvStepSocket))
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Unreachable, err,
			"Unable to contact the agent of the job: "+err.Error())
	}
	*o.site = siteScripts{o.p.Env(wire.EnvSrunProlog), o.p.Env(wire.EnvSrunEpilog)}
	return conn, nil
}

// printf writes a line of srun to the error stream.
func (o *Options) printf(format string, args ...any) {
	fmt.Fprintf(o.p.Err, "srun: "+format+"\n", args...)
}

// exportOption returns the value of --export, or NONE if it is empty.
func exportOption(p *option.Parsed) string {
	if g := p.Given["export"]; g.From == option.FromCommandLine && g.Value == "" {
		return "NONE"
	}
	return p.Job.Batch.Export
}

// environment returns the variables that --export passes to the tasks.
func environment(environ []string, export string) []string {
	kept := slices.Clone(environ)
	switch strings.ToUpper(export) {
	case "", "ALL":
		return kept
	case "NONE", "NIL":
		return exportOnly(kept, nil)
	}
	all := false
	var names, set []string
	for _, item := range exportItems(export) {
		switch {
		case strings.EqualFold(item, "ALL"):
			all = true
		case strings.Contains(item, "="):
			set = append(set, item)
		default:
			names = append(names, item)
		}
	}
	if !all {
		kept = exportOnly(kept, names)
	}
	for _, e := range set { // existing variables are not overridden
		name, _, _ := strings.Cut(e, "=")
		if _, exists := env.Get(kept, name); !exists {
			kept = append(kept, e)
		}
	}
	return kept
}

// exportItems splits a list at commas outside of quotes. Unlike sbatch, srun keeps
// the quotes in the values.
func exportItems(list string) []string {
	quote := rune(0)
	return strings.FieldsFunc(list, func(c rune) bool {
		switch {
		case quote == c:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		}
		return quote == 0 && c == ','
	})
}

// exportOnly returns the variables with the given names, and Slurm's own.
func exportOnly(environ, names []string) []string {
	return slices.DeleteFunc(environ, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return !strings.HasPrefix(name, "SLURM_") && !slices.Contains(names, name)
	})
}
