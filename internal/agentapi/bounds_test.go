package agentapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
)

func TestBoundSteps(t *testing.T) {
	long := strings.Repeat("x", 100000)
	list := boundSteps([]wire.StepRecord{
		{ID: wire.StepBatch, Name: "batch", Nodes: []string{"n1"}},
		{ID: 39999, Name: long, Layout: long, SrunHost: long, State: long, KilledBy: long, Nodes: slices.Repeat([]string{long}, 1000)},
		{ID: 40000}, {ID: -7}, {ID: -2147483648},
	}, 2)
	if len(list) != 2 || list[0].Name != "batch" || len(list[0].Nodes) != 1 {
		t.Fatalf("%d records are left, the first %+v", len(list), list[0])
	}
	s := list[1]
	if len(s.Name) != maxStepName || len(s.Layout) != maxName || len(s.SrunHost) != maxName || len(s.State) != maxName ||
		len(s.KilledBy) != maxName || len(s.Nodes) != 2 || len(s.Nodes[1]) != maxName {
		t.Errorf("name of %d bytes, layout of %d, host of %d, state of %d, user of %d, %d nodes",
			len(s.Name), len(s.Layout), len(s.SrunHost), len(s.State), len(s.KilledBy), len(s.Nodes))
	}
	r := &wire.Report{Message: long, LostNode: long}
	if boundReport(r); len(r.Message) != maxMessage || len(r.LostNode) != maxName {
		t.Errorf("message of %d bytes, node of %d", len(r.Message), len(r.LostNode))
	}
}
