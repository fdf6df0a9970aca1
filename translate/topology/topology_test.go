package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// shown returns the switches as text, one for each line.
func shown(n *Network) string {
	var b strings.Builder
	for _, s := range n.Switches {
		fmt.Fprintf(&b, "%s %d %d %s %s\n", s.Name, s.Level, s.LinkSpeed, hostlist.Fold(s.Nodes), hostlist.Fold(s.Switches))
	}
	return b.String()
}

// named returns nodes without labels.
func named(list string) []Node {
	names, err := hostlist.Expand(list)
	if err != nil {
		panic(err)
	}
	nodes := make([]Node, len(names))
	for i, name := range names {
		nodes[i].Name = name
	}
	return nodes
}

func TestSwitchesOfTheList(t *testing.T) {
	for _, c := range []struct {
		name     string
		list     []v1alpha1.TopologySwitch
		want     string
		paths    string // of n1 to n4
		problems []string
	}{
		{
			"a tree", []v1alpha1.TopologySwitch{
				{Name: "s0", Nodes: "n[1-2]", LinkSpeed: 40}, {Name: "s1", Nodes: "n[3-4]"}, {Name: "top", Switches: "s[0-1]"},
			},
			"s0 0 40 n[1-2] \ns1 0 1 n[3-4] \ntop 1 1 n[1-4] s[0-1]\n", "top.s0 top.s0 top.s1 top.s1", nil,
		},
		{
			"a node on two leaves", []v1alpha1.TopologySwitch{{Name: "s0", Nodes: "n[1-2]"}, {Name: "s1", Nodes: "n[2-4]"}},
			"s0 0 1 n[1-2] \ns1 0 1 n[3-4] \n", "s0 s0 s1 s1",
			[]string{"node n2 is below the switches s0 and s1; only the first counts"},
		},
		{
			"a cycle", []v1alpha1.TopologySwitch{
				{Name: "a", Switches: "b"}, {Name: "b", Switches: "c"}, {Name: "c", Nodes: "n[1-4]", Switches: "a"},
			},
			"a 2 1 n[1-4] b\nb 1 1 n[1-4] c\nc 0 1 n[1-4] \n", "a.b.c a.b.c a.b.c a.b.c",
			[]string{"switch a is below itself; its place below c is ignored"},
		},
		{
			"a switch below itself", []v1alpha1.TopologySwitch{{Name: "a", Nodes: "n[1-4]", Switches: "a"}},
			"a 0 1 n[1-4] \n", "a a a a", []string{"switch a is below itself; its place below a is ignored"},
		},
		{
			"a fat tree", []v1alpha1.TopologySwitch{
				{Name: "s", Nodes: "n[1-4]"}, {Name: "t1", Switches: "s"}, {Name: "t2", Switches: "s"},
			},
			"s 0 1 n[1-4] \nt1 1 1 n[1-4] s\nt2 1 1 n[1-4] s\n", "t1.s t1.s t1.s t1.s", nil,
		},
		{
			"unknown names", []v1alpha1.TopologySwitch{{Name: "s", Nodes: "n[1-6]"}, {Name: "t", Switches: "s,u"}},
			"s 0 1 n[1-4] \nt 1 1 n[1-4] s\n", "t.s t.s t.s t.s",
			[]string{"switch s: the cluster has no nodes n[5-6]", "switch t: there is no switch u"},
		},
		{
			"names twice, lists that are none", []v1alpha1.TopologySwitch{{Name: "s", Nodes: "n[1-2]"}, {Name: "s", Nodes: "n3"}, {Name: "t", Nodes: "n[", Switches: "s["}},
			"s 0 1 n[1-2] \nt 0 1  \n", "s s - -",
			[]string{
				"switch s is described twice; the first description applies",
				"switch t: " + hostlistError("n[") + "; it has no nodes of its own",
				"switch t: " + hostlistError("s[") + "; no switches are below it",
				"no switch is above n[3-4]; these nodes count as one switch",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := named("n[1-4]")
			n := Build(&v1alpha1.Topology{Switches: c.list}, nodes)
			if got := shown(n); got != c.want {
				t.Errorf("switches\n%swant\n%s", got, c.want)
			}
			if !slices.Equal(n.Problems, c.problems) {
				t.Errorf("problems %q, want %q", n.Problems, c.problems)
			}
			if got := pathsOf(n, nodes); got != c.paths {
				t.Errorf("paths %s, want %s", got, c.paths)
			}
		})
	}
}

