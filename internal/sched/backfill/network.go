package backfill

import (
	"cmp"
	"slices"
	"strings"
)

// network is the tree of switches above the nodes. Leaves are the switches to which nodes
// are connected, numbered so that those below one switch are consecutive.
type network struct {
	leafOf []int32 // of each node
	rank   []int32 // of each node: the order of a job's nodes, leaf after leaf
	// switches are all switches including the leaves, and the root of the tree as the last
	// one; those of a lower level come first.
	switches []subtree
}

// subtree is a switch with the leaves below it: from the first to the one before end. A leaf
// has level 0, another switch one more than the highest of those directly below it.
type subtree struct{ level, first, end int32 }

// newNetwork returns the network of the nodes, or nil if no node has a path.
func newNetwork(nodes []Node, position func(node int) int) *network {
	placed := false
	for i := range nodes {
		placed = placed || len(nodes[i].TopologyPath) > 0
	}
	if !placed {
		return nil
	}
	order := make([]int32, len(nodes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(position(int(a)), position(int(b))) })
	t := newTrieIndex()
	above := make([]*trie, len(nodes)) // the leaf of each node
	for _, i := range order {
		above[i] = t.leaf(nodes[i].TopologyPath)
	}
	n := &network{leafOf: make([]int32, len(nodes)), rank: make([]int32, len(nodes))}
	t.root.number(n)
	slices.SortStableFunc(n.switches, func(a, b subtree) int { return cmp.Compare(a.level, b.level) })
	for i, leaf := range above {
		n.leafOf[i] = leaf.first
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(n.leafOf[a], n.leafOf[b]) })
	for rank, i := range order {
		n.rank[i] = int32(rank)
	}
	return n
}

// trie is a switch while the network is built. The nodes directly below a switch are a
// child of it without children.
type trie struct {
	byName   map[string]*trie
	children []*trie // in the order of their first nodes
	own      *trie
	first    int32 // number of the first leaf
}

// trieIndex is the tree of all paths, with the leaf of the path that was looked up last.
type trieIndex struct {
	root   *trie
	byPath map[string]*trie
	last   []string
	found  *trie
}

func newTrieIndex() *trieIndex { return &trieIndex{root: &trie{}, byPath: map[string]*trie{}} }

// leaf returns the leaf at the end of the path.
func (t *trieIndex) leaf(path []string) *trie {
	if t.found != nil && slices.Equal(path, t.last) {
		return t.found
	}
	key := strings.Join(path, "\x00")
	leaf, known := t.byPath[key]
	if !known {
		leaf = t.root.insert(path)
		t.byPath[key] = leaf
	}
	t.last, t.found = path, leaf
	return leaf
}

// insert adds the switches of the path and returns the leaf.
func (t *trie) insert(path []string) *trie {
	if len(path) == 0 {
		if t.own == nil {
			t.own = &trie{}
			t.children = append(t.children, t.own)
		}
		return t.own
	}
	child, known := t.byName[path[0]]
	if !known {
		child = &trie{}
		if t.byName == nil {
			t.byName = map[string]*trie{}
		}
		t.byName[path[0]] = child
		t.children = append(t.children, child)
	}
	return child.insert(path[1:])
}

// number numbers the leaves below t, adds the switches to n and returns the level of t.
func (t *trie) number(n *network) int32 {
	s := subtree{first: n.leaves()}
	t.first, s.end = s.first, s.first+1
	for _, c := range t.children {
		s.level = max(s.level, c.number(n)+1)
		s.end = n.leaves()
	}
	n.switches = append(n.switches, s)
	return s.level
}

// leaves returns the number of leaves, so far while the network is built: that of the switch
// added last, finally of the root.
func (n *network) leaves() int32 {
	if len(n.switches) == 0 {
		return 0
	}
	return n.switches[len(n.switches)-1].end
}

// groupByLeaf groups the candidates by their leaves, in the order of the groups' first
// candidates.
func (e *engine) groupByLeaf(all []candidate) [][]candidate {
	if e.network == nil {
		return [][]candidate{all}
	}
	var out [][]candidate
	group := make([]int32, e.network.leaves()) // of each leaf; 0: none yet
	for _, c := range all {
		leaf := e.network.leafOf[c.node]
		if group[leaf] == 0 {
			out = append(out, nil)
			group[leaf] = int32(len(out))
		}
		i := group[leaf] - 1
		out[i] = append(out[i], c)
	}
	return out
}

// countLeaves returns the number of leaf switches of the nodes.
func (e *engine) countLeaves(nodes []candidate) int { return len(e.groupByLeaf(nodes)) }

// inRankOrder returns chosen in the order of the job's tasks: by positions, and leaf after
// leaf unless the job requests contiguous nodes. It does not change chosen, and may return it.
func (e *engine) inRankOrder(s *requestShape, chosen []candidate) []candidate {
	if e.network == nil || len(chosen) <= 1 || s.Contiguous {
		return e.inPositionOrder(chosen)
	}
	out := slices.Clone(chosen)
	rank := e.network.rank
	slices.SortFunc(out, func(a, b candidate) int { return cmp.Compare(rank[a.node], rank[b.node]) })
	return out
}
