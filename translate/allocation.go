package translate

import (
	"path"
	"slices"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
)

// Allocation turns what srun or salloc was told into a job without a script,
// with a component for each of parts, which come from option.Parse and
// Following. Errors are *slurmerr.Error with Slurm's text; in's script is not
// looked at.
func Allocation(parts []*option.Parsed, in *Input) (*Submission, error) {
	var whole *Submission
	for i, p := range parts {
		s, err := allocation(p, in)
		if err != nil {
			return nil, err
		}
		if len(parts) > 1 {
			s.Job.Het = &job.Het{Offset: int32(i), Size: int32(len(parts))}
		}
		if i == 0 {
			whole = s
			continue
		}
		whole.Components = append(whole.Components, s.Job)
		whole.Warnings = append(whole.Warnings, s.Warnings...)
		whole.Options += s.Options
	}
	return whole, tooMany(len(parts))
}

// tooMany refuses more components than a heterogeneous job may have.
func tooMany(components int) error {
	if components > maxComponents {
		return slurmerr.Newf(slurmerr.Refused, "a heterogeneous job has %d components at most", maxComponents)
	}
	return nil
}

func allocation(p *option.Parsed, in *Input) (*Submission, error) {
	if err := p.ResolveTimes(in.Now); err != nil {
		return nil, err
	}
	if err := complete(in, p); err != nil {
		return nil, err
	}
	j := p.Job
	arbitrary(p, &j)
	b := &j.Batch
	b.SubmitHost, b.SubmitSID, b.SubmitLine = in.Hostname, in.Session, p.Command.String()
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
	if umask := env.Umask(in.Env, in.Umask); umask >= 0 {
		b.Umask = int32(umask) + 1
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
	command := ""
	if p.Command == option.Srun && len(p.Args) > 0 { // --test-only needs none
		command = p.Args[0]
	}
	j.Batch.Command = command
	switch {
	case p.Has("job-name"):
	case command != "":
		j.Name = path.Base(command)
	case p.Client.NoShell:
		j.Name = "no-shell"
	default:
		j.Name = "interactive"
	}
}

// arbitrary gives the job of an srun that names a node for each of its tasks
// those nodes once.
func arbitrary(p *option.Parsed, j *job.Job) {
	if p.Command != option.Srun || j.Placement.Distribution != "arbitrary" || len(j.Placement.NodeList) == 0 {
		return
	}
	list := slices.Compact(slices.Sorted(slices.Values(j.Placement.NodeList)))
	if j.Shape.Tasks == 0 {
		j.Shape.Tasks = int32(len(j.Placement.NodeList))
	}
	j.Placement.NodeList = list
	j.Shape.MinNodes, j.Shape.MaxNodes = int32(len(list)), int32(len(list))
}
