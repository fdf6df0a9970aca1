package snapshot

import (
	"strings"
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
		size    int
	}{
		{nodeinfo.TopologyManager{Policy: "best-effort"}, backfill.AlignNone, "", 0},
		{nodeinfo.TopologyManager{Policy: "restricted"}, backfill.AlignFewest, "0-3 4-7 ", 0},
		{nodeinfo.TopologyManager{Policy: "restricted", CPUs: 10}, backfill.AlignFewest, "0-3 4-7 ", 5},
		{nodeinfo.TopologyManager{Policy: "single-numa-node", NUMA: []string{"1-2,4", "3,5-7"}, CPUs: 8},
			backfill.AlignSingle, "1-2,4 3,5-7 ", 4},
		{nodeinfo.TopologyManager{Policy: "single-numa-node", NUMA: []string{"1-2", "x"}}, backfill.AlignSingle, "0-3 4-7 ", 0},
	} {
		n := backfill.Node{CPUs: 8, Sockets: 2}
		setAlignment(&n, c.manager)
		numa := ""
		for _, s := range n.NUMA {
			numa += s.String() + " "
		}
		if n.Alignment != c.want || numa != c.numa || n.NUMASize != c.size {
			t.Errorf("%+v: %v, %q, NUMA nodes of %d", c.manager, n.Alignment, numa, n.NUMASize)
		}
	}
}

// TestAvoidRefusing checks which nodes remain for a job after nodes have refused it. Node b is
// the only one with a GPU, and d is drained.
func TestAvoidRefusing(t *testing.T) {
	until := time.Unix(4999, 1)
	gpu := []backfill.GRES{{Name: "gpu", Count: 1}}
	for _, c := range []struct {
		name    string
		refused []string
		least   int
		gpu     bool
		want    string
		begin   int64
	}{
		{"none", nil, 1, false, "0-3", 0},
		{"one of three", []string{"b"}, 1, false, "0,2-3", 0},
		{"a node that is gone", []string{"x"}, 1, false, "0-3", 0},
		{"too few others", []string{"b"}, 3, false, "0-3", 5000},
		{"no others", []string{"a", "b", "c"}, 0, false, "0-3", 5000},
		{"the node that it must get", []string{"c"}, 1, false, "0-3", 5000},
		{"no others with its devices", []string{"b"}, 1, true, "0-3", 5000},
		{"another node has refused it", []string{"a"}, 1, true, "1-3", 0},
	} {
		s := Snapshot{byObject: map[string]int{}, avoided: map[int64]Avoided{}}
		for i, name := range []string{"a", "b", "c", "d"} {
			s.byObject[name] = i
			s.Nodes = append(s.Nodes, backfill.Node{Name: name, CPUs: 4, Unavailable: name == "d"})
		}
		s.Nodes[1].GRES = gpu
		if c.refused != nil {
			m := Avoided{Nodes: map[string]bool{}, Until: until}
			for _, n := range c.refused {
				m.Nodes[n] = true
			}
			s.avoided[7] = m
		}
		shared := &backfill.NodeSet{}
		shared.AddRange(0, 4)
		j := backfill.Job{Eligible: shared, MinNodes: c.least, Tasks: max(1, c.least), CPUsPerTask: 1}
		if c.gpu {
			j.GRES = gpu
		}
		if strings.Contains(c.name, "must get") {
			j.Required = []int{2}
		}
		s.avoidRefusing(&j, 7)
		if j.Eligible.String() != c.want || j.Begin != c.begin || shared.Len() != 4 {
			t.Errorf("%s: %s from %d", c.name, j.Eligible, j.Begin)
		}
	}
}
