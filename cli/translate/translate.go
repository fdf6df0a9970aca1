// Package translate implements berth translate, which prints the Kubernetes objects for a
// batch script. It runs berth-translate, a separate program that links the types of
// Kubernetes. Without them berth, which every job has, stays small and fast.
package translate

import (
	"errors"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/internal/sibling"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
)

// program is the file name of berth-translate.
const program = "berth-translate"

// Commands returns the subcommands of berth in this package.
func Commands(p *stdio.Process) []*cobra.Command {
	return []*cobra.Command{{
		Use:   "translate [SBATCH OPTIONS] [SCRIPT [ARGUMENTS]]",
		Short: "Print the Kubernetes objects of a batch script",
		Long: `Print the Kubernetes objects of a batch script: the PodGroup and the JobSet, as
YAML. The options are those of sbatch. No cluster is needed: the job has the id
1, runs on nodes called node-1, node-2 and so on, and has the defaults of a new
cluster.`,
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
				return c.Help()
			}
			return run(p, args)
		},
	}}
}

// run runs berth-translate and returns its exit code; it has printed its own error.
func run(p *stdio.Process, args []string) error {
	path, err := sibling.Path(program)
	if err != nil {
		return slurmerr.Wrap(slurmerr.Internal, err, "")
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.In, p.Out, p.Err
	cmd.Env = p.Environ()
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return &slurmerr.Error{Code: exit.ExitCode()}
	}
	return slurmerr.Wrap(slurmerr.Internal, err, "cannot run "+program+": "+err.Error()).
		Hint("it should be at %s; `make build` builds it", path)
}
