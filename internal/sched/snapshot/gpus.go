package snapshot

import (
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
)

// spreadGPUs raises the minimum number of nodes of a job that requests a total of
// GPUs (--gpus) until that many nodes have enough of them, with the CPUs and memory
// requested for each GPU: Slurm, too, takes them from several nodes then.
func (s *Snapshot) spreadGPUs(out *backfill.Job, shape *job.Shape, p *Partition) {
	for _, d := range shape.GRESDemands() {
		if d.Job == 0 || d.OnNode(shape) > 0 {
			continue
		}
		g := job.GRES{Name: d.Name, Type: d.Type, Count: d.Job}
		limit := min(g.Count, int64(len(s.Nodes))) // the count may be any number
		if out.MaxNodes > 0 {
			limit = min(limit, int64(out.MaxNodes))
		}
		if shape.Tasks > 0 { // each node has a task
			limit = min(limit, int64(shape.Tasks))
		}
		for n := int64(out.MinNodes); n <= limit; n++ {
			if s.haveGPUs(p, shape, g, (g.Count+n-1)/n, n) {
				out.MinNodes = int(n)
				break
			}
		}
	}
}

// haveGPUs reports whether at least that number of the partition's nodes, when idle, have
// perNode of g, and the CPUs and memory for that number of GPUs.
func (s *Snapshot) haveGPUs(p *Partition, shape *job.Shape, g job.GRES, perNode, nodes int64) bool {
	for i := range s.Nodes {
		if !p.Nodes.Has(i) {
			continue
		}
		n := &s.Nodes[i]
		if g.Name == "gpu" && int64(shape.CPUsPerGPU)*perNode > int64(n.CPUs) {
			continue
		}
		if g.Name == "gpu" && shape.MemPerGPU != nil && *shape.MemPerGPU*perNode > n.Memory {
			continue
		}
		if countGRES(n, g) < perNode {
			continue
		}
		if nodes--; nodes == 0 {
			return true
		}
	}
	return false
}

// countGRES returns how many of g the node has.
func countGRES(n *backfill.Node, g job.GRES) (count int64) {
	for _, r := range n.GRES {
		if r.Name == g.Name && (g.Type == "" || g.Type == r.Type) {
			count += r.Count
		}
	}
	return count
}