// TestAddresses has the addresses that Slurm 22.05.8 gave the nodes of such a topology.conf.
func TestAddresses(t *testing.T) {
	n := Build(&v1alpha1.Topology{Switches: []v1alpha1.TopologySwitch{
		{Name: "s0", Nodes: "n[1-2]"}, {Name: "s1", Nodes: "n3"}, {Name: "mid", Switches: "s0"},
		{Name: "top", Switches: "mid,s1"}, {Name: "s2", Nodes: "n[4-6]"}, {Name: "root", Switches: "top,s2"},
		{Name: "root2", Switches: "top,s2"},
	}}, named("n[1-7]"))
	for node, want := range map[string]string{
		"n1": "root,root2.top.mid.s0", "n3": "root,root2.top..s1", "n5": "root,root2...s2", "n7": "",
	} {
		if got := n.Address(node); got != want {
			t.Errorf("%s: %q, want %q", node, got, want)
		}
	}
	want := "s0 0 1 n[1-2] \ns1 0 1 n3 \nmid 1 1 n[1-2] s0\ntop 2 1 n[1-3] mid,s1\ns2 0 1 n[4-6] \n" +
		"root 3 1 n[1-6] top,s2\nroot2 3 1 n[1-6] top,s2\n"
	if got := shown(n); got != want {
		t.Errorf("switches\n%swant\n%s", got, want)
	}
	n = Build(nil, labelledNodes("berth.hpc/topology=x.a topology.kubernetes.io/zone=eu.1", "topology.kubernetes.io/zone=z"))
	if got := n.Address("n1") + " " + n.Address("n2"); got != "eu_1.x.a ..z" {
		t.Errorf("of labels: %s", got)
	}
}

func hostlistError(list string) string {
	_, err := hostlist.Expand(list)
	return err.Error()
}

// pathsOf returns the paths of the nodes, "-" for none.
func pathsOf(n *Network, nodes []Node) string {
	var out []string
	for _, node := range nodes {
		path := strings.Join(n.Path(node.Name), ".")
		if path == "" {
			path = "-"
		}
		out = append(out, path)
	}
	return strings.Join(out, " ")
}

// labelledNodes returns nodes n1, n2, ... with the labels key=value of each text.
func labelledNodes(texts ...string) []Node {
	var out []Node
	for i, text := range texts {
		n := Node{Name: fmt.Sprintf("n%d", i+1), Labels: map[string]string{}}
		for _, kv := range strings.Fields(text) {
			k, v, _ := strings.Cut(kv, "=")
			n.Labels[k] = v
		}
		out = append(out, n)
	}
	return out
}

func TestSwitchesOfLabels(t *testing.T) {
	const zone, spine, leaf = "topology.kubernetes.io/zone=", "network.topology.nvidia.com/spine=", "network.topology.nvidia.com/leaf="
	for _, c := range []struct {
		name     string
		spec     *v1alpha1.Topology
		nodes    []Node
		want     string
		paths    string
		problems []string
	}{
		{"no labels", nil, labelledNodes("", ""), "", "- -", nil},
		{"one zone", nil, labelledNodes(zone+"a", zone+"a"), "", "- -", nil},
		{
			"one zone, as the Cluster says", &v1alpha1.Topology{NodeLabels: []string{"topology.kubernetes.io/zone"}},
			labelledNodes(zone+"a", zone+"a"), "a 0 1 n[1-2] \n", "a a", nil,
		},
		{"two zones", nil, labelledNodes(zone+"a", zone+"b"), "a 0 1 n1 \nb 0 1 n2 \n", "a b", nil},
		{
			"the labels of Topograph", nil, labelledNodes(spine+"x "+leaf+"l1", spine+"x "+leaf+"l2", spine+"x "+leaf+"l1"),
			"l1 0 1 n[1,3] \nl2 0 1 n2 \nx 1 1 n[1-3] l[1-2]\n", "x.l1 x.l2 x.l1", nil,
		},
		{
			"Berth's label", nil, labelledNodes("berth.hpc/topology=top.s0", "berth.hpc/topology=top..s1"),
			"s0 0 1 n1 \ns1 0 1 n2 \ntop 1 1 n[1-2] s[0-1]\n", "top.s0 top.s1", nil,
		},
		{
			"a leaf of the same name below two switches", &v1alpha1.Topology{NodeLabels: []string{"row", "rack"}},
			labelledNodes("row=a rack=1", "row=b rack=1"),
			"a.1 0 1 n1 \nb.1 0 1 n2 \na 1 1 n1 a.1\nb 1 1 n2 b.1\n", "a.1 b.1",
			[]string{"labels of nodes name the switch 1 in several places, which count as different switches: a.1, b.1"},
		},
		{
			"a node without labels", &v1alpha1.Topology{NodeLabels: []string{"rack"}}, labelledNodes("rack=1", ""),
			"1 0 1 n1 \n", "1 -", []string{"no switch is above n2; these nodes count as one switch"},
		},
		{"none", &v1alpha1.Topology{Type: None}, labelledNodes(zone+"a", zone+"b"), "", "- -", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := Build(c.spec, c.nodes)
			if got := shown(n); got != c.want {
				t.Errorf("switches\n%swant\n%s", got, c.want)
			}
			if !slices.Equal(n.Problems, c.problems) {
				t.Errorf("problems %q, want %q", n.Problems, c.problems)
			}
			if got := pathsOf(n, c.nodes); got != c.paths {
				t.Errorf("paths %s, want %s", got, c.paths)
			}
		})
	}
}
