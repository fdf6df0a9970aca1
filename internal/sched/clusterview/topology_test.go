package clusterview

import (
	"reflect"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

func TestTopologyRows(t *testing.T) {
	nodes := schedtest.FourNodes()
	for i, path := range []string{"top.s0", "top.s0", "top.s1", ""} {
		if path != "" {
			nodes[i].Labels[wire.LabelTopology] = path
		}
	}
	got := Topology(newSnapshot(snapshot.Input{Nodes: nodes}))
	want := &status.Topology{Type: "tree", Items: []status.Switch{
		{Name: "s0", LinkSpeed: 1, Nodes: "n[1-2]"}, {Name: "s1", LinkSpeed: 1, Nodes: "n3"},
		{Name: "top", Level: 1, LinkSpeed: 1, Nodes: "n[1-3]", Switches: "s[0-1]"},
	}, Problems: []string{"no switch is above n10; these nodes count as one switch"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	params := v1alpha1.ClusterSpec{Topology: &v1alpha1.Topology{Type: "none"}}
	if got := Topology(newSnapshot(snapshot.Input{Nodes: nodes, Parameters: params})); len(got.Items) > 0 {
		t.Errorf("of no network: %+v", got)
	}
}
