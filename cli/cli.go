// Package cli runs a command by name, prints its error and returns its exit code. The
// commands are packages below this one and do not import each other.
package cli

import (
	"context"
	"fmt"
	"io"
	"path"
	"runtime/debug"
	"sort"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
)

// Deps are dependencies from packages that commands may not import, which main provides.
// The zero value is valid: for a nil dependency the command runs a separate program.
type Deps struct {
	// TUI shows the queue in the terminal (tui.Run); nil: run berth-tui.
	TUI func(ctx context.Context, p *stdio.Process, c *jobs.Client, s jobs.Screen) error
	// Slurmrestd returns the command slurmrestd; nil: another program contains it.
	Slurmrestd func(p *stdio.Process) Runner
}

// Runner is a command. args does not contain the command's name. The error determines the
// exit code (slurmerr.ExitCode).
type Runner interface {
	Run(ctx context.Context, args []string) error
}

// factory returns a command for one process.
type factory func(p *stdio.Process, d Deps) Runner

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
	make, ok := registry[name]
	if !ok {
		fmt.Fprintf(p.Err, "berth: error: no command named %q\n", name)
		return 1
	}
	// Commands are short-lived, so fewer garbage collections are faster.
	if _, set := p.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(800)
	}
	ctx := context.Background()
	elsewhere, err := runOnClusters(ctx, name, args, p, d)
	if !elsewhere {
		err = make(p, d).Run(ctx, args)
	}
	code := Exit(p.Err, name, err)
	if submits[name] {
		return slurmerr.ExitCodeFor(err, p.Env)
	}
	return code
}

// submits are the commands whose exit code SLURM_EXIT_ERROR can set.
var submits = map[string]bool{"sbatch": true, "srun": true, "salloc": true}

// Exit prints the error of the named command and returns its exit code.
func Exit(w io.Writer, name string, err error) int {
	if err == nil {
		return 0
	}
	slurmerr.Print(w, name, err)
	return slurmerr.ExitCode(err)
}
