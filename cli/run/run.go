// Package run runs one command: on the cluster or the clusters that its -M names, with its
// errors printed as Slurm prints them, and with Slurm's exit codes. It does not know the
// commands, so that a program contains only those that it imports: what a package computes
// when a program starts is most of what a short command costs.
package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
)

// Runner is a command. args does not contain the command's name. The error determines the
// exit code (slurmerr.ExitCode).
type Runner interface {
	Run(ctx context.Context, args []string) error
}

// Factory returns a command for one process.
type Factory func(p *stdio.Process) Runner

// Main runs the named command, which create returns, and returns the exit code.
func Main(name string, args []string, p *stdio.Process, create Factory) int {
	// Commands are short-lived, so fewer garbage collections are faster.
	if _, set := p.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(800)
	}
	ctx := context.Background()
	c := command{name, args, create}
	elsewhere, err := c.onClusters(ctx, p)
	if !elsewhere {
		err = c.onPresent(ctx, p)
	}
	code := Exit(p.Err, name, err)
	if submits[name] {
		return slurmerr.ExitCodeFor(err, p.Env)
	}
	return code
}

// Redirected is a command that may find the names of clusters where only it looks: sbatch reads
// them in its script.
type Redirected interface {
	Runner
	// Redirect is called before Run. Run calls elsewhere if the command is for the named
	// clusters; script is what it has read from standard input, nil if it has read a file. If
	// ok is false, the name is that of the present cluster, or of none.
	Redirect(elsewhere func(ctx context.Context, names []string, script []byte) (ok bool, err error))
}

// onPresent runs the command for the present cluster, unless it says itself that it is for others.
func (c *command) onPresent(ctx context.Context, p *stdio.Process) error {
	r := c.create(p)
	if d, ok := r.(Redirected); ok {
		d.Redirect(func(ctx context.Context, names []string, script []byte) (bool, error) {
			request := option.ClustersRequest{Clusters: names, Operands: []string{"a file"}}
			q := *p
			if script != nil {
				request.Operands, q.In = nil, bytes.NewReader(script)
			}
			return c.onNamed(ctx, &q, request)
		})
	}
	return r.Run(ctx, c.args)
}

// command is a command with its arguments.
type command struct {
	name   string
	args   []string
	create Factory
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

// Connect returns a connection that prints the warnings of the cluster about requests
// without effect, in the name of a command.
func Connect(p *stdio.Process, name string) (*jobs.Client, error) {
	c, err := jobs.Connect(p)
	if err == nil {
		c.Warnings(func(text string) { fmt.Fprintf(p.Err, "%s: warning: %s\n", name, printable.Escape(text)) })
	}
	return c, err
}
