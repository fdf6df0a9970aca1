package main

import (
	"os"
	"testing"
)

// TestCostFigure checks that the figure shows the numbers of the page's table.
func TestCostFigure(t *testing.T) {
	page, err := os.ReadFile("../../docs/sim.md")
	if err != nil {
		t.Fatal(err)
	}
	points, err := costPoints(string(page))
	if err != nil || len(points) < 10 {
		t.Fatalf("%d rows: %v", len(points), err)
	}
	drawn, err := os.ReadFile("../../docs/" + costFigure)
	if err != nil || string(drawn) != costSVG(points) {
		t.Errorf("docs/%s is out of date (%v): go run ./test/bench -suite=cost -page=docs/sim.md", costFigure, err)
	}
}
