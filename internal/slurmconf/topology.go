package slurmconf

import (
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/topology"
)

// topologyTypes maps the values of TopologyPlugin to the types of a Cluster's topology.
var topologyTypes = map[string]string{
	"topology/tree": topology.Tree, "topology/block": topology.Block,
	"topology/none": topology.None, "topology/default": topology.None, "topology/flat": topology.None,
}

// topologyType returns the type for a value of TopologyPlugin, or "" if it is not supported.
func topologyType(plugin string) string { return topologyTypes[strings.ToLower(plugin)] }

// HasTopology reports whether Slurm reads a topology.conf beside this slurm.conf.
func (c *Config) HasTopology() bool {
	t := topologyType(c.Cluster.Parameters["TopologyPlugin"])
	return t == topology.Tree || t == topology.Block
}

// ParseTopology parses a topology.conf, with the files that it includes, into the Cluster of
// config, and returns the network. What is wrong in the tree is a warning. The error is an
// *Error, or that of read for the first file.
func ParseTopology(
	file string, read func(path string) ([]byte, error), config *Config,
) (*topology.Network, error) {
	p := &parser{read: read, cluster: config.Cluster.ClusterName, warned: map[Warning]bool{}}
	lines, err := p.lines(file, 0)
	if err != nil {
		return nil, err
	}
	t := &v1alpha1.Topology{Type: topologyType(config.Cluster.Parameters["TopologyPlugin"])}
	if t.Type == topology.Tree || t.Type == topology.None {
		t.Type = "" // the default; a file that is read on request counts
	}
	for _, l := range lines {
		if err := p.topologyLine(t, l); err != nil {
			return nil, err
		}
	}
	config.Cluster.Topology = t
	nodes := make([]topology.Node, len(config.Nodes))
	for i := range config.Nodes {
		nodes[i].Name = config.Nodes[i].Name
	}
	network := topology.Build(t, nodes)
	for _, text := range network.Problems {
		p.warn(pair{key: "topology", line: line{file: file, number: 1}}, "%s", text)
	}
	config.Warnings = append(config.Warnings, p.config.Warnings...)
	return network, nil
}

// topologyLine parses a line that describes a switch or a block.
func (p *parser) topologyLine(t *v1alpha1.Topology, l line) error {
	all, err := pairs(l)
	if err != nil {
		return err
	}
	var s v1alpha1.TopologySwitch
	for _, kv := range all {
		switch strings.ToLower(kv.key) {
		case "switchname":
			s.Name = kv.value
		case "blockname":
			s.Name, t.Type = kv.value, topology.Block
		case "nodes":
			s.Nodes = kv.value
			_, err = p.hosts(kv)
		case "switches":
			s.Switches = kv.value
			_, err = p.hosts(kv)
		case "linkspeed":
			s.LinkSpeed, err = kv.integer(0, maxInt32)
		case "blocksizes":
			p.warn(kv, "not supported; a job requests the size of its segments (--segment)")
		default:
			p.warn(kv, "not supported for switches; ignored")
		}
		if err != nil {
			return err
		}
	}
	if s.Name != "" {
		t.Switches = append(t.Switches, s)
	} else if s.Nodes+s.Switches != "" {
		return l.errorf("a line with Nodes or Switches needs SwitchName or BlockName")
	}
	return nil
}
