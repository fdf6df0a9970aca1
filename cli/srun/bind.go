package srun

import (
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step/affinity"
	"github.com/berth-hpc/berth/translate/option"
)

// bindings parses --cpu-bind and --mem-bind. If --cpu-bind names no kind, --hint or
// --threads-per-core decides.
func bindings(p *option.Parsed) (cpus affinity.CPUBind, memory affinity.MemBind, err error) {
	if cpus, err = affinity.ParseCPUBind(p.Step.CPUBind); err != nil {
		return cpus, memory, slurmerr.New(slurmerr.BadValue, "Invalid --cpu-bind argument: "+p.Step.CPUBind)
	}
	if p.Step.MemBind != "" {
		if memory, err = affinity.ParseMemBind(p.Step.MemBind); err != nil {
			return cpus, memory, slurmerr.New(slurmerr.BadValue, "Invalid --mem-bind argument: "+p.Step.MemBind)
		}
	}
	if cpus.Kind != affinity.Auto {
		return cpus, memory, nil
	}
	for hint := range strings.SplitSeq(p.Job.Placement.Hint, ",") {
		switch hint {
		case "compute_bound", "memory_bound":
			cpus.Kind = affinity.Cores
		case "multithread":
			cpus.Kind, cpus.OneThread = affinity.Threads, false
		case "nomultithread":
			cpus.Kind, cpus.OneThread = affinity.Threads, true
		}
	}
	if n := p.Job.Shape.ThreadsPerCore; n > 0 && cpus.Kind == affinity.Auto {
		cpus.Kind, cpus.OneThread = affinity.Threads, n == 1
	}
	return cpus, memory, nil
}
