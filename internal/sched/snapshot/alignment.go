package snapshot

import (
	"time"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
)

// Misaligned are the nodes whose kubelets have refused a job because they could not align its
// CPUs.
type Misaligned struct {
	Nodes map[string]bool // by Kubernetes name
	Until time.Time       // when they are tried again if there are no others
}

// avoidMisaligned removes the nodes that cannot align the job's CPUs from its choices. If
// one of the choices has too few other nodes, the job waits and they are tried again.
func (s *Snapshot) avoidMisaligned(out *backfill.Job, id int64) {
	m, ok := s.misaligned[id]
	if !ok {
		return
	}
	var without []*backfill.NodeSet
	for _, set := range append([]*backfill.NodeSet{out.Eligible}, out.Alternatives...) {
		if set == nil {
			return
		}
		rest := &backfill.NodeSet{CPUSet: set.Clone()}
		for name := range m.Nodes {
			if i, ok := s.byObject[name]; ok {
				rest.Remove(i)
			}
		}
		if rest.Len() < max(1, out.MinNodes) {
			out.Begin = max(out.Begin, m.Until.Unix())
			return
		}
		without = append(without, rest)
	}
	out.Eligible, out.Alternatives = without[0], without[1:]
}

// setAlignment sets which CPUs of the node the kubelet gives together to pods.
func setAlignment(n *backfill.Node, t nodeinfo.TopologyManager) {
	switch t.Policy {
	case nodeinfo.Restricted:
		n.Alignment = backfill.AlignFewest
	case nodeinfo.SingleNUMANode:
		n.Alignment = backfill.AlignSingle
	default:
		return
	}
	for _, list := range t.NUMA {
		set, err := backfill.ParseCPUSet(list)
		if err != nil {
			n.NUMA = nil
			break
		}
		n.NUMA = append(n.NUMA, set)
	}
	if len(n.NUMA) > 0 {
		return
	}
	sockets := max(1, n.Sockets)
	for k := range sockets {
		var set backfill.CPUSet
		set.AddRange(k*n.CPUs/sockets, (k+1)*n.CPUs/sockets)
		n.NUMA = append(n.NUMA, set)
	}
}
