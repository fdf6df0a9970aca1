package srun

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
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
func (o *Options) outside(ctx context.Context, parts []*option.Parsed, args []string, signals <-chan os.Signal) error {
	for _, p := range parts {
		if p.Has("relative") {
			return slurmerr.New(slurmerr.Fatal, "--relative option invalid for job allocation request")
		}
	}
	s, err := o.submission(parts, args)
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
	a, err := client.Get(ctx, &jobs.Submission{Job: s.Job, Components: s.Components}, p.Client.Immediate, signals)
	if errors.Is(err, alloc.ErrInterrupted) {
		return &slurmerr.Error{Code: 1}
	}
	if err != nil {
		return err
	}
	places := make([]where, len(parts))
	for i, p := range parts {
		id := a.ID
		if i < len(a.Welcome.Het) {
			id = a.Welcome.Het[i].JobID
		}
		p.Step.JobID = id
		p.Client.Immediate, p.Job.Time.Limit = nil, 0 // they were the job's
		p.Job.Shape.MemPerNode, p.Job.Shape.MemPerCPU = nil, nil
		places[i] = where{parsed: p, dial: o.attach(cluster, id), afar: true}
	}
	err = o.runSteps(ctx, places, signals)
	a.Complete(slurmerr.ExitCode(err))
	return err
}

// submission is the job that srun's options ask for.
func (o *Options) submission(parts []*option.Parsed, args []string) (*translate.Submission, error) {
	in := &translate.Input{Args: args, Env: o.p.Environ(), Now: o.p.Now(), Umask: o.p.Umask(), Session: o.p.Session(), ReadFile: o.p.ReadFile,
		UID: o.p.UID, Group: o.p.Group}
	var err error
	if in.Dir, err = o.p.Dir(); err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "getcwd failed: "+err.Error())
	}
	if in.Hostname, err = o.p.Hostname(); err != nil {
		in.Hostname = "unknown"
	}
	return translate.Allocation(parts, in)
}

// attach connects to the job through the queue API, and again when the
// connection breaks.
func (o *Options) attach(cluster Cluster, id int64) dial {
	return func(ctx context.Context) (*step.Conn, error) {
		var refused error
		client := rand.Text()
		conn, hello, err := step.DialResumable(ctx, client, func(ctx context.Context) (io.ReadWriteCloser, bool, error) {
			c, err := cluster.AttachAs(ctx, id, client)
			if err == nil {
				return c, false, nil
			}
			refused = unattached(id, err)
			return nil, passing(err), refused
		}, o.connection)
		var no *step.RefusedError
		switch {
		case refused != nil && conn == nil:
			return nil, refused
		case errors.As(err, &no):
			return nil, slurmerr.New(slurmerr.Refused, no.Lines[0])
		case err != nil:
			return nil, slurmerr.Wrap(slurmerr.Unreachable, err, "")
		}
		*o.site = siteScripts{hello.SrunProlog, hello.SrunEpilog}
		return conn, nil
	}
}

// passing tells of errors that another try may not meet.
func passing(err error) bool {
	switch kube.KindOf(err) {
	case kube.Unreachable, kube.Unavailable, kube.Other:
		return true
	}
	return kube.Lost(err)
}

// connection tells the user how the connection to the job is.
func (o *Options) connection(lost error) {
	if lost != nil {
		o.say("error: Connection to the job lost (%v), trying again", lost)
		return
	}
	o.say("Connected to the job again")
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
