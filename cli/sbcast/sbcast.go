// Package sbcast copies a file to every node of a job. The bytes go down the
// agents' tree as the input of a step that nobody sees; each node checks them
// against the sum taken here before the file gets its name.
package sbcast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
		return slurmerr.Newf(slurmerr.Refused, "Need two file names, have %d names", len(rest))
	}
	id, err := o.job(v.Get("jobid"))
	if err != nil {
		return err
	}
	file, err := os.Open(o.known(rest[0]))
	if err != nil {
		return slurmerr.Wrap(slurmerr.Refused, err, "Can't open `"+rest[0]+"`: "+cause(err))
	}
	defer file.Close()
	r, err := o.receive(file, rest, v)
	if err != nil {
		return err
	}
	conn, err := o.dial(ctx, id)
	if err != nil {
		return err
	}
	defer conn.Close()
	return o.send(conn, id, file, r)
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
	if err != nil || id < 1 {
		return 0, slurmerr.New(slurmerr.Refused, "Need a job id to run this command.  Run from within a Slurm job or use the --jobid option.")
	}
	return id, nil
}

// receive says what the nodes are to make of the bytes.
func (o *Options) receive(file *os.File, names []string, v *option.Values) (*step.Receive, error) {
	st, err := file.Stat()
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "")
	}
	if !st.Mode().IsRegular() {
		return nil, slurmerr.Newf(slurmerr.Refused, "Can't open `%s`: not a regular file", names[0])
	}
	r, err := step.Describe(file)
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "Can't read `"+names[0]+"`: "+cause(err))
	}
	dest := names[1]
	if strings.HasSuffix(dest, "/") {
		dest += path.Base(names[0])
	}
	r.Path, r.Force = o.known(dest), v.Has("force")
	r.Compressed = o.compress(v)
	if v.Has("preserve") {
		r.Modified = st.ModTime().UnixNano()
	}
	return r, nil
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
		return nil, slurmerr.New(slurmerr.Refused, "Slurm job lookup failed: "+jobs.ErrInvalidID)
	case kube.Conflict:
		return nil, slurmerr.New(slurmerr.Refused, "Slurm job lookup failed: "+err.Error())
	}
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Unreachable, err, "Slurm job lookup failed: "+err.Error())
	}
	return step.NewClient(c)
}

// send asks for the step and gives it the file.
func (o *Options) send(conn *step.Conn, id int64, file io.Reader, r *step.Receive) error {
	_, failed, err := step.SendFile(conn, id, file, r, func(line string) { fmt.Fprintf(o.p.Err, "sbcast: error: %s\n", line) })
	var no *step.Impossible
	switch {
	case errors.As(err, &no):
		return slurmerr.New(slurmerr.Refused, no.Line[0])
	case err != nil:
		return slurmerr.Wrap(slurmerr.Unreachable, err, "Connection to the job lost: "+err.Error())
	case failed:
		return &slurmerr.Error{Code: 1}
	}
	return nil
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
		fmt.Fprintf(o.p.Err, "sbcast: error: Compression type '%s' unknown, disabling compression support.\n", kind)
		return false
	}
}

func cause(err error) string {
	if i := strings.LastIndex(err.Error(), ": "); i >= 0 {
		err = fmt.Errorf("%s", err.Error()[i+2:])
	}
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}
