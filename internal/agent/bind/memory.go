package bind

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth/internal/step/affinity"
)

// Memory returns the NUMA nodes to which the memory of a local task is bound, or nil for
// any. cpus are the CPUs on which it may run. The error is Slurm's line for a task that
// cannot be bound.
func (t *Topology) Memory(b *affinity.MemBind, local int, cpus []int) ([]int, error) {
	switch b.Kind {
	case affinity.Auto:
		if b.Prefer {
			return nil, fmt.Errorf("--mem-bind value is empty for local task %d", local)
		}
		return nil, nil
	case affinity.None:
		return nil, nil
	case affinity.Local:
		var near []int
		for _, id := range cpus {
			near = append(near, t.cpu(id).domain)
		}
		slices.Sort(near)
		return slices.Compact(near), nil
	case affinity.Rank:
		return t.existing([]int{local}, local, b.Kind)
	}
	of := b.Kind
	if b.Kind == affinity.MaskMem {
		of += "; " + affinity.FormatMask(b.Listed(local))
	}
	return t.existing(b.Listed(local), local, of)
}

// existing returns an error if one of the NUMA nodes does not exist.
func (t *Topology) existing(nodes []int, local int, of string) ([]int, error) {
	for _, n := range nodes {
		if !slices.Contains(t.domains, n) {
			return nil, fmt.Errorf(
				"NUMA node %d does not exist; cannot bind local task %d to it (--mem-bind=%s)", n, local, of)
		}
	}
	return nodes, nil
}

// Domains returns all NUMA nodes.
func (t *Topology) Domains() []int { return t.domains }
