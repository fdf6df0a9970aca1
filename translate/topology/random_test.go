package topology

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// drawSpec draws a description, most of which contradict a tree: nodes below several leaves,
// cycles, unknown and empty names, lists that are none.
func drawSpec(t *rapid.T) *v1alpha1.Topology {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "", "s[0-1]", "s0", "s1"})
	nodes := rapid.SampledFrom([]string{"", "n1", "n[1-3]", "n[2-6]", "n9", "n[", "n[3-1]", "ALL"})
	switches := rapid.SampledFrom([]string{"", "a", "b,c", "s[0-1]", "d,d", "[", "z"})
	spec := &v1alpha1.Topology{Type: rapid.SampledFrom([]string{"", "tree", "block", "none"}).Draw(t, "type")}
	for range rapid.IntRange(0, 5).Draw(t, "switches") {
		spec.Switches = append(spec.Switches, v1alpha1.TopologySwitch{
			Name: name.Draw(t, "name"), Nodes: nodes.Draw(t, "nodes"), Switches: switches.Draw(t, "below"),
		})
	}
	if rapid.Bool().Draw(t, "labels") {
		spec.NodeLabels = rapid.SliceOfN(rapid.SampledFrom([]string{"row", "rack", "berth.hpc/topology", ""}), 0, 3).
			Draw(t, "keys")
	}
	return spec
}

func drawNodes(t *rapid.T) []Node {
	nodes := named("n[1-6]")
	for i := range nodes {
		nodes[i].Labels = map[string]string{}
		for _, key := range []string{"row", "rack", "berth.hpc/topology", "topology.kubernetes.io/zone"} {
			nodes[i].Labels[key] = rapid.SampledFrom([]string{"", "a", "b", "a.b", "..", "a.a"}).Draw(t, key)
		}
	}
	return nodes
}

// TestAnyDescriptionIsATree: whatever is described, each node has one path, each switch is
// below at most one other in the paths, the nodes of a switch are those whose path has it,
// and the result does not depend on chance.
func TestAnyDescriptionIsATree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, nodes := drawSpec(t), drawNodes(t)
		if rapid.IntRange(0, 9).Draw(t, "nil") == 0 {
			spec = nil
		}
		n := Build(spec, nodes)
		again := Build(spec, slices.Clone(nodes))
		if shown(n) != shown(again) {
			t.Fatalf("two results:\n%s\n%s", shown(n), shown(again))
		}
		names := map[string]bool{}
		for _, s := range n.Switches {
			if names[s.Name] || s.Name == "" {
				t.Errorf("the name %q is not unique", s.Name)
			}
			names[s.Name] = true
		}
		above := map[string]string{}
		for _, node := range nodes {
			path := n.Path(node.Name)
			for i, name := range path {
				if name == "" {
					t.Errorf("%s is below a switch without a name: %q", node.Name, path)
				}
				key := strings.Join(path[:i+1], "\x00")
				parent := strings.Join(path[:i], "\x00")
				if known, ok := above[key]; ok && known != parent {
					t.Errorf("%s is below %s and %s", key, known, parent)
				}
				above[key] = parent
			}
			if address := n.Address(node.Name); (len(path) > 0) != (address != "") {
				t.Errorf("the address of %s below %v is %q", node.Name, path, address)
			}
		}
	})
}
