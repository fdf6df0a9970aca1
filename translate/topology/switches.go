package topology

import (
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// configured is a switch that the Cluster object lists. Several switches may be above it, as
// in a fat tree; the path of a node leads through the first one.
type configured struct {
	Switch
	source   *v1alpha1.TopologySwitch
	index    int      // in the list
	own      []string // the nodes directly below it
	children []*configured
	parents  []*configured

	isLeveled, isListed bool // Level and Nodes are set
}

// builder converts the switches of a Cluster object.
type builder struct {
	*Network
	all    []*configured // in the order of the list
	byName map[string]*configured
	known  map[string]bool // the nodes of the cluster
}

// fromSwitches sets the switches of the list. What contradicts a tree is left out and
// reported.
func (n *Network) fromSwitches(list []v1alpha1.TopologySwitch, nodes []Node) {
	b := &builder{Network: n, byName: map[string]*configured{}, known: map[string]bool{}}
	for i := range nodes {
		b.known[nodes[i].Name] = true
	}
	for i := range list {
		b.add(&list[i])
	}
	for _, s := range b.all {
		b.connect(s)
	}
	levels := 0
	for _, s := range b.all {
		levels = max(levels, s.level())
	}
	for _, s := range b.all {
		b.place(s, levels)
	}
	for _, s := range b.all {
		s.nodes()
		n.Switches = append(n.Switches, s.Switch)
	}
}

// add adds a switch without those below it.
func (b *builder) add(in *v1alpha1.TopologySwitch) {
	switch {
	case in.Name == "":
		b.problem("a switch without a name is ignored")
		return
	case b.byName[in.Name] != nil:
		b.problem("switch %s is described twice; the first description applies", in.Name)
		return
	}
	s := &configured{Switch: Switch{Name: in.Name, LinkSpeed: max(in.LinkSpeed, 1)}, source: in, index: len(b.all)}
	names, err := hostlist.Expand(in.Nodes)
	if err != nil {
		b.problem("switch %s: %v; it has no nodes of its own", in.Name, err)
	}
	var unknown []string
	for _, name := range names {
		if b.known[name] {
			s.own = append(s.own, name)
		} else {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		b.problem("switch %s: the cluster has no nodes %s", in.Name, hostlist.Fold(unknown))
	}
	b.all = append(b.all, s)
	b.byName[in.Name] = s
}

// connect connects a switch with those below it.
func (b *builder) connect(s *configured) {
	names, err := hostlist.Expand(s.source.Switches)
	if err != nil {
		b.problem("switch %s: %v; no switches are below it", s.Name, err)
	}
	for _, name := range names {
		child := b.byName[name]
		switch {
		case child == nil:
			b.problem("switch %s: there is no switch %s", s.Name, name)
		case slices.Contains(s.withAbove(), child):
			b.problem("switch %s is below itself; its place below %s is ignored", name, s.Name)
		case !slices.Contains(s.children, child):
			child.parents = append(child.parents, s)
			s.children = append(s.children, child)
			s.Switches = append(s.Switches, name)
		}
	}
}

// place sets the paths and addresses of the switch's own nodes. levels is the highest level.
func (b *builder) place(s *configured, levels int) {
	path := s.path()
	address := b.addressOf(s, levels)
	s.own = slices.DeleteFunc(s.own, func(name string) bool {
		if other := b.paths[name]; other != nil {
			b.problem("node %s is below the switches %s and %s; only the first counts", name,
				other[len(other)-1], s.Name)
			return true
		}
		b.paths[name], b.addresses[name] = path, address
		return false
	})
}

// addressOf returns the address of the nodes of s.
func (b *builder) addressOf(s *configured, levels int) string {
	names := make([][]string, levels+1)
	above := s.withAbove()
	// In the order of the list, as Slurm does.
	slices.SortFunc(above, func(a, b *configured) int { return a.index - b.index })
	for _, w := range above {
		names[w.Level] = append(names[w.Level], w.Name)
	}
	return addressText(names)
}

// withAbove returns s and all switches above it.
func (s *configured) withAbove() []*configured {
	all := []*configured{s}
	for i := 0; i < len(all); i++ {
		for _, p := range all[i].parents {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// path returns the names from the top of the tree to s.
func (s *configured) path() []string {
	path := []string{s.Name}
	for p := s; len(p.parents) > 0; {
		p = p.parents[0]
		path = append(path, p.Name)
	}
	slices.Reverse(path)
	return path
}

// level sets and returns the level of s.
func (s *configured) level() int {
	if s.isLeveled {
		return s.Level
	}
	s.isLeveled = true
	for _, c := range s.children {
		s.Level = max(s.Level, c.level()+1)
	}
	return s.Level
}

// nodes sets and returns all nodes below s, in the order of names.
func (s *configured) nodes() []string {
	if s.isListed {
		return s.Nodes
	}
	s.isListed = true
	s.Nodes = slices.Clone(s.own)
	for _, c := range s.children {
		s.Nodes = append(s.Nodes, c.nodes()...)
	}
	hostlist.Sort(s.Nodes)
	s.Nodes = slices.Compact(s.Nodes)
	return s.Nodes
}
