package srun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/jobs/alloc"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate"
	"github.com/berth-hpc/berth/translate/option"
)

// allocateAndRun runs srun outside of a job: it allocates a job, runs the step in
// it, and releases it.
func (o *Options) allocateAndRun(
	ctx context.Context,
	parts []*option.Parsed,
	args []string,
	signals <-chan os.Signal,
) error {
	s, err := o.submission(parts, args)
	if refused, ok := errors.AsType[*slurmerr.Error](err); ok && !refused.ByController {
		return err
	}
	for _, p := range parts {
		if p.Has("relative") {
			return slurmerr.New(slurmerr.Fatal, "--relative option invalid for job allocation request")
		}
	}
	if err != nil {
		return err
	}
	p := parts[0]
	for _, p := range parts {
		o.warn(p)
	}
	fmt.Fprint(o.p.Err, s.Options)
	cluster, err := o.cluster()
	if err != nil {
		return err
	}
	client := &alloc.Client{
		Name: "srun", P: o.p, Cluster: cluster, Quiet: p.Client.Quiet > 0, Refusal: "Unable to allocate resources",
	}
	client.Interrupted = func(id int64) {
		if id != 0 {
			client.Info("Force Terminated JobId=%d", id)
		}
	}
	a, err := client.Get(ctx,
		&jobs.Submission{Job: s.Job, Components: s.Components, Command: "srun"}, p.Client.StartWithin(), signals)
	if errors.Is(err, alloc.ErrInterrupted) {
		return &slurmerr.Error{Code: 1}
	}
	if err != nil {
		return err
	}
	if p.Client.Verbose > 0 {
		o.reportAllocation(a.Welcome)
	}
	targets := make([]stepTarget, len(parts))
	for i, p := range parts {
		id := a.ID
		if i < len(a.Welcome.Het) {
			id = a.Welcome.Het[i].JobID
		}
		p.Step.JobID = id
		p.Client.Immediate, p.Job.Time.Limit = nil, 0 // they applied to the job
		p.Job.Shape.MemPerNode, p.Job.Shape.MemPerCPU = nil, nil
		targets[i] = stepTarget{parsed: p, dial: o.attach(cluster, id), remote: true}
	}
	err = o.runSteps(ctx, targets, signals)
	a.Complete(slurmerr.ExitCode(err))
	return err
}

// submission returns the job that the options request.
func (o *Options) submission(parts []*option.Parsed, args []string) (*translate.Submission, error) {
	in := &translate.Input{
		Args: args, Env: o.p.Environ(), Now: o.p.Now(), Umask: o.p.Umask(), Session: o.p.Session(),
		ReadFile: o.p.ReadFile, UID: o.p.UID, Group: o.p.Group,
	}
	var err error
	if in.Dir, err = o.p.Dir(); err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "getcwd failed: "+err.Error())
	}
	if in.Hostname, err = o.p.Hostname(); err != nil {
		in.Hostname = "unknown"
	}
	return translate.Allocation(parts, in)
}

// attach connects to the job through the queue API, and reconnects when the
// connection breaks.
func (o *Options) attach(cluster Cluster, id int64) dial {
	return func(ctx context.Context) (*step.Conn, error) {
		var refused error
		client := rand.Text()
		conn, answer, err := step.DialResumable(
			ctx,
			client,
			func(ctx context.Context) (io.ReadWriteCloser, bool, error) {
				c, err := cluster.AttachAs(ctx, id, client)
				if err == nil {
					return c, false, nil
				}
				refused = attachError(id, err)
				return nil, isTemporary(err), refused
			},
			o.reportConnection,
		)
		var byAgent *step.RefusedError
		switch {
		case refused != nil && conn == nil:
			return nil, refused
		case errors.As(err, &byAgent):
			return nil, slurmerr.New(slurmerr.Refused, byAgent.Lines[0])
		case err != nil:
			return nil, slurmerr.Wrap(slurmerr.Unreachable, err, "")
		}
		*o.site = siteScripts{answer.SrunProlog, answer.SrunEpilog}
		return conn, nil
	}
}

// isTemporary reports whether another attempt may succeed.
func isTemporary(err error) bool {
	switch kube.KindOf(err) {
	case kube.Unreachable, kube.Unavailable, kube.Other:
		return true
	}
	return kube.IsRetryable(err)
}

// reportConnection reports that the connection to the job broke, or was restored.
func (o *Options) reportConnection(lost error) {
	if lost != nil {
		o.printf("error: Connection to the job lost (%v), trying again", lost)
		return
	}
	o.printf("Connected to the job again")
}

// attachError returns the error of a failed attach, in Slurm's words.
func attachError(id int64, err error) error {
	const hint = "Check SLURM_JOB_ID environment variable. Expired or invalid job %d"
	switch kube.KindOf(err) {
	case kube.NotFound:
		return slurmerr.Newf(slurmerr.Refused,
			"Unable to confirm allocation for job %d: %s", id, jobs.ErrInvalidID).Hint(hint, id)
	case kube.Conflict:
		if kube.ReasonOf(err) == wire.ReasonJobDone {
			return slurmerr.Newf(slurmerr.Refused, "Slurm job %d has expired", id).Hint(hint, id)
		}
	case kube.Unreachable, kube.Unavailable, kube.NoCluster, kube.BadConfig:
		return slurmerr.Wrap(slurmerr.Unreachable, err,
			fmt.Sprintf("Unable to confirm allocation for job %d: %v", id, err))
	}
	return slurmerr.Wrap(slurmerr.Refused, err,
		fmt.Sprintf("Unable to confirm allocation for job %d: %s", id, strings.TrimSpace(err.Error())))
}
