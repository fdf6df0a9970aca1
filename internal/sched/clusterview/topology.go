package clusterview

import (
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// Topology returns the rows of scontrol show topology, and what is wrong in the description
// of the network.
func Topology(s *snapshot.Snapshot) *status.Topology {
	n := s.Network()
	out := &status.Topology{Type: n.Type, Problems: n.Problems, Items: make([]status.Switch, len(n.Switches))}
	for i := range n.Switches {
		w := &n.Switches[i]
		out.Items[i] = status.Switch{
			Name: w.Name, Level: int32(w.Level), LinkSpeed: w.LinkSpeed,
			Nodes: hostlist.Fold(w.Nodes), Switches: hostlist.Fold(w.Switches),
		}
	}
	return out
}
