package backfill

import (
	"cmp"
	"math"
	"slices"
)

// mayUseLeaves reports whether the leaf switches of the job's nodes matter: it may get
// several nodes, and there is a network.
func (e *engine) mayUseLeaves(s *requestShape) bool {
	return e.network != nil && (s.leastNodes > 1 || s.MaxNodes > 1 || s.MaxNodes == 0 && (s.Tasks > 1 || s.SpreadJob))
}

// leafLimit returns the maximum number of leaf switches of the job's nodes.
func (e *engine) leafLimit(j *Job, in interval) int {
	if e.network == nil || j.Switches <= 0 || j.SwitchesUntil > 0 && in.start >= j.SwitchesUntil {
		return math.MaxInt
	}
	return j.Switches
}

// pickByTopology returns nodes of as few leaf switches as possible, and at most limit, or
// nil. Of equally few leaves it prefers those below the lowest common switch, and then those
// with the fewest free nodes, so that large blocks of free nodes are left for large jobs.
func (e *engine) pickByTopology(s *requestShape, all []candidate, limit int) []candidate {
	most := s.pick(all)
	if len(most) <= 1 {
		return most
	}
	if s.UseMinNodes || s.MaxNodes <= s.leastNodes && !s.SpreadJob {
		return e.pickLeaves(&s.Job, all, limit)
	}
	for n := len(most); n >= s.leastNodes; n-- { // as many nodes as possible
		only := s.Job
		only.MinNodes, only.MaxNodes = n, n
		if p := e.pickLeaves(&only, all, limit); p != nil {
			return p
		}
	}
	return nil
}

// pickCountsByTopology returns nodes for a job with ConstraintCounts, or nil. If the leaves are
// limited, they are below the lowest switch that has enough.
func (e *engine) pickCountsByTopology(s *requestShape, all []candidate, limit int) []candidate {
	if limit == math.MaxInt {
		return s.pickConstraintCounts(all)
	}
	for _, w := range e.network.switches {
		below := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool {
			leaf := e.network.leafOf[c.node]
			return leaf < w.first || leaf >= w.end
		})
		if len(below) < s.leastNodes {
			continue
		}
		if p := s.pickConstraintCounts(below); p != nil && e.countLeaves(p) <= limit {
			return p
		}
	}
	return nil
}

// leaf is a leaf switch with the candidates there.
type leaf struct {
	number   int32
	nodes    []candidate
	tasks    int // that the nodes can run, as far as the job's number of nodes allows
	required bool
}

// leafSet is a set of leaves to choose from, and the minimum that the chosen ones must have
// together.
type leafSet struct {
	*engine
	job          *Job
	leaves       []leaf // those with required nodes first, then by decreasing size
	required     int    // leaves with required nodes
	nodes, tasks int
}

// pickLeaves returns nodes of the fewest leaves, and at most limit, or nil.
func (e *engine) pickLeaves(j *Job, all []candidate, limit int) []candidate {
	x := e.leafSetOf(j, all)
	fewest := x.leastLeaves()
	if fewest > limit {
		return nil
	}
	if p := x.pickBest(fewest); p != nil {
		return p
	}
	// Nodes differ in the tasks that they can run, so the sums decide too little.
	enough := x.enoughLeaves(fewest + 1)
	for n := fewest; n < enough && n <= limit; n++ {
		if p := x.pickExhaustively(n); p != nil {
			return p
		}
	}
	if enough > limit {
		return nil
	}
	return x.pickBest(enough)
}

// leafSetOf returns the leaves of the candidates.
func (e *engine) leafSetOf(j *Job, all []candidate) *leafSet {
	x := &leafSet{engine: e, job: j, nodes: j.fewestNodes()}
	if j.Tasks > 0 && !j.ExactPerNode {
		x.tasks = j.Tasks
	}
	for _, group := range e.groupByLeaf(all) {
		l := leaf{number: e.network.leafOf[group[0].node], nodes: group}
		l.tasks = totalTasks(group)
		if j.MaxNodes > 0 && j.MaxNodes < len(group) {
			l.tasks = totalTasks(byCapacity(group, 0)[:j.MaxNodes])
		}
		l.required = slices.ContainsFunc(group, func(c candidate) bool { return slices.Contains(j.Required, c.node) })
		if l.required {
			x.required++
		}
		x.leaves = append(x.leaves, l)
	}
	slices.SortStableFunc(x.leaves, func(a, b leaf) int {
		if a.required != b.required {
			if a.required {
				return -1
			}
			return 1
		}
		if x.tasks > x.nodes {
			return cmp.Or(cmp.Compare(b.tasks, a.tasks), cmp.Compare(len(b.nodes), len(a.nodes)))
		}
		return cmp.Or(cmp.Compare(len(b.nodes), len(a.nodes)), cmp.Compare(b.tasks, a.tasks))
	})
	return x
}

// suffices reports whether leaves with these sums may be enough.
func (x *leafSet) suffices(nodes, tasks int) bool { return nodes >= x.nodes && tasks >= x.tasks }

// leastLeaves returns a number of leaves of which no smaller one is enough.
func (x *leafSet) leastLeaves() int {
	least := max(1, x.required)
	for _, size := range []struct {
		of   func(*leaf) int
		want int
	}{{func(l *leaf) int { return len(l.nodes) }, x.nodes}, {func(l *leaf) int { return l.tasks }, x.tasks}} {
		sum, sizes := 0, make([]int, 0, len(x.leaves))
		for i := range x.leaves {
			if x.leaves[i].required {
				sum += size.of(&x.leaves[i])
			} else {
				sizes = append(sizes, size.of(&x.leaves[i]))
			}
		}
		slices.SortFunc(sizes, func(a, b int) int { return cmp.Compare(b, a) })
		n := x.required
		for ; sum < size.want && n-x.required < len(sizes); n++ {
			sum += sizes[n-x.required]
		}
		least = max(least, n)
	}
	return min(least, len(x.leaves))
}

