package loginkube

import (
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// TestYoungestJobOfANode finds the job to which a connection to a node leads.
func TestYoungestJobOfANode(t *testing.T) {
	list := []status.Job{
		{ID: 7, Start: 100, NodeList: "n[1-2]"}, {ID: 9, Start: 100, NodeList: "n1"}, {ID: 8, Start: 100, NodeList: "n1"},
		{ID: 10, Start: 90, NodeList: "n1"}, {ID: 11, Start: 200, NodeList: "n3"},
	}
	for node, want := range map[string]int64{"n1": 9, "n2": 7, "n3": 11} {
		if j, name := youngest(list, []string{node, node + ".cluster"}); j == nil || j.ID != want || name != node {
			t.Errorf("%s leads to %+v, want job %d", node, j, want)
		}
	}
	if j, _ := youngest(list, []string{"n4"}); j != nil {
		t.Errorf("n4 leads to %+v", j)
	}
}
