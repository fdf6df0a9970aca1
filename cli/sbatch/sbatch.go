// Package sbatch submits batch scripts.
package sbatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is the interface of the cluster that sbatch needs.
type Cluster interface {
	Submit(ctx context.Context, s *jobs.Submission) (*jobs.Submitted, error)
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
	Partitions(ctx context.Context) (*status.PartitionList, error)
	Cluster(ctx context.Context, names []string) (string, error)
	Owner(ctx context.Context, user string) (*jobs.Owner, error)
}

// Options are the dependencies and options of sbatch.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)

	submission *translate.Submission
	// elsewhere submits to other clusters; nil: they have been chosen.
	elsewhere func(ctx context.Context, names []string, script []byte) (ok bool, err error)
}

// New returns the command. It calls connect once, after all checks that do not need the
// cluster; connect sends no requests.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	in, err := o.input(args)
	if err != nil {
		return err
	}
	if o.submission, err = translate.Sbatch(*in); err != nil {
		return o.afterCluster(ctx, err)
	}
	if printed, err := o.submission.Client.PrintRequested(option.Sbatch, o.p.Print); printed {
		return err
	}
	if names := o.submission.Client.Clusters; names != "" && o.elsewhere != nil {
		var script []byte
		if in.ScriptName == "" {
			script = in.Script
		}
		if ok, err := o.elsewhere(ctx, strings.Split(names, ","), script); ok {
			return err
		}
	}
	err = run(ctx, o)
	if o.submission.Client.Quiet > 1 {
		return slurmerr.Suppress("sbatch", err)
	}
	return err
}

// Redirect sets the function that submits to the clusters of a script (#SBATCH -M).
func (o *Options) Redirect(elsewhere func(ctx context.Context, names []string, script []byte) (ok bool, err error)) {
	o.elsewhere = elsewhere
}

// input returns everything that the submission depends on. It does not read the script
// if an option only prints a text.
func (o *Options) input(args []string) (*translate.Input, error) {
	in := &translate.Input{
		Args: args, Env: o.p.Environ(), Now: o.p.Now(), Umask: o.p.Umask(), Session: o.p.Session(),
		Limits: o.p.Limits(), ReadFile: o.p.ReadFile, UID: o.p.UID, Group: o.p.Group,
	}
	call, err := translate.Command(*in)
	if err != nil {
		return nil, err
	}
	if in.Dir, err = o.p.Dir(); err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "getcwd failed: "+err.Error()).
			Hint("the current directory was deleted; change to another one")
	}
	if in.Hostname, err = o.p.Hostname(); err != nil {
		in.Hostname = "unknown"
	}
	if call.Wrapped || call.Client.OnlyPrints() {
		return in, nil
	}
	return in, call.AfterPower(o.readScript(in, call.Script))
}

// readScript reads the script from standard input or from a file. The file is in the
// current directory or, for a name without a slash, in PATH.
func (o *Options) readScript(in *translate.Input, name string) (err error) {
	in.ScriptName = name
	if name == "" {
		if in.Script, err = io.ReadAll(o.p.In); err != nil {
			return slurmerr.Wrap(slurmerr.Refused, err, "Unable to read the script from standard input: "+err.Error())
		}
		return nil
	}
	for _, file := range o.candidates(in.Dir, name) {
		if in.Script, err = o.p.ReadFile(file); err == nil {
			in.ScriptPath = file
			return nil
		}
		if errors.Is(err, syscall.EISDIR) { // as in Slurm, a directory is an empty script
			in.Script, in.ScriptPath = nil, file
			return nil
		}
	}
	e := slurmerr.Wrap(slurmerr.Refused, err, "Unable to open file "+name)
	e.Hints = nil
	return e
}

// candidates returns the paths at which a script may be.
func (o *Options) candidates(dir, name string) []string {
	if path.IsAbs(name) {
		return []string{name}
	}
	list := []string{path.Join(dir, name)}
	if strings.Contains(name, "/") {
		return list
	}
	for directory := range strings.SplitSeq(o.p.Env("PATH"), ":") {
		if path.IsAbs(directory) {
			list = append(list, path.Join(directory, name))
		}
	}
	return list
}

// run submits the job and prints its id.
func run(ctx context.Context, o *Options) error {
	s := o.submission
	for _, w := range s.Warnings {
		if s.Client.Quiet > 0 && strings.HasPrefix(w, "Warning: ") {
			continue // srun and salloc print it with --quiet, too, as Slurm's
		}
		fmt.Fprintln(o.p.Err, "sbatch: "+w)
	}
	if s.Options != "" {
		fmt.Fprint(o.p.Err, s.Options)
	}
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	to, err := o.resolveTarget(ctx, cluster)
	if err != nil {
		return err
	}
	done, err := jobs.SubmitWithRetry(
		o.retries(),
		func(n int) bool { return o.full(ctx, n) },
		func() (*jobs.Submitted, error) {
			return cluster.Submit(ctx, &jobs.Submission{
				Job: s.Job, Components: s.Components, Script: s.Script, Environment: s.Environment, Command: "sbatch",
				DryRun: s.Client.TestOnly, Forecast: s.Client.TestOnly, Namespace: to.namespace, Waiting: o.waiting,
			})
		},
	)
	if err != nil {
		return explain(ctx, cluster, &s.Job, s.Client.TestOnly, err)
	}
	if s.Client.TestOnly {
		if s.Client.Quiet == 0 {
			fmt.Fprintln(o.p.Err, "sbatch: "+done.ForecastSummary())
		}
		return nil
	}
	o.printID(done.ID, to.cluster)
	if s.Client.Wait {
		return o.wait(ctx, cluster, done.ID)
	}
	return nil
}

// printID prints the job's id, and the name of the cluster with -M.
func (o *Options) printID(id int64, cluster string) {
	switch c := o.submission.Client; {
	case c.Quiet > 0:
	case c.Parsable && cluster != "":
		fmt.Fprintf(o.p.Out, "%d;%s\n", id, cluster)
	case c.Parsable:
		fmt.Fprintln(o.p.Out, id)
	case cluster != "":
		fmt.Fprintf(o.p.Out, "Submitted batch job %d on cluster %s\n", id, cluster)
	default:
		fmt.Fprintf(o.p.Out, "Submitted batch job %d\n", id)
	}
}

// waiting prints why a submission is being retried.
func (o *Options) waiting(err error) {
	if o.submission.Client.Quiet == 0 {
		fmt.Fprintf(o.p.Err, "sbatch: %v; retrying\n", err)
	}
}

// retries returns how often a submission is retried while the queue is full (as in
// Slurm).
func (o *Options) retries() int {
	if o.submission.Client.TestOnly {
		return 0
	}
	return 15
}

// full waits before retry n of a submission to a full queue, and reports whether to
// retry. As in Slurm, it prints its message despite --quiet.
func (o *Options) full(ctx context.Context, n int) bool {
	if n == 1 {
		fmt.Fprintln(o.p.Err, "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying")
	}
	select {
	case <-time.After(time.Duration(n) * time.Second):
		return true
	case <-ctx.Done():
		return false
	}
}
