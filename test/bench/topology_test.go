package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// TestPlacementFigures places jobs of two nodes on two leaves of three nodes. First fit puts
// the second of them on both leaves.
func TestPlacementFigures(t *testing.T) {
	var machine, flat []backfill.Node
	for i := range 6 {
		n := backfill.Node{Name: fmt.Sprint("n", i), CPUs: 1}
		flat = append(flat, n)
		n.TopologyPath = []string{"top", fmt.Sprint("leaf", i/3)}
		machine = append(machine, n)
	}
	moments := []moment{{0, 1, 2}, {10, 2, 2}, {20, 1, 0}, {30, 2, 0}}
	for _, c := range []struct {
		name string
		on   []backfill.Node
		want placement
	}{
		{"fewest leaves", machine, placement{switches: 1, block: (3*10 + 1*10 + 3*10) / 30.}},
		{"first fit", flat, placement{switches: 1.5, block: (3*10 + 2*10 + 2*10) / 30.}},
	} {
		got, err := place(context.Background(), newPlannerPlacer(c.on), machine, moments)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}
