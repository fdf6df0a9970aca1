package snapshot

import (
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
)

// spreadGPUs raises the least number of nodes of a job that asks for GPUs as a
// whole (--gpus), where fewer nodes could never hold them, or what goes with
// each of them: as Slurm takes them from several nodes then.
func (v *View) spreadGPUs(out *backfill.Job, s *job.Shape, p *partition) {
	for _, g := range s.GRES {
		most := min(g.Count, int64(len(v.Nodes))) // the count may be any number
		if out.MaxNodes > 0 {
			most = min(most, int64(out.MaxNodes))
		}
		if s.Tasks > 0 { // each node has a task
			most = min(most, int64(s.Tasks))
		}
		if g.Per != job.PerJob {
			continue
		}
		for n := int64(out.MinNodes); n <= most; n++ {
			if v.haveEach(p, s, g, (g.Count+n-1)/n, n) {
				out.MinNodes = int(n)
				break
			}
		}
	}
}

// haveEach tells whether as many nodes of p as wanted have share of g, and the
// CPUs and memory that go with so many GPUs, were they empty.
func (v *View) haveEach(p *partition, s *job.Shape, g job.GRES, share, wanted int64) bool {
	for i := range v.Nodes {
		if !p.nodes.Has(i) {
			continue
		}
		n := &v.Nodes[i]
		if g.Name == "gpu" && int64(s.CPUsPerGPU)*share > int64(n.CPUs) {
			continue
		}
		if g.Name == "gpu" && s.MemPerGPU != nil && *s.MemPerGPU*share > n.Memory {
			continue
		}
		if has(n, g) < share {
			continue
		}
		if wanted--; wanted == 0 {
			return true
		}
	}
	return false
}

// has is how many of g the node has.
func has(n *backfill.Node, g job.GRES) (count int64) {
	for _, r := range n.GRES {
		if r.Name == g.Name && (g.Type == "" || g.Type == r.Type) {
			count += r.Count
		}
	}
	return count
}
