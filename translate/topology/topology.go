// Package topology computes the network of a cluster, a tree of switches above its nodes,
// from the labels of the nodes or from the switches that the Cluster object lists. It is
// pure.
package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// DefaultLabels are the keys of node labels that place nodes in the network if the Cluster
// object names none, outermost first: Kubernetes' zone, the labels that NVIDIA's Topograph
// writes (datacenter and block are the names of core and leaf in its earlier releases), and
// Berth's own.
var DefaultLabels = []string{
	"topology.kubernetes.io/zone",
	"network.topology.nvidia.com/datacenter",
	"network.topology.nvidia.com/core",
	"network.topology.nvidia.com/spine",
	"network.topology.nvidia.com/block",
	"network.topology.nvidia.com/leaf",
	"network.topology.nvidia.com/accelerator",
	wire.LabelTopology,
}

// Values of the field Type of the Cluster object's topology.
const (
	Tree  = "tree"
	Block = "block"
	None  = "none"
)

// Node is a node as its network is described.
type Node struct {
	Name   string // short name
	Labels map[string]string
}

// Switch is a switch or, in a block topology, a block.
type Switch struct {
	Name      string
	Level     int // 0: no switches are below it
	LinkSpeed int64
	Nodes     []string // all nodes below it, in the order of names
	Switches  []string // the switches directly below it
}

// Network is the network of a cluster. Its zero value has no switches.
type Network struct {
	// Type is Tree or Block.
	Type     string
	Switches []Switch
	// Problems says what is wrong in the description of the network, and what is done
	// about it, one sentence each.
	Problems []string

	paths     map[string][]string
	addresses map[string]string
}

// Path returns the switches above the node with the short name, from the top of the tree to
// the leaf; nil: none is known. Nodes of one leaf get the same slice, which must not be
// modified.
// A nil Network has no switches.
func (n *Network) Path(node string) []string {
	if n == nil {
		return nil
	}
	return n.paths[node]
}

// Address returns the switches above the node with the short name as in SLURM_TOPOLOGY_ADDR:
// for each level, from the top to the leaf, a host list of the switches above the node, which
// may be empty, with dots between the levels. It is empty if none is known.
func (n *Network) Address(node string) string { return n.addresses[node] }

// addressText returns an address with the names of each level, from 0 on. Names in it have no
// dots.
func addressText(names [][]string) string {
	parts := make([]string, len(names))
	for level, of := range names {
		parts[len(names)-1-level] = strings.ReplaceAll(hostlist.Fold(of), ".", "_")
	}
	return strings.Join(parts, ".")
}

// Build returns the network of the nodes. spec is that of the Cluster object, or nil.
func Build(spec *v1alpha1.Topology, nodes []Node) *Network {
	if spec == nil {
		spec = &v1alpha1.Topology{}
	}
	n := &Network{Type: cmp.Or(spec.Type, Tree), paths: map[string][]string{}, addresses: map[string]string{}}
	switch {
	case spec.Type == None:
	case len(spec.Switches) > 0:
		n.fromSwitches(spec.Switches, nodes)
	default:
		n.fromLabels(spec.NodeLabels, nodes)
	}
	if len(n.Switches) > 0 {
		n.reportUnplaced(nodes)
	}
	return n
}

func (n *Network) problem(format string, args ...any) {
	n.Problems = append(n.Problems, fmt.Sprintf(format, args...))
}

// reportUnplaced reports the nodes that are below no switch.
func (n *Network) reportUnplaced(nodes []Node) {
	var names []string
	for i := range nodes {
		if n.paths[nodes[i].Name] == nil {
			names = append(names, nodes[i].Name)
		}
	}
	if len(names) > 0 {
		hostlist.Sort(names)
		n.problem("no switch is above %s; these nodes count as one switch", hostlist.Fold(names))
	}
}

// sortSwitches sorts switches by level and then by name.
func sortSwitches(all []Switch) {
	slices.SortFunc(all, func(a, b Switch) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), hostlist.Compare(a.Name, b.Name))
	})
}
