// Package srun runs a program as a step of the job that it is called in. The
// agent on its node, and behind it the one on the job's first node, do the
// work (internal/step); srun asks, carries the streams, tells what happens in
// Slurm's words, and ends with the highest exit code of its tasks.
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

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/jobs/alloc"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/option"
)

// Cluster is what srun needs of a cluster where no agent is near.
type Cluster interface{ alloc.Cluster }

// Options is one call of srun.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)
	// afar: srun is not a process of the job.
	afar bool
	// Signals delivers the signals that srun reacts to; nil: those of the
	// process.
	Signals <-chan os.Signal
}

// New makes the command. connect is called at most once, and not at all for a
// step of the job that srun runs in.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run runs the command. The error carries srun's exit code.
func (o *Options) Run(ctx context.Context, args []string) error {
	parsed, err := option.Parse(option.Srun, args, o.p.Environ())
	if err != nil {
		return err
	}
	switch {
	case parsed.Client.Version:
		fmt.Fprintf(o.p.Out, "slurm %s\n", build.Slurm)
		return nil
	case parsed.Client.Help:
		fmt.Fprint(o.p.Out, option.Help(option.Srun))
		return nil
	case parsed.Client.Print != "":
		fmt.Fprint(o.p.Out, parsed.Client.Print)
		return nil
	case parsed.Client.Usage:
		fmt.Fprint(o.p.Out, option.Usage(option.Srun))
		return nil
	}
	if done, err := o.mpi(ctx, parsed); done || err != nil {
		return err
	}
	if len(parsed.Args) == 0 {
		return slurmerr.New(slurmerr.Fatal, "No command given to execute.")
	}
	if environ, err := o.component(parsed); err != nil {
		return err
	} else if environ != nil {
		if parsed, err = option.Parse(option.Srun, args, environ); err != nil {
			return err
		}
	}
	if err := o.groupOfStep(parsed); err != nil {
		return err
	}
	signals, stop := o.signals()
	defer stop()
	switch {
	case parsed.Step.JobID == 0:
		return o.outside(ctx, parsed, args, signals)
	case o.p.Env(wire.EnvStepSocket) != "" && o.p.Env(wire.EnvJobID) == strconv.FormatInt(parsed.Step.JobID, 10):
		o.warn(parsed)
		return o.runStep(ctx, parsed, o.local, signals)
	}
	o.warn(parsed)
	return o.elsewhere(ctx, parsed, signals)
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
	return conn, nil
}

// say writes a line of srun's to the error stream.
func (o *Options) say(format string, args ...any) {
	fmt.Fprintf(o.p.Err, "srun: "+format+"\n", args...)
}

// runStep asks for the step and stays with it.
func (o *Options) runStep(ctx context.Context, p *option.Parsed, dial dial, signals <-chan os.Signal) error {
	r := &run{o: o, parsed: p, quiet: p.Client.Quiet > 0}
	if err := r.prepare(); err != nil {
		return err
	}
	defer r.closeFiles()
	if err := r.broadcast(ctx, dial); err != nil {
		return err
	}
	conn, err := dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	r.conn = conn
	over := make(chan struct{})
	defer close(over)
	if err := r.prolog(); err != nil {
		return err
	}
	defer r.epilog()
	defer r.terminal()()
	go r.obey(signals, over)
	return r.follow()
}

// environment is what the tasks inherit, by --export.
func environment(environ []string, export string) []string {
	kept := slices.DeleteFunc(slices.Clone(environ), func(e string) bool { return strings.HasPrefix(e, "SLURM_EXPORT_ENV=") })
	switch strings.ToUpper(export) {
	case "", "ALL":
		return kept
	case "NONE", "NIL":
		return only(kept, nil)
	}
	all := false
	var names, set []string
	for item := range strings.SplitSeq(export, ",") {
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
	return append(kept, set...)
}

// only keeps the variables with the given names, and Slurm's own.
func only(environ, names []string) []string {
	return slices.DeleteFunc(environ, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return !strings.HasPrefix(name, "SLURM_") && !slices.Contains(names, name)
	})
}
