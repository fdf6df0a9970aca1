package format

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// NodeGroup is one line of sinfo: nodes of a partition that look the same in
// the columns shown. Nodes may be empty (an empty partition); Partition is nil
// for nodes of no partition.
type NodeGroup struct {
	Partition *status.Partition
	Nodes     []*status.Node
}

// How a column of sinfo takes part in the grouping.
type grouping int

const (
	aggregate grouping = iota // a sum over the group
	byPart                    // a property of the partition
	byNode                    // nodes that differ in it stand in different lines
	ranged                    // as byNode with --exact, else the least with a +
)

// NodeColumn is a column of sinfo.
type NodeColumn struct {
	Column[NodeGroup]
	group grouping
}

// nodeGrouping finds how a column takes part in the grouping, by its header
// and name, which identify it.
func nodeGrouping(c *Column[NodeGroup]) grouping {
	for i := range nodeColumns {
		if nodeColumns[i].Letter == c.Letter && nodeColumns[i].Name == c.Name {
			return nodeColumns[i].group
		}
	}
	return aggregate
}

// GroupNodes makes the lines of sinfo for a layout. exact keeps nodes apart
// that differ in any column; single gives every node a line of its own. Nodes
// of no listed partition are left out where the layout shows partitions.
func GroupNodes(l Layout[NodeGroup], parts []status.Partition, nodes []status.Node, exact, single bool) []NodeGroup {
	var keys []*Column[NodeGroup]
	perPart := single
	for i := range l {
		if l[i].Column == nil {
			continue
		}
		switch g := nodeGrouping(l[i].Column); {
		case g == byPart:
			perPart = true
		case g == byNode, g == ranged && exact:
			keys = append(keys, l[i].Column)
		}
	}
	if !perPart {
		return groupsOf(nil, memberNodes(parts, nodes), keys, single)
	}
	var out []NodeGroup
	for i := range parts {
		groups := groupsOf(&parts[i], memberNodes(parts[i:i+1], nodes), keys, single)
		if len(groups) == 0 && !single {
			groups = []NodeGroup{{Partition: &parts[i]}}
		}
		out = append(out, groups...)
	}
	if single || namesPartition(l) {
		return out
	}
	return mergeAlike(l, out, keys)
}

// namesPartition tells whether a column tells the partitions apart.
func namesPartition(l Layout[NodeGroup]) bool {
	return slices.ContainsFunc(l, func(c Cell[NodeGroup]) bool { return c.Column != nil && c.Column.Header == "PARTITION" })
}

// mergeAlike puts the lines of several partitions together that show the same.
func mergeAlike(l Layout[NodeGroup], rows []NodeGroup, keys []*Column[NodeGroup]) []NodeGroup {
	for i := range l {
		if c := l[i].Column; c != nil && nodeGrouping(c) == byPart {
			keys = append(keys, c)
		}
	}
	var out []NodeGroup
	index := map[string]int{}
	for _, r := range rows {
		var key []byte
		for _, c := range keys {
			key = append(c.Append(key, &r, &Settings{}), 0)
		}
		at, ok := index[string(key)]
		if !ok {
			index[string(key)] = len(out)
			out = append(out, r)
			continue
		}
		for _, n := range r.Nodes {
			if !slices.Contains(out[at].Nodes, n) {
				out[at].Nodes = append(out[at].Nodes, n)
			}
		}
	}
	return out
}

// memberNodes are the nodes that are in one of the partitions.
func memberNodes(parts []status.Partition, nodes []status.Node) []*status.Node {
	member := map[string]bool{}
	for i := range parts {
		for _, n := range parts[i].Nodes {
			member[n] = true
		}
	}
	var out []*status.Node
	for i := range nodes {
		if member[nodes[i].Name] {
			out = append(out, &nodes[i])
		}
	}
	return out
}

