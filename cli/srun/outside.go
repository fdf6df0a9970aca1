package srun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/jobs/alloc"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate"
	"github.com/berth-hpc/berth/translate/option"
)

// outside is srun where there is no job: it gets one, runs the step there, and
// gives it back.
func (o *Options) outside(ctx context.Context, p *option.Parsed, args []string, signals <-chan os.Signal) error {
	s, err := o.submission(p, args)
	if err != nil {
		return err
	}
	o.warn(p)
	fmt.Fprint(o.p.Err, s.Options)
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	client := &alloc.Client{
		Name: "srun", P: o.p, Cluster: cluster, Quiet: p.Client.Quiet > 0, Refusal: "Unable to allocate resources",
	}
	client.Interrupted = func(id int64) { client.Info("Force Terminated JobId=%d", id) }
	a, err := client.Get(ctx, &jobs.Submission{Job: s.Job}, p.Client.Immediate, signals)
	if errors.Is(err, alloc.ErrInterrupted) {
		return &slurmerr.Error{Code: 1}
	}
	if err != nil {
		return err
	}
	p.Step.JobID = a.ID
	p.Client.Immediate, p.Job.Time.Limit = nil, 0 // they were the job's
	p.Job.Shape.MemPerNode, p.Job.Shape.MemPerCPU = nil, nil
	err = o.runStep(ctx, p, o.attach(cluster, a.ID), signals)
	a.Complete(slurmerr.ExitCode(err))
	return err
}

// submission is the job that srun's options ask for.
func (o *Options) submission(p *option.Parsed, args []string) (*translate.Submission, error) {
	in := &translate.Input{Args: args, Env: o.p.Environ(), Now: o.p.Now(), Umask: o.p.Umask(), ReadFile: o.p.ReadFile,
		UID: o.p.UID, Group: o.p.Group}
	var err error
	if in.Dir, err = o.p.Dir(); err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "getcwd failed: "+err.Error())
	}
	if in.Hostname, err = o.p.Hostname(); err != nil {
		in.Hostname = "unknown"
	}
	return translate.Allocation(p, in)
}

// elsewhere runs a step in a job that srun is not in: one of salloc, or one
// that --jobid names.
func (o *Options) elsewhere(ctx context.Context, p *option.Parsed, signals <-chan os.Signal) error {
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	return o.runStep(ctx, p, o.attach(cluster, p.Step.JobID), signals)
}

// attach connects to the job through the queue API.
func (o *Options) attach(cluster Cluster, id int64) dial {
	o.afar = true
	return func(ctx context.Context) (*step.Conn, error) {
		c, err := cluster.Attach(ctx, id)
		if err != nil {
			return nil, unattached(id, err)
		}
		conn, err := step.NewClient(c)
		if err != nil {
			return nil, slurmerr.Wrap(slurmerr.Unreachable, err, "")
		}
		return conn, nil
	}
}

// unattached says why there is no way to the job, in Slurm's words.
func unattached(id int64, err error) error {
	const hint = "Check SLURM_JOB_ID environment variable. Expired or invalid job %d"
	switch kube.KindOf(err) {
	case kube.NotFound:
		return slurmerr.Newf(slurmerr.Refused, "Unable to confirm allocation for job %d: %s", id, jobs.ErrInvalidID).Hint(hint, id)
	case kube.Conflict:
		if err.Error() == jobs.ErrDone {
			return slurmerr.Newf(slurmerr.Refused, "Slurm job %d has expired", id).Hint(hint, id)
		}
	case kube.Unreachable, kube.Unavailable, kube.NoCluster, kube.BadConfig:
		return slurmerr.Wrap(slurmerr.Unreachable, err, "Unable to confirm allocation for job "+strconv.FormatInt(id, 10)+": "+err.Error())
	}
	return slurmerr.Wrap(slurmerr.Refused, err, "Unable to confirm allocation for job "+strconv.FormatInt(id, 10)+": "+strings.TrimSpace(err.Error()))
}
