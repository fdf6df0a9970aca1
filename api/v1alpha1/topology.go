package v1alpha1

// Topology describes the network between the nodes as a tree of switches, of which a job
// gets as few as possible (topology.conf(5)).
type Topology struct {
	// Type: "tree" (default), "block" (the switches above the nodes are blocks), or "none".
	//
	// +kubebuilder:validation:Enum=tree;block;none
	Type string `json:"type,omitempty"`
	// NodeLabels are the keys of labels of the nodes whose values name the switches above a
	// node, from the top of the tree to the leaf. A node may lack some of them.
	// Empty: topology.kubernetes.io/zone; network.topology.nvidia.com/ with datacenter, core,
	// spine, block, leaf, accelerator; berth.hpc/topology (several switches: "spine1.leaf3").
	//
	// +kubebuilder:validation:MaxItems=16
	NodeLabels []string `json:"nodeLabels,omitempty"`
	// Switches lists the switches, as topology.conf does. If it is not empty, labels are
	// not used.
	//
	// +kubebuilder:validation:MaxItems=20000
	Switches []TopologySwitch `json:"switches,omitempty"`
}

// TopologySwitch is a switch, or a block of nodes.
type TopologySwitch struct {
	Name string `json:"name"`
	// Nodes is a host list of the nodes directly below the switch, Switches one of the
	// switches.
	Nodes    string `json:"nodes,omitempty"`
	Switches string `json:"switches,omitempty"`
	// LinkSpeed is shown by scontrol; it has no effect. 0: 1.
	LinkSpeed int64 `json:"linkSpeed,omitempty"`
}
