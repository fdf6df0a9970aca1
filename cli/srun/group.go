package srun

import (
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// groupOfStep refuses --gid where srun starts a step of a job that is there
// already: it runs as the job does.
func (o *Options) groupOfStep(p *option.Parsed) error {
	switch {
	case !p.Has("gid") || p.Step.JobID == 0:
		return nil
	case o.p.UID != 0:
		return slurmerr.New(slurmerr.BadValue, "--gid only permitted by root user")
	}
	if _, _, ok := o.p.Group(p.Client.AsGroup); !ok {
		return slurmerr.New(slurmerr.BadValue, "Invalid --gid specification")
	}
	return slurmerr.New(slurmerr.Refused, "--gid is not possible here: a step's group is its job's")
}