func groupsOf(part *status.Partition, nodes []*status.Node, keys []*Column[NodeGroup], single bool) []NodeGroup {
	var out []NodeGroup
	index := map[string]int{}
	for _, n := range nodes {
		one := NodeGroup{Partition: part, Nodes: []*status.Node{n}}
		var key []byte
		for _, c := range keys {
			key = append(c.Append(key, &one, &Settings{}), 0)
		}
		at, ok := index[string(key)]
		if !ok || single {
			index[string(key)] = len(out)
			out = append(out, one)
			continue
		}
		out[at].Nodes = append(out[at].Nodes, n)
	}
	return out
}

// names is the folded list of the group's nodes.
func (g *NodeGroup) names() string {
	names := make([]string, len(g.Nodes))
	for i, n := range g.Nodes {
		names[i] = n.Name
	}
	return hostlist.FoldSorted(names)
}

// first is a node that stands for the group, or nil.
func (g *NodeGroup) first() *status.Node {
	if len(g.Nodes) == 0 {
		return nil
	}
	return g.Nodes[0]
}

// counts are the nodes allocated, idle and in other states.
func (g *NodeGroup) counts() (alloc, idle, other int64) {
	for _, n := range g.Nodes {
		switch stateName(n) {
		case "ALLOCATED", "MIXED", "completing", "draining":
			alloc++
		case "IDLE", "planned", "reserved":
			idle++
		default:
			other++
		}
	}
	return alloc, idle, other
}

// cpus are the CPUs allocated, idle, in other states, and all.
func (g *NodeGroup) cpus() (alloc, idle, other, total int64) {
	for _, n := range g.Nodes {
		used, all := int64(n.CPUsAlloc), int64(n.CPUs)
		alloc += used
		total += all
		if n.State == "DOWN" || n.State == "UNKNOWN" || has(n, flagDrain) {
			other += all - used
		} else {
			idle += all - used
		}
	}
	return alloc, idle, other, total
}

// SortNodeGroups puts lines into the order named by letters, as sinfo -S does.
// "#P" is the order in which the partitions came.
func SortNodeGroups(rows []NodeGroup, order string) {
	type key struct {
		letter     byte
		descending bool
		given      bool
	}
	var keys []key
	k := key{}
	for i := range len(order) {
		switch c := order[i]; c {
		case '-':
			k.descending = true
		case '#':
			k.given = true
		case '+', ',':
		default:
			k.letter = c
			keys = append(keys, k)
			k = key{}
		}
	}
	place := map[*status.Partition]int{}
	for i := range rows {
		if _, ok := place[rows[i].Partition]; !ok {
			place[rows[i].Partition] = i
		}
	}
	slices.SortStableFunc(rows, func(a, b NodeGroup) int {
		for _, k := range keys {
			c := 0
			if k.letter == 'P' && k.given {
				c = place[a.Partition] - place[b.Partition]
			} else {
				c = compareGroups(&a, &b, k.letter)
			}
			if k.descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
}

func compareGroups(a, b *NodeGroup, letter byte) int {
	switch letter {
	case 't', 'T':
		return groupOrder(a) - groupOrder(b)
	case 'N':
		return hostlist.Compare(a.names(), b.names())
	case 'D':
		return len(a.Nodes) - len(b.Nodes)
	}
	col := find(NodeColumns, func(c *Column[NodeGroup]) bool { return c.Letter == letter })
	if col == nil {
		return 0
	}
	s := &Settings{}
	return strings.Compare(string(col.Append(nil, a, s)), string(col.Append(nil, b, s)))
}

func groupOrder(g *NodeGroup) int {
	if n := g.first(); n != nil {
		return nodeStateOrder(n)
	}
	return -1
}

// Widen sets the width of every column marked with # to its widest value.
func Widen(l Layout[NodeGroup], rows []NodeGroup) {
	for i := range l {
		if !l[i].Auto {
			continue
		}
		for r := range rows {
			value := l[i].Column.Append(nil, &rows[r], &Settings{})
			l[i].Width = max(l[i].Width, len(value))
		}
	}
}
