package translate

import (
	"path"
	"slices"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
)

// Allocation returns the submission of srun or salloc: a job without a script that
// has a component for each of parts, which come from option.Parse and
// ParseNextComponent. It ignores in.Script. Errors are *slurmerr.Error with Slurm's
// text.
func Allocation(parts []*option.Parsed, in *Input) (*Submission, error) {
	var submission *Submission
	for i, p := range parts {
		s, err := allocation(p, in)
		if err != nil {
			return nil, err
		}
		if len(parts) > 1 {
			s.Job.Het = &job.Het{Offset: int32(i), Size: int32(len(parts))}
		}
		if i == 0 {
			submission = s
			continue
		}
		submission.Components = append(submission.Components, s.Job)
		submission.Warnings = append(submission.Warnings, s.Warnings...)
		submission.Options += s.Options
	}
	if err := checkImmediate(parts); err != nil {
		return nil, err
	}
	return submission, checkComponents(len(parts))
}

// checkImmediate returns an error for a heterogeneous job of which a component has --immediate
// without a time: Slurm's controller starts none of these at once, and refuses it first of all.
func checkImmediate(parts []*option.Parsed) error {
	for _, p := range parts {
		n := p.Client.Immediate
		if len(parts) > 1 && !parts[0].Client.TestOnly && n != nil && *n == 1 {
			return parts[0].RefusedByController("Job can not start immediately")
		}
	}
	return nil
}

// checkComponents returns an error if there are more components than a heterogeneous
// job may have.
func checkComponents(components int) error {
	if components > maxComponents {
		return slurmerr.Newf(slurmerr.Refused, "a heterogeneous job can have at most %d components", maxComponents)
	}
	return nil
}

// allocation returns the submission of one component.
func allocation(p *option.Parsed, in *Input) (*Submission, error) {
	if err := p.ResolveTimes(in.Now); err != nil {
		return nil, err
	}
	if err := complete(in, p); err != nil {
		return nil, p.Corrected(err, true)
	}
	j := p.Job
	wholeMemory(&j.Shape)
	dropPastBegin(&j, in)
	expandArbitrary(p, &j)
	b := &j.Batch
	b.SubmitHost, b.SubmitAddress, b.SubmitSID = in.Hostname, in.address(), in.Session
	b.SubmitLine = p.Command.String()
	for _, a := range in.Args {
		b.SubmitLine += " " + a
	}
	b.Client = p.Command.String()
	// The files belong to the command, not the job.
	b.Output, b.Error, b.Input, b.Args = "", "", "", nil
	b.WorkDir = absolute(in.Dir, b.WorkDir)
	setUmask(b, in)
	setAllocationName(p, &j)
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

// setAllocationName sets the name of the job as Slurm does.
func setAllocationName(p *option.Parsed, j *job.Job) {
	command := ""
	if p.Command == option.Srun && len(p.Args) > 0 { // with --test-only the program is optional
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

// expandArbitrary prepares the job of an srun that names a node for each of its
// tasks: the job requests each of those nodes once.
func expandArbitrary(p *option.Parsed, j *job.Job) {
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
