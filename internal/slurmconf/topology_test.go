package slurmconf

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

const treeConf = "TopologyPlugin=topology/tree\nNodeName=n[1-4] CPUs=1\n"

func TestTopology(t *testing.T) {
	for _, c := range []struct {
		name, conf, text string
		want             v1alpha1.Topology
		warnings         []string
	}{
		{
			"a tree", treeConf,
			"SwitchName=s0 Nodes=n[1-2] LinkSpeed=40 # left\nswitchname=s1 nodes=n[3-4]\nSwitchName=top Switches=s[0-1]\n",
			v1alpha1.Topology{Switches: []v1alpha1.TopologySwitch{
				{Name: "s0", Nodes: "n[1-2]", LinkSpeed: 40}, {Name: "s1", Nodes: "n[3-4]"}, {Name: "top", Switches: "s[0-1]"},
			}},
			nil,
		},
		{
			"blocks", "TopologyPlugin=topology/block\nNodeName=n[1-4] CPUs=1\n",
			"BlockName=b0 Nodes=n[1-2]\nBlockName=b1 Nodes=n[3-4]\nBlockSizes=2\n",
			v1alpha1.Topology{Type: "block", Switches: []v1alpha1.TopologySwitch{
				{Name: "b0", Nodes: "n[1-2]"}, {Name: "b1", Nodes: "n[3-4]"},
			}},
			[]string{"topology.conf:3: BlockSizes: not supported; a job requests the size of its segments (--segment)"},
		},
		{
			"unknown nodes, a cycle, a node twice", treeConf,
			"SwitchName=a Switches=b Nodes=n[1-5]\nSwitchName=b Nodes=n1 Switches=a\n",
			v1alpha1.Topology{Switches: []v1alpha1.TopologySwitch{
				{Name: "a", Nodes: "n[1-5]", Switches: "b"}, {Name: "b", Nodes: "n1", Switches: "a"},
			}},
			[]string{
				"topology.conf:1: topology: switch a: the cluster has no nodes n5",
				"topology.conf:1: topology: switch a is below itself; its place below b is ignored",
				"topology.conf:1: topology: node n1 is below the switches a and b; only the first counts",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := files(c.conf, "topology.conf", c.text)
			config, err := Parse("slurm.conf", read)
			if err != nil {
				t.Fatal(err)
			}
			if !config.HasTopology() || len(config.Warnings) > 0 {
				t.Fatalf("no topology, or warnings: %v", config.Warnings)
			}
			if _, err := ParseTopology("topology.conf", read, config); err != nil {
				t.Fatal(err)
			}
			got := config.Cluster.Topology
			if got.Type != c.want.Type || !slices.Equal(got.Switches, c.want.Switches) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			var warnings []string
			for _, w := range config.Warnings {
				warnings = append(warnings, w.String())
			}
			if !slices.Equal(warnings, c.warnings) {
				t.Errorf("warnings %q, want %q", warnings, c.warnings)
			}
		})
	}
}

func TestTopologyOfNoTree(t *testing.T) {
	for conf, has := range map[string]bool{
		"": false, "TopologyPlugin=topology/none\n": false, "TopologyPlugin=topology/Tree\n": true,
		"TopologyPlugin=topology/3d_torus\n": false,
	} {
		config := parse(t, conf+"NodeName=n1\n")
		if config.HasTopology() != has {
			t.Errorf("%q: %v", conf, !has)
		}
		if strings.Contains(conf, "3d_torus") != (len(config.Warnings) == 1) {
			t.Errorf("%q: %v", conf, config.Warnings)
		}
	}
}

func TestTopologyErrors(t *testing.T) {
	for text, want := range map[string]string{
		"Nodes=n1\n":                        "topology.conf:1: a line with Nodes or Switches needs SwitchName or BlockName",
		"SwitchName=s Nodes=n[1\n":          "topology.conf:1: ",
		"SwitchName=s LinkSpeed=fast\n":     "topology.conf:1: invalid LinkSpeed=fast",
		"SwitchName=s Nodes=n[1-9999999]\n": "topology.conf:1: ",
	} {
		read := files(treeConf, "topology.conf", text)
		config := parse(t, treeConf)
		if _, err := ParseTopology("topology.conf", read, config); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
