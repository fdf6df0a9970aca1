// Package salloc obtains an allocation, runs a command or a shell on this machine, and
// releases the allocation. The command starts steps with srun.
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

// Cluster is the access to a cluster that salloc needs.
type Cluster interface{ alloc.Cluster }

// Options is one call of salloc.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)
	// released means that the allocation has ended or was released, and that this was
	// printed.
	released bool
}

// New returns the command. connect is called once.
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
	if p.Client.NoShell {
		p.Args = nil
	}
	s, err := o.submission(parts, args)
	if err != nil {
		return err
	}
	for _, w := range s.Warnings {
		o.printf("%s", w)
	}
	fmt.Fprint(o.p.Err, s.Options)
	if dir := p.Step.Chdir; dir != "" { // before an allocation must be released
		if err := unix.Access(dir, unix.X_OK); err != nil {
			return slurmerr.Newf(slurmerr.Refused, "chdir(%s): %s", dir, strerror.Text(err))
		}
	}
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	err = o.run(ctx, p, s, cluster)
	if p.Client.Quiet > 1 {
		return slurmerr.Suppress("salloc", err)
	}
	return err
}

// parse reads the command line: one part for each component, the command in the
// first.
func (o *Options) parse(args []string) ([]*option.Parsed, error) {
	segments, command := translate.Segments(option.Salloc, args)
	first, err := option.ParseAs(o.p.UID, option.Salloc, segments[0], o.p.Environ())
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
		if next.Client.OnlyPrints() {
			return []*option.Parsed{next}, nil
		}
		parts = append(parts, next)
	}
	return parts, nil
}

// submission returns the job that the options request.
func (o *Options) submission(parts []*option.Parsed, args []string) (*translate.Submission, error) {
	in := &translate.Input{
		Args: args, Env: o.p.Environ(), Now: o.p.Now(), Umask: o.p.Umask(), Session: o.p.Session(),
		Limits: o.p.Limits(), ReadFile: o.p.ReadFile, UID: o.p.UID, Group: o.p.Group,
	}
	var err error
	if in.Dir, err = o.p.Dir(); err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "getcwd failed: "+err.Error())
	}
	if in.Hostname, err = o.p.Hostname(); err != nil {
		in.Hostname = "unknown"
	}
	return translate.Allocation(parts, in)
}

// run obtains the allocation, runs the command, and releases the allocation.
func (o *Options) run(ctx context.Context, p *option.Parsed, s *translate.Submission, cluster Cluster) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	client := &alloc.Client{
		Name: "salloc", P: o.p, Cluster: cluster, Quiet: p.Client.Quiet > 0,
		Refusal: "Job submit/allocate failed", Unowned: p.Client.NoShell,
	}
	client.Interrupted = func(int64) { client.Info("Job aborted due to signal") }
	client.Pending = func(id int64) { client.Info("Pending job allocation %d", id) }
	a, err := client.Get(ctx,
		&jobs.Submission{Job: s.Job, Components: s.Components, Command: "salloc"}, p.Client.StartWithin(), signals)
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
	if p.Client.Bell == "always" {
		fmt.Fprint(o.p.Err, "\a")
	}
	code := o.runCommand(p, a, client, signals)
	select {
	case <-a.Over():
	default:
		if !o.released {
			client.Info("Relinquishing job allocation %d", a.ID)
			a.Complete(code)
		}
	}
	if code == 0 {
		return nil
	}
	return &slurmerr.Error{Code: code}
}

// environment returns the environment of the command.
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
	added := env.Allocation(env.Input{Welcome: a.Welcome, Job: a.Job})
	return env.WithSlurmConf(env.Merge(own, append(added, "SLURM_SUBMIT_DIR="+dir, "SLURM_SUBMIT_HOST="+host)...))
}

// printf prints a line of salloc to the error stream.
func (o *Options) printf(format string, args ...any) {
	fmt.Fprintf(o.p.Err, "salloc: "+format+"\n", args...)
}
