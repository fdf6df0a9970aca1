package format

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// NodeGroup is one line of sinfo: nodes of a partition that have the same values in
// the shown columns. Nodes may be empty (an empty partition); Partition is nil for
// nodes without a partition.
type NodeGroup struct {
	Partition *status.Partition
	Nodes     []*status.Node
}

// grouping is the role of a column of sinfo in the grouping of nodes.
type grouping int

const (
	aggregate   grouping = iota // a sum over the group
	byPartition                 // a property of the partition
	byNode                      // nodes that differ in it are on different lines
	ranged                      // like byNode with --exact, otherwise a range of values
)

// NodeColumn is a column of sinfo.
type NodeColumn struct {
	Column[NodeGroup]
	group grouping
}

// nodeGrouping returns the grouping of a column.
func nodeGrouping(c *Column[NodeGroup]) grouping {
	for i := range nodeColumns() {
		if nodeColumns()[i].Letter == c.Letter && nodeColumns()[i].Name == c.Name {
			return nodeColumns()[i].group
		}
	}
	return aggregate
}

// GroupNodes returns the lines of sinfo for a layout. exact separates nodes that
// differ in any column; single puts every node on its own line. Nodes without a
// listed partition are omitted if the layout shows partitions.
func GroupNodes(l Layout[NodeGroup], parts []status.Partition, nodes []status.Node, exact, single bool) []NodeGroup {
	var keys []*Column[NodeGroup]
	perPartition := single
	for i := range l {
		if l[i].Column == nil {
			continue
		}
		switch g := nodeGrouping(l[i].Column); {
		case g == byPartition:
			perPartition = true
		case g == byNode, g == ranged && exact:
			keys = append(keys, l[i].Column)
		}
	}
	if !perPartition {
		return groupsOf(nil, memberNodes(parts, nodes), keys, single)
	}
	var out []NodeGroup
	for i := range parts {
		groups := groupsOf(&parts[i], memberNodes(parts[i:i+1], nodes), keys, single)
		if len(groups) == 0 && !single && (len(l) == 0 || namesPartition(l)) {
			groups = []NodeGroup{{Partition: &parts[i]}}
		}
		out = append(out, groups...)
	}
	if single || namesPartition(l) {
		return out
	}
	return mergeAlike(l, out, keys)
}

// namesPartition reports whether a column shows the names of partitions.
func namesPartition(l Layout[NodeGroup]) bool {
	return slices.ContainsFunc(l, func(c Cell[NodeGroup]) bool {
		return c.Column != nil && c.Column.Header == "PARTITION"
	})
}

// mergeAlike merges the lines of several partitions that have the same values.
func mergeAlike(l Layout[NodeGroup], rows []NodeGroup, keys []*Column[NodeGroup]) []NodeGroup {
	for i := range l {
		if c := l[i].Column; c != nil && nodeGrouping(c) == byPartition {
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

// memberNodes returns the nodes that are in one of the partitions.
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

// names returns the folded list of the group's nodes.
func (g *NodeGroup) names() string {
	names := make([]string, len(g.Nodes))
	for i, n := range g.Nodes {
		names[i] = n.Name
	}
	return hostlist.FoldSorted(names)
}

// first returns a node that represents the group, or nil.
func (g *NodeGroup) first() *status.Node {
	if len(g.Nodes) == 0 {
		return nil
	}
	return g.Nodes[0]
}

// counts returns the numbers of nodes allocated, idle and in other states.
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

// cpus returns the numbers of CPUs allocated, idle, in other states, and in total.
func (g *NodeGroup) cpus() (alloc, idle, other, total int64) {
	for _, n := range g.Nodes {
		used, all := int64(n.CPUsAlloc), int64(n.CPUs)
		alloc += used
		total += all
		if n.State == "DOWN" || n.State == "UNKNOWN" || hasFlag(n, flagDrain) {
			other += all - used
		} else {
			idle += all - used
		}
	}
	return alloc, idle, other, total
}

// SortNodeGroups sorts lines by an order of sinfo -S. "#P" is the original order of
// partitions. Without an order, and where it leaves lines equal, they are in the order of
// their first nodes, as in Slurm, where a thread for each partition adds them, or as they were if
// each has a single node.
func SortNodeGroups(rows []NodeGroup, order string, single bool) {
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
	if !single {
		slices.SortStableFunc(rows, func(a, b NodeGroup) int { return compareFirstNodes(&a, &b) })
	}
	slices.SortStableFunc(rows, func(a, b NodeGroup) int {
		for _, k := range keys {
			c := 0
			switch {
			case k.letter == 'P' && k.given:
				c = place[a.Partition] - place[b.Partition]
			case k.letter == 'N' && len(a.Nodes)+len(b.Nodes) == 0: // as in Slurm, backwards
				c = place[b.Partition] - place[a.Partition]
			default:
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

// compareFirstNodes compares the names of the first nodes. Lines without nodes are first.
func compareFirstNodes(a, b *NodeGroup) int {
	x, y := a.first(), b.first()
	switch {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return -1
	case y == nil:
		return 1
	}
	return hostlist.Compare(x.Name, y.Name)
}

// unsorted are the columns that are no keys of an order.
const unsorted = "CG"

func compareGroups(a, b *NodeGroup, letter byte) int {
	switch letter {
	case 't', 'T':
		return groupOrder(a) - groupOrder(b)
	case 'N':
		return compareFirstNodes(a, b)
	case 'D':
		return len(a.Nodes) - len(b.Nodes)
	}
	col := findColumn(NodeColumns(), func(c *Column[NodeGroup]) bool { return c.Letter == letter })
	if col == nil || strings.IndexByte(unsorted, letter) >= 0 {
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

// Widen sets the width of every column with # to that of its widest value.
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
