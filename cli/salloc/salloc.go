// Package salloc asks for an allocation, runs a command or a shell on this
// machine while it lasts, and gives it back. Steps are srun's.
package salloc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/jobs/alloc"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/option"
)

// Cluster is what salloc needs of a cluster.
type Cluster interface{ alloc.Cluster }

// Options is one call of salloc.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)
	// gaveBack says that the allocation is over, or was given back, and that
	// this was told.
	gaveBack bool
}

// New makes the command. connect is called once.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run runs the command. The error carries the exit code of what salloc ran.
func (o *Options) Run(ctx context.Context, args []string) error {
	parts, err := o.parse(args)
	if err != nil {
		return err
	}
	p := parts[0]
	if asked, err := p.Client.PrintRequested(option.Salloc, o.p.Print); asked {
		return err
	}
	if p.Client.NoShell && len(p.Args) > 0 {
		fmt.Fprintf(o.p.Err, "salloc: warning: the command is not run: --no-shell\n")
		p.Args = nil
	}
	s, err := o.submission(parts, args)
	if err != nil {
		return err
	}
	for _, w := range s.Warnings {
		o.say("%s", w)
	}
	fmt.Fprint(o.p.Err, s.Options)
	if dir := p.Step.Chdir; dir != "" { // before there is anything to give back
		if err := unix.Access(dir, unix.X_OK); err != nil {
			return slurmerr.Newf(slurmerr.Refused, "chdir(%s): %s", dir, strerror.Text(err))
		}
	}
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	return o.run(ctx, p, s, cluster)
}

// parse reads the command line: one part for each component, the command in the
// first.
func (o *Options) parse(args []string) ([]*option.Parsed, error) {
	segments, command := translate.Segments(option.Salloc, args)
	first, err := option.Parse(option.Salloc, segments[0], o.p.Environ())
	if err != nil || first.Client.OnlyPrints() {
		return []*option.Parsed{first}, err
	}
	first.Args = command
	parts := []*option.Parsed{first}
	for i, args := range segments[1:] {
		next, err := parts[i].ParseNextComponent(args, o.p.Environ())
		if err != nil {
			return nil, err
		}
		parts = append(parts, next)
	}
	return parts, nil
}

func (o *Options) submission(parts []*option.Parsed, args []string) (*translate.Submission, error) {
	in := &translate.Input{Args: args, Env: o.p.Environ(), Now: o.p.Now(), Umask: o.p.Umask(), Session: o.p.Session(), Limits: o.p.Limits(), ReadFile: o.p.ReadFile,
		UID: o.p.UID, Group: o.p.Group}
	var err error
	if in.Dir, err = o.p.Dir(); err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "getcwd failed: "+err.Error())
	}
	if in.Hostname, err = o.p.Hostname(); err != nil {
		in.Hostname = "unknown"
	}
	return translate.Allocation(parts, in)
}

// run gets the allocation, uses it, and gives it back.
func (o *Options) run(ctx context.Context, p *option.Parsed, s *translate.Submission, cluster Cluster) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	client := &alloc.Client{
		Name: "salloc", P: o.p, Cluster: cluster, Quiet: p.Client.Quiet > 0, Refusal: "Job submit/allocate failed",
		Unowned: p.Client.NoShell,
	}
	client.Interrupted = func(int64) { client.Info("Job aborted due to signal") }
	client.Pending = func(id int64) { client.Info("Pending job allocation %d", id) }
	a, err := client.Get(ctx, &jobs.Submission{Job: s.Job, Components: s.Components}, p.Client.Immediate, signals)
	if errors.Is(err, alloc.ErrInterrupted) {
		return &slurmerr.Error{Code: 1}
	}
	if err != nil {
		return err
	}
	client.Info("Granted job allocation %d", a.ID)
	if p.Client.NoShell {
		return nil
	}
	if o.bell(p, s) {
		fmt.Fprint(o.p.Err, "\a")
	}
	code := o.command(p, a, client, signals)
	select {
	case <-a.Over():
	default:
		if !o.gaveBack {
			client.Info("Relinquishing job allocation %d", a.ID)
			a.Complete(code)
		}
	}
	if code == 0 {
		return nil
	}
	return &slurmerr.Error{Code: code}
}

// bell tells whether to ring: always, or, without a word about it, never.
func (o *Options) bell(p *option.Parsed, _ *translate.Submission) bool {
	return p.Client.Bell == "always"
}

// environment is what the command sees of its allocation.
func (o *Options) environment(a *alloc.Allocation) []string {
	host, err := o.p.Hostname()
	if err != nil {
		host = "unknown"
	}
	dir, err := o.p.Dir()
	if err != nil {
		dir = "/"
	}
	own := env.Without(o.p.Environ(), translate.FromJob)
	over := env.Allocation(env.Input{Welcome: a.Welcome, Job: a.Job})
	return env.Merge(own, append(over, "SLURM_SUBMIT_DIR="+dir, "SLURM_SUBMIT_HOST="+host)...)
}

func (o *Options) say(format string, args ...any) {
	fmt.Fprintf(o.p.Err, "salloc: "+format+"\n", args...)
}
