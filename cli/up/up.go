// Package up implements berth up, down and status: a cluster on this machine. It runs
// berth-local, a separate program because it links all of Kubernetes.
package up

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth/internal/localcluster/options"
	"github.com/berth-hpc/berth/internal/sibling"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
)

// program is the file name of the local cluster's program.
const program = "berth-local"

// Commands returns the subcommands of berth for a local cluster.
func Commands(p *stdio.Process) []*cobra.Command {
	var o options.Options
	up := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster on this machine and wait until it accepts jobs",
		Long: `Start a cluster on this machine and wait until it accepts jobs.

One process runs Kubernetes' control plane, the scheduler and a number of
process nodes, whose pods are processes of this machine. Root is not required;
as root, --user adds users of the machine to the cluster. The state survives
berth down. The commands find the cluster without further configuration.`,
	}
	o.AddRun(up.Flags())
	down := &cobra.Command{Use: "down", Short: "Stop the cluster on this machine and keep its state"}
	status := &cobra.Command{Use: "status", Short: "Print whether a cluster runs on this machine"}
	for _, c := range []*cobra.Command{down, status} {
		o.AddState(c.Flags())
	}
	for c, verb := range map[*cobra.Command]string{up: "run", down: "down", status: "status"} {
		c.Args = cobra.NoArgs
		c.RunE = func(c *cobra.Command, _ []string) error {
			return run(c.Context(), p, append([]string{verb}, given(c.Flags())...))
		}
	}
	return []*cobra.Command{up, down, status}
}

// given returns the flags that were set, as a command line.
func given(fs *pflag.FlagSet) []string {
	var args []string
	fs.Visit(func(f *pflag.Flag) {
		if f.Name == "kubeconfig" { // a flag of berth itself
			return
		}
		if many, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range many.GetSlice() {
				args = append(args, "--"+f.Name+"="+v)
			}
			return
		}
		args = append(args, "--"+f.Name+"="+f.Value.String())
	})
	return args
}

// stopWait is the time for berth-local to stop the cluster after a signal.
const stopWait = 2 * time.Minute

// run runs berth-local and returns its exit code.
func run(ctx context.Context, p *stdio.Process, args []string) error {
	path, err := sibling.Path(program)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.In, p.Out, p.Err
	cmd.Env = p.Environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWait
	// berth-local gets Ctrl-C too and handles it.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGINT)
	defer signal.Stop(interrupts)

	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return slurmerr.Newf(slurmerr.Refused, "%s does not exist", path).
			Hint("the local cluster is a program of its own; `make build` makes it beside berth")
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return &slurmerr.Error{Code: exit.ExitCode()} // it has printed the error
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
