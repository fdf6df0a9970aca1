package option

import (
	"slices"

	"github.com/berth-hpc/berth/internal/slurmerr"
)

// The functions below check options that exclude each other only if they come from the same
// source.

// checkSpecialization returns an error for specialized cores with specialized threads. If one of
// them comes from the environment, the one of the higher source remains.
func checkSpecialization(p *Parsed) error {
	if !p.Has("core-spec") || !p.Has("thread-spec") {
		return nil
	}
	core, thread := p.Given["core-spec"].From, p.Given["thread-spec"].From
	switch {
	case core == FromEnv && thread == FromEnv:
		return p.fatal("Both --core-spec and --thread-spec set using environment variables. " +
			"Those options are mutually exclusive.")
	case core != FromEnv && thread != FromEnv:
		return p.fatal("-S/--core-spec and --thred-spec options are mutually exclusive")
	}
	dropped := "thread-spec"
	if core < thread {
		dropped, p.Job.Shape.CoreSpec = "core-spec", 0
	}
	warning := Lookup(p.Command, dropped).Warning
	p.Warnings = slices.DeleteFunc(p.Warnings, func(w string) bool { return w == warning })
	delete(p.Given, dropped)
	delete(p.Job.Options, dropped)
	return nil
}

// resolveMemory removes memory options from the environment if one was given elsewhere,
// and returns an error if more than one remains.
func resolveMemory(p *Parsed) error {
	s := &p.Job.Shape
	fields := []struct {
		name string
		to   **int64
	}{{"mem", &s.MemPerNode}, {"mem-per-cpu", &s.MemPerCPU}, {"mem-per-gpu", &s.MemPerGPU}}
	explicit := 0
	for _, f := range fields {
		if *f.to != nil && p.Given[f.name].From != FromEnv {
			explicit++
		}
	}
	remaining := 0
	for _, f := range fields {
		if explicit > 0 && p.Given[f.name].From == FromEnv {
			*f.to = nil
			delete(p.Given, f.name)
		}
		if *f.to != nil {
			remaining++
		}
	}
	if remaining < 2 {
		return nil
	}
	names := "--mem, --mem-per-cpu, and --mem-per-gpu"
	if explicit == 0 {
		names = "SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE"
	}
	return slurmerr.New(slurmerr.Fatal, names+" are mutually exclusive.")
}
