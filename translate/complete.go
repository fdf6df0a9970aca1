package translate

import (
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
)

// complete reads files with node names and checks options against each other, as
// sbatch does before it contacts the controller.
func complete(in *Input, p *option.Parsed) error {
	if err := runAs(in, p); err != nil {
		return err
	}
	if err := p.ReadNodes(in.ReadFile); err != nil {
		return err
	}
	hostFile, _ := env.Get(in.Env, "SLURM_HOSTFILE")
	if err := p.ReadHostFile(in.ReadFile, hostFile); err != nil {
		return err
	}
	return p.Verify()
}

// wholeMemory replaces --mem-per-cpu=0 by --mem=0: all the memory of the nodes.
func wholeMemory(s *job.Shape) {
	if s.MemPerCPU != nil && *s.MemPerCPU == 0 {
		s.MemPerNode, s.MemPerCPU = s.MemPerCPU, nil
	}
}

// runAs checks --uid and --gid, which only root may use (sbatch does so while it parses
// them). The cluster resolves the user, and the submitting host the group.
func runAs(in *Input, p *option.Parsed) error {
	c := &p.Client
	for _, o := range []struct{ name, value string }{{"uid", c.AsUser}, {"gid", c.AsGroup}} {
		if o.value != "" && in.UID != 0 {
			return slurmerr.Newf(slurmerr.BadValue, "--%s only permitted by root user", o.name)
		}
	}
	if !p.Has("gid") {
		return nil
	}
	if in.Group != nil {
		if name, gid, ok := in.Group(c.AsGroup); ok {
			c.GID, p.Job.Batch.Group = &gid, &job.Group{Name: name, GID: gid}
			return nil
		}
	}
	return slurmerr.New(slurmerr.BadValue, "Invalid --gid specification")
}
