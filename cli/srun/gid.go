package srun

import (
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// checkGID returns an error if --gid is given for a step of an existing job, which runs
// with the job's group.
func (o *Options) checkGID(p *option.Parsed) error {
	if !p.Has("gid") || p.Step.JobID == 0 {
		return nil
	}
	if _, _, ok := o.p.Group(p.Client.AsGroup); !ok {
		return slurmerr.New(slurmerr.BadValue, "Invalid --gid specification")
	}
	return slurmerr.New(slurmerr.Refused, "--gid is not possible here: a step runs with the group of its job")
}
