// Package sbcast copies a file to every node of a job. The bytes go down the
// agents' tree as the input of a step that nobody sees; each node checks them
// against the sum taken here before the file gets its name.
package sbcast

import (
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/option"
)

// Cluster is what sbcast needs of a cluster where no agent is near.
type Cluster interface {
	Attach(ctx context.Context, id int64) (io.ReadWriteCloser, error)
}

// Options is one call of sbcast.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)
}

// New makes the command. connect is not called inside the job.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, rest, err := option.Sbcast.Begin(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil {
		return err
	}
	if len(rest) != 2 {
		return &slurmerr.Error{Code: 1, Before: []string{
			fmt.Sprintf("Need two file names, have %d names", len(rest)), `Try "sbcast --help" for more information`,
		}}
	}
	id, err := o.job(v.Get("jobid"))
	if err != nil {
		return err
	}
	source, dest := o.known(rest[0]), rest[1]
	if strings.HasSuffix(dest, "/") {
		return slurmerr.New(slurmerr.Refused, "Target filename cannot be a directory.").Hint("name the file: %s%s", dest, path.Base(source))
	}
	c := &copying{Options: o, id: id, v: v}
	c.packed = o.compress(v)
	if v.Has("verbose") {
		c.tell(rest[0], dest)
	}
	if err := c.copy(ctx, source, rest[0], o.known(dest)); err != nil {
		return err
	}
	return c.libraries(ctx, source, rest[0], o.known(dest))
}

func (o *Options) known(name string) string {
	if path.IsAbs(name) {
		return name
	}
	dir, err := o.p.Dir()
	if err != nil {
		return name
	}
	return path.Join(dir, name)
}

// job is the job meant: --jobid, else the one that sbcast is in.
func (o *Options) job(text string) (int64, error) {
	if text == "" {
		text = o.p.Env("SLURM_JOB_ID")
	}
	id, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text != "" && (err != nil || id < 1):
		return 0, unknown(0)
	case err != nil:
		return 0, slurmerr.New(slurmerr.Refused, "Need a job id to run this command.  Run from within a Slurm job or use the --jobid option.")
	}
	return id, nil
}

func (o *Options) dial(ctx context.Context, id int64) (*step.Conn, error) {
	if socket := o.p.Env(wire.EnvStepSocket); socket != "" && o.p.Env(wire.EnvJobID) == strconv.FormatInt(id, 10) {
		return step.Dial(ctx, socket)
	}
	cluster, err := o.connect()
	if err != nil {
		return nil, err
	}
	c, err := cluster.Attach(ctx, id)
	switch kube.KindOf(err) {
	case kube.NotFound:
		return nil, unknown(id)
	case kube.Conflict:
		return nil, slurmerr.Newf(slurmerr.BadValue, "Slurm job %d lookup error: %s", id, err.Error())
	}
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Unreachable, err, "Slurm job lookup failed: "+err.Error())
	}
	return step.NewClient(c)
}

// unknown is the error of a job that is not there.
func unknown(id int64) error {
	return slurmerr.Newf(slurmerr.BadValue, "Slurm job %d lookup error: %s", id, jobs.ErrInvalidID)
}

// compress tells whether what is sent is to be compressed. Slurm's libraries
// all mean the one that the agents know.
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
		o.say("error: Compression type '%s' unknown, disabling compression support.", kind)
		return false
	}
}

// say writes a line to the error stream.
func (o *Options) say(format string, args ...any) {
	fmt.Fprintf(o.p.Err, "sbcast: "+format+"\n", args...)
}

func cause(err error) string {
	if i := strings.LastIndex(err.Error(), ": "); i >= 0 {
		err = fmt.Errorf("%s", err.Error()[i+2:])
	}
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}
