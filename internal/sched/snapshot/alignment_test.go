package snapshot

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
)

// TestSetAlignment checks which CPUs are those of each NUMA node.
func TestSetAlignment(t *testing.T) {
	for _, c := range []struct {
		manager nodeinfo.TopologyManager
		want    backfill.Alignment
		numa    string
	}{
		{nodeinfo.TopologyManager{Policy: "best-effort"}, backfill.AlignNone, ""},
		{nodeinfo.TopologyManager{Policy: "restricted"}, backfill.AlignFewest, "0-3 4-7 "},
		{nodeinfo.TopologyManager{Policy: "single-numa-node", NUMA: []string{"1-2,4", "3,5-7"}}, backfill.AlignSingle, "1-2,4 3,5-7 "},
		{nodeinfo.TopologyManager{Policy: "single-numa-node", NUMA: []string{"1-2", "x"}}, backfill.AlignSingle, "0-3 4-7 "},
	} {
		n := backfill.Node{CPUs: 8, Sockets: 2}
		setAlignment(&n, c.manager)
		numa := ""
		for _, s := range n.NUMA {
			numa += s.String() + " "
		}
		if n.Alignment != c.want || numa != c.numa {
			t.Errorf("%+v: %v, %q", c.manager, n.Alignment, numa)
		}
	}
}

// TestAvoidMisaligned checks which nodes remain for a job after kubelets have refused it.
func TestAvoidMisaligned(t *testing.T) {
	until := time.Unix(5000, 0)
	for _, c := range []struct {
		name    string
		refused []string
		least   int
		want    string
		begin   int64
	}{
		{"none", nil, 1, "0-2", 0},
		{"one of three", []string{"b"}, 1, "0,2", 0},
		{"a node that is gone", []string{"x"}, 1, "0-2", 0},
		{"too few others", []string{"b"}, 3, "0-2", 5000},
		{"no others", []string{"a", "b", "c"}, 0, "0-2", 5000},
	} {
		s := Snapshot{byObject: map[string]int{"a": 0, "b": 1, "c": 2}, misaligned: map[int64]Misaligned{}}
		if c.refused != nil {
			m := Misaligned{Nodes: map[string]bool{}, Until: until}
			for _, n := range c.refused {
				m.Nodes[n] = true
			}
			s.misaligned[7] = m
		}
		shared := &backfill.NodeSet{}
		shared.AddRange(0, 3)
		j := backfill.Job{Eligible: shared, MinNodes: c.least}
		s.avoidMisaligned(&j, 7)
		if j.Eligible.String() != c.want || j.Begin != c.begin || shared.Len() != 3 {
			t.Errorf("%s: %s from %d", c.name, j.Eligible, j.Begin)
		}
	}
}
