package srun

import (
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/option"
)

// bindings reads --cpu-bind, what takes its place where it names no kind, and
// --mem-bind.
func bindings(p *option.Parsed) (cpus step.Bind, memory step.MemBind, err error) {
	if cpus, err = step.ParseBind(p.Step.CPUBind); err != nil {
		return cpus, memory, slurmerr.New(slurmerr.BadValue, "Invalid --cpu-bind argument: "+p.Step.CPUBind)
	}
	if p.Step.MemBind != "" {
		if memory, err = step.ParseMemBind(p.Step.MemBind); err != nil {
			return cpus, memory, slurmerr.New(slurmerr.BadValue, "Invalid --mem-bind argument: "+p.Step.MemBind)
		}
	}
	if cpus.Kind != step.BindAuto {
		return cpus, memory, nil
	}
	for hint := range strings.SplitSeq(p.Job.Placement.Hint, ",") {
		switch hint {
		case "compute_bound", "memory_bound":
			cpus.Kind = step.BindCores
		case "multithread":
			cpus.Kind, cpus.OneThread = step.BindThreads, false
		case "nomultithread":
			cpus.Kind, cpus.OneThread = step.BindThreads, true
		}
	}
	if n := p.Job.Shape.ThreadsPerCore; n > 0 && cpus.Kind == step.BindAuto {
		cpus.Kind, cpus.OneThread = step.BindThreads, n == 1
	}
	return cpus, memory, nil
}
