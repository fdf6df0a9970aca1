package srun

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/option"
)

// component is the environment of srun for a step in the component that
// --het-group names; nil: it is that of the first, or no component is named.
// The options that are read from the environment are then the component's, as
// is the job.
func (o *Options) component(p *option.Parsed) ([]string, error) {
	if p.Step.HetGroup == "" {
		return nil, nil
	}
	groups, err := step.ParseCPUs(p.Step.HetGroup)
	if err != nil || len(groups) == 0 {
		return nil, slurmerr.Newf(slurmerr.BadValue, "Invalid --het-group argument: %s", p.Step.HetGroup)
	}
	size, err := strconv.Atoi(o.p.Env("SLURM_HET_SIZE"))
	if err != nil {
		size = 1
	}
	last := groups[len(groups)-1]
	switch {
	case last >= size:
		return nil, slurmerr.Newf(slurmerr.Refused,
			"Attempt to run a job step with het group value of %d, but the job allocation has maximum value of %d", last, size-1)
	case len(groups) > 1:
		return nil, slurmerr.New(slurmerr.Refused, "a step over several components (--het-group="+p.Step.HetGroup+") is not possible").
			Hint("start a step in each: srun --het-group=0 ... & srun --het-group=1 ... & wait")
	case last == 0:
		return nil, nil
	}
	suffix := "_HET_GROUP_" + strconv.Itoa(last)
	kept := env.Without(o.p.Environ(), func(name string) bool {
		return shapeOfFirst[name] || strings.HasPrefix(name, "SLURM_MEM_PER_")
	})
	for _, e := range o.p.Environ() {
		name, value, _ := strings.Cut(e, "=")
		if own, ok := strings.CutSuffix(name, suffix); ok {
			kept = env.Merge(kept, own+"="+value)
		}
	}
	return kept, nil
}

// shapeOfFirst are the variables that ask srun for the size of the first
// component, where the other may have none of the same name.
var shapeOfFirst = map[string]bool{
	"SLURM_NTASKS": true, "SLURM_NPROCS": true, "SLURM_NNODES": true, "SLURM_JOB_NUM_NODES": true, "SLURM_NTASKS_PER_NODE": true,
	"SLURM_CPUS_PER_TASK": true, "SLURM_GPUS": true, "SLURM_GPUS_PER_NODE": true, "SLURM_GPUS_PER_TASK": true, "SLURM_JOB_ID": true,
	"SLURM_DISTRIBUTION": true, "SLURM_NTASKS_PER_CORE": true, "SLURM_NTASKS_PER_SOCKET": true, "SLURM_STEP_GRES": true, "SLURM_GRES": true,
}
