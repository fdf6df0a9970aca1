package server

import (
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// The capacity of a cluster is counted from the time when it existed.
func TestGiven(t *testing.T) {
	events := []status.AcctEvent{
		{Start: 100, End: 200, TRES: "billing=4,cpu=4,mem=1000M,node=1"},
		{Start: 200, TRES: "billing=8,cpu=8,mem=2000M,node=2"},
		{Node: "n2", Start: 250, End: 260, State: "DOWN*", TRES: "billing=4,cpu=4,mem=1000M"},
		{Node: "n1", Start: 290, State: "DRAIN", TRES: "billing=4,cpu=4,mem=1000M"},
	}
	for _, c := range []struct{ start, end, cpu, node, down int64 }{
		{0, 100, 0, 0, 0},
		{150, 210, 4*50 + 8*10, 50 + 2*10, 0},
		{0, 300, 4*100 + 8*100, 100 + 200, 4*10 + 4*10},
		{255, 258, 8 * 3, 2 * 3, 4 * 3},
	} {
		reported, down := available(events, c.start, c.end)
		if reported["cpu"] != c.cpu || reported["node"] != c.node || down["cpu"] != c.down {
			t.Errorf("%d to %d: %v, down %v", c.start, c.end, reported, down)
		}
	}
}
