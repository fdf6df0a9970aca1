package topology

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// fromLabels sets the switches that the labels of the nodes name. Without keys it uses
// DefaultLabels, but then a network of a single switch is none: a cluster in one zone has
// no choice of switches.
func (n *Network) fromLabels(keys []string, nodes []Node) {
	byDefault := len(keys) == 0
	if byDefault {
		keys = DefaultLabels
	}
	leaves := map[string][]string{}
	unplaced := false
	for i := range nodes {
		path := labelPath(keys, nodes[i].Labels)
		if len(path) == 0 {
			unplaced = true
			continue
		}
		key := pathKey(path)
		if leaves[key] == nil {
			leaves[key] = path
		}
		n.paths[nodes[i].Name] = leaves[key]
	}
	if byDefault && len(leaves) == 1 && !unplaced {
		clear(n.paths)
		return
	}
	n.addPaths(nodes)
}

// labelPath returns the path that the labels with the keys describe. Berth's own label has
// several switches in one value, separated by dots.
func labelPath(keys []string, labels map[string]string) []string {
	var path []string
	for _, key := range keys {
		switch v := labels[key]; {
		case v == "":
		case key == wire.LabelTopology:
			path = append(path, slices.DeleteFunc(strings.Split(v, "."), func(s string) bool { return s == "" })...)
		default:
			path = append(path, v)
		}
	}
	return path
}

// pathKey returns a key of maps for a path.
func pathKey(path []string) string { return strings.Join(path, "\x00") }

// labelled is a switch that labels name.
type labelled struct {
	Switch
	path     []string
	children []*labelled
}

// addPaths adds the switches of all paths.
func (n *Network) addPaths(nodes []Node) {
	all, inOrder := map[string]*labelled{}, []*labelled(nil)
	for i := range nodes {
		path := n.paths[nodes[i].Name]
		var below *labelled
		for depth := len(path); depth > 0; depth-- {
			key := pathKey(path[:depth])
			s, known := all[key]
			if !known {
				s = &labelled{Switch: Switch{Name: path[depth-1], LinkSpeed: 1}, path: path[:depth]}
				all[key] = s
				inOrder = append(inOrder, s)
			}
			s.Nodes = append(s.Nodes, nodes[i].Name)
			if below != nil && !slices.Contains(s.children, below) {
				s.children = append(s.children, below)
			}
			below = s
		}
	}
	n.qualifyNames(inOrder)
	slices.SortStableFunc(inOrder, func(a, b *labelled) int { return len(b.path) - len(a.path) })
	levels := 0
	for _, s := range inOrder { // children first
		for _, c := range s.children {
			s.Level = max(s.Level, c.Level+1)
			s.Switches = append(s.Switches, c.Name)
		}
		levels = max(levels, s.Level)
		hostlist.Sort(s.Switches)
		hostlist.Sort(s.Nodes)
		n.Switches = append(n.Switches, s.Switch)
	}
	sortSwitches(n.Switches)
	n.setAddresses(nodes, all, levels)
}

// setAddresses sets the addresses of all nodes. levels is the highest level.
func (n *Network) setAddresses(nodes []Node, all map[string]*labelled, levels int) {
	byPath := map[string]string{}
	for i := range nodes {
		path := n.paths[nodes[i].Name]
		if path == nil {
			continue
		}
		key := pathKey(path)
		address, known := byPath[key]
		if !known {
			names := make([][]string, levels+1)
			for depth := range path {
				level := all[pathKey(path[:depth+1])].Level
				names[level] = append(names[level], path[depth])
			}
			address = addressText(names)
			byPath[key] = address
		}
		n.addresses[nodes[i].Name] = address
	}
}

// qualifyNames makes the names of the switches unique: switches of the same name below
// different ones get their whole path as name, and a number if that is a name too (values
// of labels may contain dots).
func (n *Network) qualifyNames(all []*labelled) {
	byName := map[string][]*labelled{}
	var names []string
	for _, s := range all {
		if byName[s.Name] == nil {
			names = append(names, s.Name)
		}
		byName[s.Name] = append(byName[s.Name], s)
	}
	hostlist.Sort(names)
	used := map[string]bool{}
	for _, name := range names {
		used[name] = len(byName[name]) == 1
	}
	for _, name := range names {
		same := byName[name]
		if len(same) == 1 {
			continue
		}
		var full []string
		for _, s := range same {
			s.Name = unused(used, strings.Join(s.path, "."))
			full = append(full, s.Name)
		}
		slices.Sort(full)
		n.problem("labels of nodes name the switch %s in several places, which count as different switches: %s",
			name, strings.Join(full, ", "))
	}
}

// unused returns the name, or the name with the first number that makes it a new one, and
// adds it to those that are used.
func unused(used map[string]bool, name string) string {
	free := name
	for i := 2; used[free]; i++ {
		free = name + "-" + strconv.Itoa(i)
	}
	used[free] = true
	return free
}