// enoughLeaves returns the smallest number of the first leaves, at least from, that is
// enough. All leaves together are.
func (x *leafSet) enoughLeaves(from int) int {
	lo, hi := from, len(x.leaves)
	for lo < hi {
		mid := (lo + hi) / 2
		if x.job.pick(nodesOf(x.leaves[:mid])) != nil {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return hi
}

// pickBest returns nodes of n leaves below the lowest switch that has such leaves, or nil if
// it finds none.
func (x *leafSet) pickBest(n int) []candidate {
	var best []leaf
	level, size := int32(0), 0
	for _, s := range x.network.switches {
		if best != nil && s.level > level {
			if p := x.pickFrom(best, n); p != nil {
				return p
			}
			best = nil
		}
		below, free := x.below(s)
		if (best == nil || free < size) && x.firstSuffice(below, n) {
			best, level, size = below, s.level, free
		}
	}
	if best == nil {
		return nil
	}
	return x.pickFrom(best, n)
}

// below returns the leaves below the switch, and the number of their nodes; none if one
// with a required node is elsewhere.
func (x *leafSet) below(s subtree) (leaves []leaf, free int) {
	required := 0
	for i := range x.leaves {
		l := &x.leaves[i]
		if l.number < s.first || l.number >= s.end {
			continue
		}
		if l.required {
			required++
		}
		leaves, free = append(leaves, *l), free+len(l.nodes)
	}
	if required < x.required {
		return nil, 0
	}
	return leaves, free
}

// firstSuffice reports whether the first n of the leaves may be enough.
func (x *leafSet) firstSuffice(leaves []leaf, n int) bool {
	if len(leaves) < n {
		return false
	}
	return x.suffices(sums(leaves[:n]))
}

// sums returns the number of nodes of the leaves, and of the tasks that they can run.
func sums(leaves []leaf) (nodes, tasks int) {
	for i := range leaves {
		nodes, tasks = nodes+len(leaves[i].nodes), tasks+leaves[i].tasks
	}
	return nodes, tasks
}

// pickFrom returns nodes of n of the leaves, or nil: of the smallest that are enough or, if
// the job does not fit there, of the first.
func (x *leafSet) pickFrom(leaves []leaf, n int) []candidate {
	if p := x.job.pick(nodesOf(x.smallest(leaves, n))); p != nil {
		return p
	}
	return x.job.pick(nodesOf(slices.Clone(leaves[:n])))
}

// smallest returns n of the leaves that may be enough, with few nodes in excess: it replaces
// each of the first n, from the smallest on, by the smallest other one that still leaves
// enough.
func (x *leafSet) smallest(leaves []leaf, n int) []leaf {
	chosen, rest := slices.Clone(leaves[:n]), slices.Clone(leaves[n:])
	slices.SortStableFunc(rest, bySize)
	nodes, tasks := sums(chosen)
	for i := n - 1; i >= 0 && !chosen[i].required; i-- {
		nodes, tasks = nodes-len(chosen[i].nodes), tasks-chosen[i].tasks
		k := slices.IndexFunc(rest, func(l leaf) bool {
			return len(l.nodes) < len(chosen[i].nodes) && x.suffices(nodes+len(l.nodes), tasks+l.tasks)
		})
		if k >= 0 {
			chosen[i], rest[k] = rest[k], chosen[i]
			slices.SortStableFunc(rest, bySize)
		}
		nodes, tasks = nodes+len(chosen[i].nodes), tasks+chosen[i].tasks
	}
	return chosen
}

// bySize orders leaves by the number of their nodes.
func bySize(a, b leaf) int { return cmp.Compare(len(a.nodes), len(b.nodes)) }

// nodesOf returns the candidates of the leaves, those of the fullest leaf first.
func nodesOf(leaves []leaf) []candidate {
	if len(leaves) == 1 {
		return leaves[0].nodes
	}
	leaves = slices.Clone(leaves)
	slices.SortStableFunc(leaves, bySize)
	var out []candidate
	for i := range leaves {
		out = append(out, leaves[i].nodes...)
	}
	return out
}

// maxLeafSets limits how many sets of leaves pickExhaustively tries.
const maxLeafSets = 512

// pickExhaustively tries all sets of n leaves and returns nodes of the one with the fewest
// free nodes on which the job fits; nil: there is none, or there are too many sets.
func (x *leafSet) pickExhaustively(n int) []candidate {
	if combinations(len(x.leaves)-x.required, n-x.required) > maxLeafSets {
		return nil
	}
	var best []candidate
	size := 0
	set := slices.Clone(x.leaves[:x.required])
	var extend func(from int)
	extend = func(from int) {
		if len(set) == n {
			nodes, tasks := sums(set)
			if (best == nil || nodes < size) && x.suffices(nodes, tasks) {
				if p := x.job.pick(nodesOf(set)); p != nil {
					best, size = p, nodes
				}
			}
			return
		}
		for i := from; i < len(x.leaves); i++ {
			set = append(set, x.leaves[i])
			extend(i + 1)
			set = set[:len(set)-1]
		}
	}
	extend(x.required)
	return best
}

// combinations returns in how many ways k of n can be chosen, or a number above maxLeafSets.
func combinations(n, k int) int {
	out := 1
	for i := range min(k, n-k) {
		if out = out * (n - i) / (i + 1); out > maxLeafSets {
			break
		}
	}
	return out
}
