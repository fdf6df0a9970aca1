// Package tools has the subcommands of berth that use the types of Kubernetes: export, import,
// sim and translate. They run in berth-tools, a separate program. Without those types berth,
// which is each of Slurm's commands and in the pods of all jobs, stays small and starts fast.
package tools

import (
	"errors"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/internal/sibling"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
)

// program is the file name of berth-tools.
const program = "berth-tools"

// Commands returns the subcommands of berth that berth-tools runs. A test of the generated
// manual pages compares their texts with those of the commands themselves.
func Commands(p *stdio.Process) []*cobra.Command {
	return []*cobra.Command{
		command(p, "export [KIND...]", "Print the configuration of the cluster as YAML"),
		command(p, "import SLURM.CONF", "Convert the configuration of a Slurm site to Berth's objects"),
		command(p, "sim TRACE.swf", "Simulate the scheduling of a workload trace"),
		command(p, "translate [SBATCH OPTIONS] [SCRIPT [ARGUMENTS]]", "Print the Kubernetes objects of a batch script"),
	}
}

// command returns a subcommand that berth-tools runs, completes and describes.
func command(p *stdio.Process, use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error { return run(p, append([]string{c.Name()}, args...)) },
		ValidArgsFunction: func(c *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
			return complete(p, append(append([]string{c.Name()}, args...), last)), cobra.ShellCompDirectiveDefault
		},
	}
}

// run runs berth-tools and returns its exit code; it has printed its own error.
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

// complete returns the candidates for the last of the words, each with its help text behind a
// tab, or nil if berth-tools cannot be run.
func complete(p *stdio.Process, words []string) []string {
	path, err := sibling.Path(program)
	if err != nil {
		return nil
	}
	cmd := exec.Command(path, append([]string{cobra.ShellCompRequestCmd}, words...)...)
	cmd.Env = p.Environ()
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	lines := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, ":") }) // cobra's directive
}
