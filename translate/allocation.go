package translate

import (
	"path"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
)

// Allocation turns what srun or salloc was told into a job without a script. p
// comes from option.Parse. Errors are *slurmerr.Error with Slurm's text; in's
// script is not looked at.
func Allocation(p *option.Parsed, in *Input) (*Submission, error) {
	if err := p.ResolveTimes(in.Now); err != nil {
		return nil, err
	}
	if err := complete(in, p); err != nil {
		return nil, err
	}
	j := p.Job
	b := &j.Batch
	b.SubmitHost, b.SubmitLine = in.Hostname, p.Command.String()
	for _, a := range in.Args {
		b.SubmitLine += " " + a
	}
	b.Client = p.Command.String()
	// The files are the command's own; the job has none.
	b.Output, b.Error, b.Input, b.Args = "", "", "", nil
	switch {
	case b.WorkDir == "":
		b.WorkDir = in.Dir
	case !path.IsAbs(b.WorkDir):
		b.WorkDir = path.Join(in.Dir, b.WorkDir)
	}
	if in.Umask >= 0 {
		b.Umask = int32(in.Umask) + 1
	}
	named(p, &j)
	if p.Client.NoShell {
		b.Client = "no-shell"
	}
	b.Rlimits = option.Propagated(p, in.Limits)
	s := &Submission{Job: j, Client: p.Client, Warnings: p.Warnings}
	if p.Client.Verbose > 0 {
		s.Options = p.Verbose(in.Dir)
	}
	return s, nil
}

// named gives the job the name that Slurm gives it.
func named(p *option.Parsed, j *job.Job) {
	if p.Command == option.Srun {
		j.Batch.Command = p.Args[0]
	}
	switch {
	case p.Has("job-name"):
	case p.Command == option.Srun:
		j.Name = path.Base(p.Args[0])
	case p.Client.NoShell:
		j.Name = "no-shell"
	default:
		j.Name = "interactive"
	}
}
