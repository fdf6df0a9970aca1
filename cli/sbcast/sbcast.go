// Package sbcast copies a file to every node of a job. The contents are the input of a
// hidden step and take the agents' tree. Each node compares their checksum with that of
// the source before the file gets its name.
package sbcast

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/value"
)

// Cluster is the access to a cluster that sbcast needs outside of a job.
type Cluster interface {
	AttachTo(ctx context.Context, name string) (io.ReadWriteCloser, error)
}

// Options is one call of sbcast.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)
}

// New returns the command. connect is not called inside the job.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// checks returns those of values that Slurm warns of where they stand.
func (o *Options) checks() option.Checks {
	libraries := func(name string) func(string) error {
		return func(text string) error {
			if _, ok := parseSendLibs(text); !ok {
				slurmerr.Print(o.p.Err, "sbcast", &slurmerr.Error{
					Message: fmt.Sprintf("Ignoring unrecognized %s value '%s'", name, printable.Escape(text)),
				})
			}
			return nil
		}
	}
	return option.Checks{
		"SBCAST_SEND_LIBS": libraries("SBCAST_SEND_LIBS"), "send-libs": libraries("--send-libs"),
	}
}

// Run runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, rest, err := option.Sbcast.Checked(o.checks()).ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil {
		return err
	}
	if len(rest) != 2 {
		return &slurmerr.Error{Code: 1, Before: []string{
			fmt.Sprintf("Need two file names, have %d names", len(rest)), `Try "sbcast --help" for more information`,
		}}
	}
	if v.Has("size") && !validSize(v.Get("size")) {
		fmt.Fprintln(o.p.Err, "size specification is invalid, ignored")
	}
	id, err := o.job(v)
	if err != nil {
		return err
	}
	source, dest := o.absolute(rest[0]), rest[1]
	switch {
	case dest == "":
		return slurmerr.New(slurmerr.Refused, "Target filename cannot be a directory.")
	case strings.HasSuffix(dest, "/"):
		return slurmerr.New(slurmerr.Refused, "Target filename cannot be a directory.").
			Hint("name the file: %s%s", dest, path.Base(source))
	}
	c := &transfer{Options: o, id: id, v: v}
	c.compressed = o.compress(v)
	if v.Has("verbose") {
		c.printOptions(rest[0], dest)
	}
	if _, err := os.Stat(source); err == nil { // otherwise copy reports the error first
		if c.nodes, err = o.nodes(ctx, id); err != nil {
			return err
		}
	}
	if err := c.copy(ctx, source, rest[0], o.absolute(dest)); err != nil {
		return err
	}
	return c.sendLibraries(ctx, source, rest[0], o.absolute(dest))
}

// absolute returns the absolute path of a file.
func (o *Options) absolute(name string) string {
	if name == "" || path.IsAbs(name) {
		return name
	}
	dir, err := o.p.Dir()
	if err != nil {
		return name
	}
	return path.Join(dir, name)
}

// job returns the job or step of --jobid, or the job in which sbcast runs.
func (o *Options) job(v *option.Values) (*value.StepID, error) {
	text := v.Get("jobid")
	if !v.Has("jobid") {
		if text = o.p.Env("SLURM_JOB_ID"); text == "" {
			return nil, slurmerr.New(slurmerr.Refused,
				"Need a job id to run this command.  Run from within a Slurm job or use the --jobid option.")
		}
	}
	id, err := value.ParseStepID(text)
	switch {
	case err != nil:
		return nil, slurmerr.New(slurmerr.Fatal, err.Error())
	case id.Job == 0:
		return nil, unknown(&id)
	}
	return &id, nil
}

// validSize reports whether Slurm accepts the value of --size: a number of bytes, or one
// with the suffix k or m. The value has no effect here.
func validSize(text string) bool {
	digits := strings.TrimLeft(text, "0123456789")
	return digits == "" || strings.Contains("kKmM", digits[:1])
}

// dial connects to an agent of the job.
func (o *Options) dial(ctx context.Context, id *value.StepID) (*step.Conn, error) {
	if socket := o.p.Env(wire.EnvStepSocket); socket != "" && o.p.Env(wire.EnvJobID) == id.JobID() {
		return step.Dial(ctx, socket)
	}
	cluster, err := o.connect()
	if err != nil {
		return nil, err
	}
	c, err := cluster.AttachTo(ctx, id.JobID())
	switch kube.KindOf(err) {
	case kube.NotFound:
		return nil, unknown(id)
	case kube.Conflict:
		return nil, slurmerr.Newf(slurmerr.BadValue, "Slurm job %s lookup error: %s", id, err.Error())
	}
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Unreachable, err, "Slurm job lookup failed: "+err.Error())
	}
	return step.NewClient(c)
}

// nodes returns the nodes of the step, or nil for all nodes of the job.
func (o *Options) nodes(ctx context.Context, id *value.StepID) ([]string, error) {
	if id.Step == "" {
		return nil, nil
	}
	conn, err := o.dial(ctx, id)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	list, err := step.QueryUsage(conn, step.ParseID(id.Step))
	switch {
	case err != nil:
		return nil, slurmerr.Wrap(slurmerr.Unreachable, err, "Slurm job lookup failed: "+err.Error())
	case len(list) == 0:
		return nil, unknown(id)
	}
	return list[0].Record.Nodes, nil
}

// unknown returns the error of a job or step that does not exist.
func unknown(id *value.StepID) error {
	return slurmerr.Newf(slurmerr.BadValue, "Slurm job %s lookup error: %s", id, jobs.ErrInvalidID)
}

// compress reports whether to compress the transfer. All of Slurm's libraries select the
// one that the agents support.
func (o *Options) compress(v *option.Values) bool {
	if !v.Has("compress") {
		return false
	}
	switch kind := strings.ToLower(v.Get("compress")); kind {
	case "none":
		return false
	case "", "lz4", "zlib", "zstd":
		return true
	default:
		o.printf("error: Compression type '%s' unknown, disabling compression support.", kind)
		return false
	}
}

// printf prints a line to the error stream.
func (o *Options) printf(format string, args ...any) {
	fmt.Fprintf(o.p.Err, "sbcast: "+format+"\n", args...)
}
