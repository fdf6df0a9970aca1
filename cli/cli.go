// Package cli has all commands of Slurm by their names. The commands are packages below this
// one and do not import each other.
package cli

import (
	"context"
	"fmt"
	"io"
	"path"
	"sort"

	"github.com/berth-hpc/berth/cli/run"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
)

// Deps are dependencies from packages that commands may not import, which main provides.
// The zero value is valid: for a nil dependency the command runs a separate program.
type Deps struct {
	// TUI shows the queue in the terminal (tui.Run); nil: run berth-tui.
	TUI func(ctx context.Context, p *stdio.Process, c *jobs.Client, s jobs.Screen) error
	// Slurmrestd returns the command slurmrestd; nil: another program contains it.
	Slurmrestd func(p *stdio.Process) run.Runner
}

// factory returns a command for one process.
type factory func(p *stdio.Process, d Deps) run.Runner

// Known reports whether name is a command that Main runs.
func Known(name string) bool {
	_, ok := registry[name]
	return ok
}

// Names returns the names of all commands in alphabetical order.
func Names() []string {
	names := make([]string, 0, len(registry))
	for name := range registry {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Base returns the command name for a program's name (argv[0]).
func Base(argv0 string) string { return path.Base(argv0) }

// Main runs the named command and returns the exit code.
func Main(name string, args []string, p *stdio.Process, d Deps) int {
	create, ok := registry[name]
	if !ok {
		fmt.Fprintf(p.Err, "berth: error: no command named %q\n", name)
		return 1
	}
	return run.Main(name, args, p, func(p *stdio.Process) run.Runner { return create(p, d) })
}

// Exit prints the error of the named command and returns its exit code.
func Exit(w io.Writer, name string, err error) int { return run.Exit(w, name, err) }
