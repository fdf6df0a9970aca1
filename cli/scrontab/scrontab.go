// Package scrontab shows and changes the scheduled jobs of a user. Each line of a crontab
// is a job, which is requeued for its next time when it has ended.
package scrontab

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is the interface of the cluster that scrontab needs.
type Cluster interface {
	Submit(ctx context.Context, s *jobs.Submission) (*jobs.Submitted, error)
	CronJobs(ctx context.Context) ([]jobs.CronJob, error)
	Operate(ctx context.Context, op status.Operation) (*status.OperationResult, error)
}

// Options are the dependencies and options of scrontab.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)
}

// New returns the command. It calls connect once, after it has parsed the command line.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, files, err := option.Scrontab.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil {
		return err
	}
	if len(files) > 1 {
		return slurmerr.New(slurmerr.Refused, "only one file can be given")
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	now, err := c.CronJobs(ctx)
	if err != nil {
		return err
	}
	switch {
	case v.Has("list"):
		if len(now) == 0 {
			return slurmerr.New(slurmerr.Refused, "no crontab for this user")
		}
		return o.p.Print(textOf(now))
	case v.Has("remove"):
		return o.cancel(ctx, c, now)
	case len(files) == 1 && !v.Has("edit"):
		text, err := o.read(files[0])
		if err != nil {
			return err
		}
		return o.install(ctx, c, text, now)
	}
	text, err := o.edit(ctx, textOf(now))
	if err != nil || text == textOf(now) {
		return err
	}
	return o.install(ctx, c, text, now)
}

// textOf returns the crontab from which the jobs were created.
func textOf(list []jobs.CronJob) string {
	slices.SortFunc(list, func(a, b jobs.CronJob) int { return int(a.ID - b.ID) })
	var b strings.Builder
	for _, s := range list {
		b.WriteString(s.Text)
	}
	return b.String()
}

func (o *Options) read(name string) (string, error) {
	if name == "-" {
		data, err := io.ReadAll(o.p.In)
		return string(data), err
	}
	data, err := o.p.ReadFile(name)
	if err != nil {
		return "", slurmerr.Wrap(slurmerr.Refused, err, "cannot read "+name+": "+err.Error())
	}
	return string(data), nil
}

// edit lets the user edit the text in an editor.
func (o *Options) edit(ctx context.Context, text string) (string, error) {
	f, err := os.CreateTemp("", "scrontab-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // only a temporary file remains
	if _, err := f.WriteString(text); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	editor := o.p.Env("VISUAL")
	if editor == "" {
		editor = o.p.Env("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", f.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, o.p.Out, o.p.Err
	if err := cmd.Run(); err != nil {
		return "", slurmerr.Wrap(slurmerr.Refused, err, "the editor failed: "+err.Error())
	}
	data, err := o.p.ReadFile(f.Name())
	return string(data), err
}

// install submits the jobs of a crontab and then cancels those of the previous one. If a
// line is invalid, or the cluster refuses it, nothing changes.
func (o *Options) install(ctx context.Context, c Cluster, text string, before []jobs.CronJob) error {
	entries, err := parse(text)
	if err != nil {
		return err
	}
	list := make([]*jobs.Submission, 0, len(entries))
	for i := range entries {
		s, err := o.submission(&entries[i])
		if err != nil {
			return fmt.Errorf("line %d: %w", entries[i].line, err)
		}
		s.DryRun = true
		if _, err := c.Submit(ctx, s); err != nil {
			return slurmerr.Wrap(slurmerr.Refused, err, fmt.Sprintf("line %d: %v", entries[i].line, err))
		}
		s.DryRun = false
		list = append(list, s)
	}
	var made []jobs.CronJob
	for i, s := range list {
		done, err := c.Submit(ctx, s)
		if err != nil {
			back := o.cancel(ctx, c, made)
			return slurmerr.Wrap(slurmerr.Refused, err, fmt.Sprintf("line %d: %v", entries[i].line, joined(err, back)))
		}
		made = append(made, jobs.CronJob{ID: done.ID})
	}
	return o.cancel(ctx, c, before)
}

func joined(err, more error) error {
	if more == nil {
		return err
	}
	return fmt.Errorf("%w; and the jobs submitted first could not be cancelled: %w", err, more)
}

func (o *Options) cancel(ctx context.Context, c Cluster, list []jobs.CronJob) error {
	if len(list) == 0 {
		return nil
	}
	op := status.Operation{Verb: status.OpCancel}
	for _, s := range list {
		op.Jobs = append(op.Jobs, fmt.Sprint(s.ID))
	}
	result, err := c.Operate(ctx, op)
	if err != nil {
		return err
	}
	for _, r := range result.Items {
		if r.Error != "" && !r.Ended() {
			return slurmerr.Newf(slurmerr.Refused, "job %s: %s", r.Job, r.Error)
		}
	}
	return nil
}

// submission returns the job of a line.
func (o *Options) submission(e *entry) (*jobs.Submission, error) {
	in := translate.Input{
		Args:     append(slices.Clone(e.options), "--wrap="+e.command),
		Env:      o.p.Environ(),
		Now:      o.p.Now(),
		Umask:    o.p.Umask(),
		Limits:   o.p.Limits(),
		ReadFile: o.p.ReadFile,
	}
	in.Dir = o.p.Env("HOME")
	if in.Dir == "" {
		in.Dir = "/"
	}
	if in.Hostname, _ = o.p.Hostname(); in.Hostname == "" {
		in.Hostname = "unknown"
	}
	s, err := translate.Sbatch(in)
	if err != nil {
		return nil, err
	}
	if s.Job.Options == nil {
		s.Job.Options = map[string]string{}
	}
	if s.Job.Name == "wrap" || s.Job.Name == "" {
		s.Job.Name = strings.Fields(e.command)[0]
	}
	s.Job.Options[wire.OptionCron], s.Job.Options[wire.OptionCronText] = e.schedule, e.text
	s.Job.Time.Begin = e.cron.Next(in.Now).Unix()
	return &jobs.Submission{Command: "scrontab", Job: s.Job, Script: s.Script, Environment: s.Environment}, nil
}
