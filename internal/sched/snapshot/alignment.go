package snapshot

import (
	"time"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
)

// Avoided are the nodes that have refused a job, or could not start it, because of the CPUs or
// devices that it requests.
type Avoided struct {
	Nodes map[string]bool // by Kubernetes name
	Until time.Time       // when they are tried again if no others can run the job
}

// avoidRefusing removes the nodes that have refused the job from its choices. If the other nodes
// could not run it even if they were empty, the job waits, and all are tried again.
func (s *Snapshot) avoidRefusing(out *backfill.Job, id int64) {
	avoided, ok := s.avoided[id]
	if !ok {
		return
	}
	choices := append([]*backfill.NodeSet{out.Eligible}, out.Alternatives...)
	for i, set := range choices {
		if set == nil {
			return
		}
		rest := &backfill.NodeSet{CPUSet: set.Clone()}
		for name := range avoided.Nodes {
			if n, ok := s.byObject[name]; ok {
				rest.Remove(n)
			}
		}
		choices[i] = rest
	}
	without := *out
	without.Eligible, without.Alternatives = choices[0], choices[1:]
	if s.NeverRunnable(&without) != backfill.ReasonNone {
		out.Begin = max(out.Begin, nextSecond(avoided.Until))
		return
	}
	*out = without
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
		n.NUMASize = t.CPUs / len(n.NUMA)
		return
	}
	sockets := max(1, n.Sockets)
	for k := range sockets {
		var set backfill.CPUSet
		set.AddRange(k*n.CPUs/sockets, (k+1)*n.CPUs/sockets)
		n.NUMA = append(n.NUMA, set)
	}
	n.NUMASize = t.CPUs / sockets
}
