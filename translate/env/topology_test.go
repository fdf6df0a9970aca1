package env

import (
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// TestTopologyAddress checks the variables about a node's place in the network, as in Slurm
// 22.05.8.
func TestTopologyAddress(t *testing.T) {
	for path, want := range map[string][2]string{
		"":        {"n2", "node"},
		"s1":      {"s1.n2", "switch.node"},
		"top.s1":  {"top.s1.n2", "switch.switch.node"},
		"top..s1": {"top..s1.n2", "switch.switch.switch.node"},
	} {
		w := &wire.Welcome{JobID: 7, Index: 1, Hosts: []wire.Host{{Name: "n1"}, {Name: "n2", Topology: path}}}
		got := toMap(Step(Input{Welcome: w, Job: &job.Job{}}, StepShape{Nodes: []StepNode{
			{Name: "n1", Tasks: []int32{0}}, {Name: "n2", Tasks: []int32{1}}}}))
		if got["SLURM_TOPOLOGY_ADDR"] != want[0] || got["SLURM_TOPOLOGY_ADDR_PATTERN"] != want[1] {
			t.Errorf("%q: %s, %s, want %v", path, got["SLURM_TOPOLOGY_ADDR"], got["SLURM_TOPOLOGY_ADDR_PATTERN"], want)
		}
	}
}
