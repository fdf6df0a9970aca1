// Package cli knows every command by name and runs one: it prints the error
// that ends the command, once, and turns it into the exit code. The commands
// are packages below this one and never import each other.
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

// Deps is what main gives to the commands from packages that commands may not
// import. The zero value works: where something is nil, the program that has it
// is run instead.
type Deps struct {
	// TUI shows the queue in the terminal (tui.Run); nil: berth-tui does.
	TUI func(ctx context.Context, p *stdio.Process, c *jobs.Client, s jobs.Screen) error
}

// Runner is one command, ready to run. Args go without the command's name. An
// error ends the command with a message and an exit code (slurmerr.ExitCode).
type Runner interface {
	Run(ctx context.Context, args []string) error
}

// factory makes a command for one process.
type factory func(p *stdio.Process, d Deps) Runner

// Known reports whether name is a command that Main runs.
func Known(name string) bool {
	_, ok := registry[name]
	return ok
}

// Names lists the commands in alphabetical order.
func Names() []string {
	names := make([]string, 0, len(registry))
	for name := range registry {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Base is the command name that a program's own name (argv[0]) stands for.
func Base(argv0 string) string { return path.Base(argv0) }

// Main runs the command called name and returns the exit code.
func Main(name string, args []string, p *stdio.Process, d Deps) int {
	make, ok := registry[name]
	if !ok {
		fmt.Fprintf(p.Err, "berth: error: no command named %q\n", name)
		return 1
	}
	// A command is over before collecting its garbage would pay.
	if _, set := p.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(800)
	}
	err := make(p, d).Run(context.Background(), args)
	code := Exit(p.Err, name, err)
	if submits[name] {
		return slurmerr.ExitCodeFor(err, p.Env)
	}
	return code
}

// submits are the commands that end as SLURM_EXIT_ERROR says.
var submits = map[string]bool{"sbatch": true, "srun": true, "salloc": true}

// Exit prints err as the last word of the command called name, and returns the
// exit code that says the same.
func Exit(w io.Writer, name string, err error) int {
	if err == nil {
		return 0
	}
	slurmerr.Print(w, name, err)
	return slurmerr.ExitCode(err)
}
