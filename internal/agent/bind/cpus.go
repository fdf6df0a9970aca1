package bind

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/step/affinity"
)

// Tasks are the tasks of a step on one node.
type Tasks struct {
	CPUs  []int // of the step on the node, in ascending order
	Count int
	Per   int // CPUs for each task
	// Distribution is --distribution as given.
	Distribution string
}

// CPUs returns the CPUs of each task, or nil if tasks are not bound. It omits CPUs that
// --cpu-bind names but the step does not have.
func (t *Topology) CPUs(b *affinity.CPUBind, s *Tasks) [][]int {
	if b.Kind == affinity.None || len(s.CPUs) == 0 {
		return nil
	}
	switch b.Kind {
	case affinity.Auto, affinity.Threads, affinity.Cores, affinity.Sockets, affinity.Domains:
		return t.automatic(b, s)
	}
	out := make([][]int, s.Count)
	for i := range out {
		out[i] = t.explicit(b, s, i)
	}
	return out
}

// explicit returns the CPUs of a local task for a kind that determines them by rank or
// by a list.
func (t *Topology) explicit(b *affinity.CPUBind, s *Tasks, local int) []int {
	var cpus []int
	switch b.Kind {
	case affinity.Rank:
		cpus = []int{s.CPUs[local%len(s.CPUs)]}
	case affinity.RankDomain:
		cpus = t.inDomains(s.CPUs, local)
	case affinity.MapCPU, affinity.MaskCPU:
		cpus = b.Listed(local)
	case affinity.MapDomain, affinity.MaskDomain:
		cpus = t.inDomains(s.CPUs, b.Listed(local)...)
	}
	cpus = slices.DeleteFunc(cpus, func(id int) bool { return !slices.Contains(s.CPUs, id) })
	if len(cpus) == 0 {
		return s.CPUs
	}
	return cpus
}

// inDomains returns those of ids that are in the NUMA nodes with the given positions,
// modulo the number of NUMA nodes.
func (t *Topology) inDomains(ids []int, positions ...int) []int {
	var out []int
	for _, id := range ids {
		for _, p := range positions {
			if t.cpu(id).domain == t.domains[p%len(t.domains)] {
				out = append(out, id)
				break
			}
		}
	}
	return out
}

// automatic returns each task's share of the CPUs, expanded to the units of the kind. If
// the kind is Auto, it chooses the kind of which the step has as many units as CPUs are
// needed. If there is none, or if tasks share CPUs, every task has all CPUs.
func (t *Topology) automatic(b *affinity.CPUBind, s *Tasks) [][]int {
	cores := t.groups(s.CPUs, byCore)
	kind, need := b.Kind, s.Count*s.Per
	if kind == affinity.Auto {
		switch need {
		case len(t.groups(s.CPUs, bySocket)):
			kind = affinity.Sockets
		case len(cores):
			kind = affinity.Cores
		case len(s.CPUs):
			kind = affinity.Threads
		}
	}
	if kind == affinity.Auto || need > len(s.CPUs) {
		return slices.Repeat([][]int{s.CPUs}, s.Count)
	}
	ids := s.CPUs
	if b.OneThread && need <= len(cores) {
		ids = nil
		for _, c := range cores {
			ids = append(ids, c[0])
		}
	}
	out := t.share(ids, s)
	of := map[string]unit{affinity.Cores: byCore, affinity.Sockets: bySocket, affinity.Domains: byDomain}[kind]
	for i := range out {
		if of != nil {
			out[i] = t.expand(out[i], ids, of)
		}
		slices.Sort(out[i])
	}
	return out
}

// share divides the CPUs among the tasks, in whole cores if there are enough.
func (t *Topology) share(ids []int, s *Tasks) [][]int {
	cores := t.groups(ids, byCore)
	threads := len(cores[0])
	per := (s.Per + threads - 1) / threads
	if s.Count*per <= len(cores) {
		firsts := make([]int, len(cores))
		coreOf := map[int][]int{}
		for i, c := range cores {
			firsts[i], coreOf[c[0]] = c[0], c
		}
		out := t.deal(firsts, s.Count, per, s.Distribution)
		for i, list := range out {
			var cpus []int
			for _, first := range list {
				cpus = append(cpus, coreOf[first]...)
			}
			out[i] = cpus[:min(s.Per, len(cpus))]
		}
		return out
	}
	var flat []int
	for _, c := range cores {
		flat = append(flat, c...)
	}
	return t.deal(flat, s.Count, s.Per, s.Distribution)
}

// deal gives each task the number per of ids, distributed over the sockets by the
// second level of --distribution: block fills one socket after the other, cyclic (the
// default) begins each task on the next socket, and fcyclic each CPU.
func (t *Topology) deal(ids []int, tasks, per int, distribution string) [][]int {
	left := t.groups(ids, bySocket)
	how := socketDistribution(distribution)
	next := func(socket int) int {
		for len(left[socket%len(left)]) == 0 {
			socket++
		}
		list := left[socket%len(left)]
		left[socket%len(left)] = list[1:]
		return list[0]
	}
	out := make([][]int, tasks)
	for i := range out {
		for k := range per {
			socket := 0
			switch how {
			case "cyclic":
				socket = i
			case "fcyclic":
				socket = i*per + k
			}
			out[i] = append(out[i], next(socket))
		}
	}
	return out
}

// socketDistribution returns the second level of --distribution.
func socketDistribution(distribution string) string {
	levels, _, _ := strings.Cut(distribution, ",")
	if parts := strings.Split(levels, ":"); len(parts) > 1 && parts[1] != "" && parts[1] != "*" {
		return parts[1]
	}
	return "cyclic"
}

// Describe returns the values of SLURM_CPU_BIND_TYPE and SLURM_CPU_BIND_LIST: what
// was requested, or the masks that were computed.
func Describe(b *affinity.CPUBind, masks [][]int) (kind, list string) {
	switch b.Kind {
	case affinity.None, affinity.Rank, affinity.RankDomain:
		return b.Kind, ""
	case affinity.MapCPU, affinity.MaskCPU, affinity.MapDomain, affinity.MaskDomain:
		return b.Kind + ":", strings.Join(b.List, ",")
	}
	var words []string
	for _, m := range masks {
		words = append(words, affinity.FormatMask(m))
	}
	return affinity.MaskCPU + ":", strings.Join(words, ",")
}
