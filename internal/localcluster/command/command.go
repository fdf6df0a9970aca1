// Package command is the program berth-local: it starts a local cluster in the
// foreground or background, stops it, and shows its status.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/internal/localcluster"
	"github.com/berth-hpc/berth/internal/localcluster/options"
	"github.com/berth-hpc/berth/internal/stdio"
)

// program is a run of berth-local.
type program struct {
	*stdio.Process
	options.Options
	parts localcluster.Parts
}

// Main runs berth-local with these arguments and returns its exit code. parts are the
// peers of the control plane.
func Main(args []string, process *stdio.Process, parts localcluster.Parts) int {
	p := &program{Process: process, parts: parts}
	root := p.root()
	root.SetArgs(args)
	root.SetIn(process.In)
	root.SetOut(process.Out)
	root.SetErr(process.Err)
	if err := root.ExecuteContext(context.Background()); err != nil {
		fmt.Fprintf(process.Err, "berth: error: %s\n", explain(err, p.StateDir))
		return 1
	}
	return 0
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "berth-local",
		Short:         "A Berth cluster on this machine, in one process",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	run := &cobra.Command{
		Use:   "run",
		Short: "Start the cluster and wait until it accepts jobs",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p.RecordShaped(c.Flags())
			return p.run(c.Context())
		},
	}
	p.AddRun(run.Flags())
	down := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster; its state is kept",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return p.down(c.Context()) },
	}
	status := &cobra.Command{
		Use:   "status",
		Short: "Show whether the cluster runs",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return p.status(c.Context()) },
	}
	for _, c := range []*cobra.Command{down, status} {
		p.AddState(c.Flags())
	}
	root.AddCommand(run, down, status)
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// complete sets the defaults of the options.
func (p *program) complete() error {
	dir, err := p.Dir()
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	return p.Complete(p.UID, p.Env, dir, exe)
}

// freeSpace is the minimum free space of the state directory's file system.
const freeSpace = 256 << 20

func (p *program) run(ctx context.Context) error {
	if err := p.complete(); err != nil {
		return err
	}
	if err := os.MkdirAll(p.StateDir, 0o711); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if err := checkSpace(p.StateDir, freeSpace); err != nil {
		return err
	}
	if p.Foreground {
		return p.foreground(ctx)
	}
	return p.background(ctx)
}

// stopTimeout is how long a cluster may take to stop.
const stopTimeout = time.Minute

func (p *program) down(ctx context.Context) error {
	if err := p.complete(); err != nil {
		return err
	}
	stopped, err := localcluster.Stop(ctx, p.StateDir, stopTimeout)
	if err != nil {
		return err
	}
	swept, err := localcluster.Sweep(p.StateDir, p.parts)
	if err != nil {
		return fmt.Errorf("removing what the last run left: %w", err)
	}
	if swept {
		fmt.Fprintf(p.Err, "the cluster with state in %s was killed; what it left on this machine is removed\n",
			p.StateDir)
		return nil
	}
	if !stopped {
		fmt.Fprintf(p.Err, "no local cluster runs with state in %s\n", p.StateDir)
		return nil
	}
	fmt.Fprintf(p.Err, "local cluster ended; its state stays in %s\n", p.StateDir)
	return nil
}

// errNotRunning is the error of status if no cluster runs.
var errNotRunning = errors.New("no local cluster is running")
