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
	if err := resolveGroup(in, p); err != nil {
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

// resolveGroup resolves --gid on the submitting host. The cluster resolves --uid.
func resolveGroup(in *Input, p *option.Parsed) error {
	if !p.Has("gid") {
		return nil
	}
	if in.Group != nil {
		if name, gid, ok := in.Group(p.Client.AsGroup); ok {
			p.Client.GID, p.Job.Batch.Group = &gid, &job.Group{Name: name, GID: gid}
			return nil
		}
	}
	return slurmerr.New(slurmerr.BadValue, "Invalid --gid specification")
}
