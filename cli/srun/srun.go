// Package srun runs a program as a step of the job that it is called in. The
// agent on its node, and behind it the one on the job's first node, do the
// work (internal/step); srun asks, carries the streams, tells what happens in
// Slurm's words, and ends with the highest exit code of its tasks.
package srun

import (
	"context"
	"errors"
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

// Cluster is what srun needs of a cluster where no agent is near.
type Cluster interface {
	alloc.Cluster
	Nodes(ctx context.Context) (*status.NodeList, error)
}

// Options is one call of srun.
type Options struct {
	p         *stdio.Process
	connect   func() (Cluster, error)
	connected Cluster // nil: not yet
	// Signals delivers the signals that srun reacts to; nil: those of the
	// process.
	Signals <-chan os.Signal

	site *siteScripts
}

// siteScripts are the site's programs around steps: paths, or texts of scripts.
// They are known once srun is connected.
type siteScripts struct{ prolog, epilog string }

// New makes the command. connect is called at most once, and not at all for a
// step of the job that srun runs in.
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
		return silent(err)
	}
	return err
}

// silent is err as -QQ has it: but for what is fatal nothing is said.
func silent(err error) error {
	e, ok := errors.AsType[*slurmerr.Error](err)
	switch {
	case err == nil, ok && e.Kind == slurmerr.Fatal:
		return err
	case !ok:
		return &slurmerr.Error{Code: 1}
	}
	return &slurmerr.Error{Kind: e.Kind, Code: e.Code}
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
	if err := commands(parts); err != nil && !first.Client.TestOnly {
		return err
	}
	for _, p := range parts {
		if err := o.setTasksFromPrograms(p); err != nil {
			return err
		}
	}
	if err := o.groupOfStep(first); err != nil {
		return err
	}
	if first.Client.TestOnly {
		return o.testOnly(ctx, parts, args)
	}
	signals, stop := o.signals()
	defer stop()
	if first.Step.JobID == 0 {
		return o.outside(ctx, parts, args, signals)
	}
	places := make([]where, len(parts))
	for i, p := range parts {
		if err := p.ReadNodes(o.p.ReadFile); err != nil {
			return err
		}
		if err := p.VerifyStep(); err != nil {
			return err
		}
		o.warn(p)
		place, err := o.placeOf(p)
		if err != nil {
			return err
		}
		places[i] = place
		if err := o.checkExcluded(ctx, p); err != nil {
			return err
		}
	}
	return o.runSteps(ctx, places, signals)
}

// placeOf is a step's place in the job that it names: on this node, or one that
// srun is not in, such as that of salloc.
func (o *Options) placeOf(p *option.Parsed) (where, error) {
	if o.p.Env(wire.EnvStepSocket) != "" && o.p.Env(wire.EnvJobID) == strconv.FormatInt(p.Step.JobID, 10) {
		return where{parsed: p, dial: o.local}, nil
	}
	cluster, err := o.cluster()
	if err != nil {
		return where{}, err
	}
	return where{parsed: p, dial: o.attach(cluster, p.Step.JobID), afar: true}, nil
}

// cluster connects, once.
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

// warn shows what the options' table has to say.
func (o *Options) warn(p *option.Parsed) {
	for _, w := range p.Warnings {
		o.say("%s", w)
	}
}

// signals are those that srun reacts to, until stop.
func (o *Options) signals() (signals <-chan os.Signal, stop func()) {
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

// local is the agent on this node.
func (o *Options) local(ctx context.Context) (*step.Conn, error) {
	conn, err := step.Dial(ctx, o.p.Env(wire.EnvStepSocket))
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Unreachable, err, "Unable to contact the agent of the job: "+err.Error())
	}
	*o.site = siteScripts{o.p.Env(wire.EnvSrunProlog), o.p.Env(wire.EnvSrunEpilog)}
	return conn, nil
}

// say writes a line of srun's to the error stream.
func (o *Options) say(format string, args ...any) {
	fmt.Fprintf(o.p.Err, "srun: "+format+"\n", args...)
}

// exported is the value of --export; one that names nothing keeps nothing.
func exported(p *option.Parsed) string {
	if g := p.Given["export"]; g.From == option.FromCommandLine && g.Value == "" {
		return "NONE"
	}
	return p.Job.Batch.Export
}

// environment is what the tasks inherit, by --export.
func environment(environ []string, export string) []string {
	kept := slices.Clone(environ)
	switch strings.ToUpper(export) {
	case "", "ALL":
		return kept
	case "NONE", "NIL":
		return only(kept, nil)
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
		kept = only(kept, names)
	}
	for _, e := range set { // what is there already stays as it is
		name, _, _ := strings.Cut(e, "=")
		if _, there := env.Get(kept, name); !there {
			kept = append(kept, e)
		}
	}
	return kept
}

// exportItems splits at commas outside of quotes. Unlike sbatch's, srun's quotes
// stay in the values.
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

// only keeps the variables with the given names, and Slurm's own.
func only(environ, names []string) []string {
	return slices.DeleteFunc(environ, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return !strings.HasPrefix(name, "SLURM_") && !slices.Contains(names, name)
	})
}
