package backfill

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// below returns nodes with the paths, each of which is the names of switches with dots
// between them, and a number of nodes: "top.s0*2 top.s1*3".
func below(cpus int, paths string) []Node {
	var leaves []string
	for word := range strings.FieldsSeq(paths) {
		path, count, found := strings.Cut(word, "*")
		if !found {
			count = "1"
		}
		for range int(count[0] - '0') {
			leaves = append(leaves, path)
		}
	}
	all := nodes(len(leaves), cpus)
	for i, path := range leaves {
		if path != "-" {
			all[i].TopologyPath = strings.Split(path, ".")
		}
	}
	return all
}

// TestFewestLeaves checks which leaves jobs get: as few as possible, below the lowest
// common switch, and of these the ones with the fewest free nodes.
func TestFewestLeaves(t *testing.T) {
	whole := func(n int) []Job { return []Job{{MinNodes: n, MaxNodes: n, CPUsPerTask: 1}} }
	for _, c := range []struct {
		name, paths string
		jobs        []Job
		want        string
	}{
		{"the smallest leaf that is enough", "t.a*4 t.b*2 t.c*3", whole(2), "now n5:1/1 n6:1/1"},
		{"the smallest of three", "t.a*4 t.b*2 t.c*3", whole(3), "now n7:1/1 n8:1/1 n9:1/1"},
		{"two leaves without rest", "t.a*4 t.b*2 t.c*3", whole(5), "now n5:1/1 n6:1/1 n7:1/1 n8:1/1 n9:1/1"},
		{"the fullest leaf entirely, the rest of the other", "t.a*4 t.b*1 t.c*3", whole(6), "now n1:1/1 n2:1/1 n3:1/1 n6:1/1 n7:1/1 n8:1/1"},
		{"two leaves of one switch", "x.a*2 y.b*2 y.c*2", whole(4), "now n3:1/1 n4:1/1 n5:1/1 n6:1/1"},
		{"the smaller switch", "x.a*2 x.b*2 x.c*2 y.d*2 y.e*2", whole(4), "now n7:1/1 n8:1/1 n9:1/1 n10:1/1"},
		{"two leaves far apart rather than three near", "x.a x.b x.c y.d*2 z.e*2", whole(3), "now n1:1/1 n4:1/1 n5:1/1"},
		{"nodes without a switch are one leaf", "- t.a - t.b", whole(2), "now n1:1/1 n3:1/1"},
		{"paths of unequal lengths", "t*2 t.a.b t.a.c*2", whole(2), "now n1:1/1 n2:1/1"},
		{"the leaf of a required node", "t.a*2 t.b*2", []Job{{MinNodes: 2, MaxNodes: 2, Required: []int{3}}}, "now n3:1/1 n4:1/1"},
		{"the leaves of two required nodes", "t.a*3 t.b*1 t.c*2", []Job{{MinNodes: 3, MaxNodes: 3, Required: []int{3, 4}}}, "now n4:1/1 n5:1/1 n6:1/1"},
		{"rank order follows the tree", "t.a t.b t.a t.b", whole(4), "now n1:1/1 n3:1/1 n2:1/1 n4:1/1"},
		{"rank order follows the upper switches", "x.a y.b x.c y.d", whole(4), "now n1:1/1 n3:1/1 n2:1/1 n4:1/1"},
		{"as many nodes of a range as possible", "t.a*2 t.b*3", []Job{{MinNodes: 2, MaxNodes: 4}}, "now n1:1/1 n2:1/1 n3:1/1 n4:1/1"},
		{"a range within one switch", "t.a*2 t.b*3", []Job{{MinNodes: 2, MaxNodes: 4, Switches: 1}}, "now n3:1/1 n4:1/1 n5:1/1"},
		{"tasks alone", "t.a*1 t.b*2 t.c*3", []Job{{Tasks: 8}}, "now n2:4/4 n3:4/4"},
		{"tasks of one node", "t.a*1 t.b*2", []Job{{Tasks: 4}}, "now n1:4/4"},
		{"no such switch yet", "t.a*2 t.b*2", []Job{{MinNodes: 3, Switches: 1}}, "never (BadConstraints)"},
		{"parts within one switch", "t.a*2 t.b*2", []Job{{MinNodes: 2, Switches: 1, ConstraintCounts: []ConstraintCount{{set(0, 2), 1}, {set(1, 3), 1}}}}, "now n1:1/1 n2:1/1"},
		{"parts that share no switch", "t.a*2 t.b*2", []Job{{MinNodes: 2, Switches: 1, ConstraintCounts: []ConstraintCount{{set(0), 1}, {set(3), 1}}}}, "never (BadConstraints)"},
		{"segments of blocks", "a*3 b*2", []Job{{MinNodes: 4, Segment: 2}}, "now n1:1/1 n2:1/1 n4:1/1 n5:1/1"},
		{"segments that need more leaves than allowed", "a*3 b*2", []Job{{MinNodes: 4, Segment: 2, Switches: 1}}, "never (BadConstraints)"},
	} {
		checkPlan(t, c.name, Snapshot{Nodes: below(4, c.paths), Pending: c.jobs}, c.want)
	}
}

// TestUnequalNodes: the sums of tasks mislead where nodes differ and their number is
// limited, so all sets of leaves are tried.
func TestUnequalNodes(t *testing.T) {
	s := Snapshot{Nodes: below(1, "t.a*3 t.b*2 t.c*2 t.d*1")}
	for i, cpus := range []int{2, 2, 2, 4, 1, 4, 1, 4} {
		s.Nodes[i].CPUs = cpus
	}
	s.Pending = []Job{{Tasks: 12, MinNodes: 3, MaxNodes: 3}}
	checkPlan(t, "b, c and d", s, "now n4:4/4 n6:4/4 n8:4/4")
}

// drawTree returns nodes of several sizes below a random tree.
func drawTree(t *rapid.T) []Node {
	leaves := []string{"x.a", "x.b", "y.c", "y.d", "z", "-"}[:rapid.IntRange(2, 6).Draw(t, "leaves")]
	var paths []string
	for range rapid.IntRange(2, 9).Draw(t, "nodes") {
		paths = append(paths, rapid.SampledFrom(leaves).Draw(t, "leaf"))
	}
	all := below(1, strings.Join(paths, " "))
	for i := range all {
		all[i].CPUs = rapid.SampledFrom([]int{1, 1, 2, 4}).Draw(t, "size")
		all[i].Unavailable = rapid.IntRange(0, 5).Draw(t, "down") == 0
	}
	return all
}

// drawTreeJob returns a job that may use several nodes.
func drawTreeJob(t *rapid.T, nodes int) Job {
	j := Job{ID: 1, Duration: 10, MinNodes: rapid.IntRange(1, nodes).Draw(t, "min"), CPUsPerTask: rapid.IntRange(1, 2).Draw(t, "cpus")}
	switch rapid.IntRange(0, 4).Draw(t, "shape") {
	case 0:
		j.MaxNodes = j.MinNodes
	case 1:
		j.MaxNodes = j.MinNodes + rapid.IntRange(0, 2).Draw(t, "more")
		j.Tasks = rapid.IntRange(1, 10).Draw(t, "tasks")
	case 2:
		j.Tasks = rapid.IntRange(1, 10).Draw(t, "tasks")
	case 3:
		j.MaxNodes, j.TasksPerNode, j.ExactPerNode = j.MinNodes, rapid.IntRange(1, 2).Draw(t, "each"), true
	}
	if rapid.IntRange(0, 3).Draw(t, "requires") == 0 {
		j.Required = []int{rapid.IntRange(0, nodes-1).Draw(t, "required")}
	}
	j.Switches = rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "switches")
	return j
}

// startOn returns the decision about the job on some of the nodes, without a network.
func startOn(all []Node, j Job, allowed *NodeSet) Decision {
	s := Snapshot{Nodes: slices.Clone(all)}
	for i := range s.Nodes {
		s.Nodes[i].TopologyPath = nil
		s.Nodes[i].Unavailable = s.Nodes[i].Unavailable || !allowed.Has(i)
	}
	j.Switches = 0
	s.Pending = []Job{j}
	return s.Plan().Decisions[0]
}

// leastLeaves returns the smallest number of leaves on whose nodes the job can start, by
// trying all sets; 0: there is none.
func leastLeaves(all []Node, j Job) int {
	members := map[string]*NodeSet{}
	for i := range all {
		path := strings.Join(all[i].TopologyPath, ".")
		if members[path] == nil {
			members[path] = &NodeSet{}
		}
		members[path].Add(i)
	}
	var leaves []*NodeSet
	for _, m := range members {
		leaves = append(leaves, m)
	}
	least := 0
	for subset := uint(1); subset < 1<<len(leaves); subset++ {
		size := bits.OnesCount(subset)
		if least > 0 && size >= least {
			continue
		}
		allowed := &NodeSet{}
		for k, leaf := range leaves {
			for i := range all {
				if subset>>k&1 == 1 && leaf.Has(i) {
					allowed.Add(i)
				}
			}
		}
		if startOn(all, j, allowed).StartNow {
			least = size
		}
	}
	return least
}

// A job that starts now gets the fewest leaf switches with which it can start, and with as
// many nodes as without switches if it requests a range. It starts whenever it could
// without switches, unless it limits them.
func TestNoMoreLeavesThanNecessary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawTree(t)
		j := drawTreeJob(t, len(all))
		everywhere := &NodeSet{}
		for i := range all {
			everywhere.Add(i)
		}
		anywhere := startOn(all, j, everywhere)
		s := Snapshot{Nodes: all, Pending: []Job{j}}
		d := s.Plan().Decisions[0]
		if d.StartNow && !anywhere.StartNow || j.Switches == 0 && anywhere.StartNow && !d.StartNow {
			t.Fatalf("starts: %v, without switches: %v", d.StartNow, anywhere.StartNow)
		}
		isRange := j.MaxNodes > j.MinNodes
		if d.StartNow && j.Switches == 0 && isRange && len(d.Nodes) != len(anywhere.Nodes) {
			t.Fatalf("%d nodes, without switches %d", len(d.Nodes), len(anywhere.Nodes))
		}
		fixed := j
		if d.StartNow && isRange {
			fixed.MinNodes, fixed.MaxNodes = len(d.Nodes), len(d.Nodes)
		}
		least := leastLeaves(all, fixed)
		if !d.StartNow {
			if least > 0 && least <= j.Switches {
				t.Fatalf("does not start, although %d leaves are enough", least)
			}
			return
		}
		used := map[string]bool{}
		for _, a := range d.Nodes {
			used[strings.Join(all[a.Node].TopologyPath, ".")] = true
		}
		if len(d.Nodes) > 1 && len(used) > least {
			t.Fatalf("%d leaves, %d are enough: %s", len(used), least, show(&s, d))
		}
		if j.Switches > 0 && len(used) > j.Switches {
			t.Fatalf("%d leaves, the job allows %d", len(used), j.Switches)
		}
	})
}

// BenchmarkGangOnSwitches measures how long it takes to place a job of 1,000 nodes on a
// machine of 5,000 with leaves of 40, half of which are free.
func BenchmarkGangOnSwitches(b *testing.B) {
	s := &Snapshot{Nodes: nodes(5000, 4), Policy: DefaultPolicy()}
	for i := range s.Nodes {
		s.Nodes[i].TopologyPath = []string{"top", fmt.Sprint("spine", i/1000), fmt.Sprint("leaf", i/40)}
		if i%2 == 0 {
			s.Running = append(s.Running, Running{ID: int64(10 + i), End: 1 << 40, Allocation: []NodeAllocation{held(i, 0, 4)}})
		}
	}
	q := NewQueue(s)
	q.Decide(0)
	for b.Loop() {
		q.Submit(&Job{ID: 1, Duration: 3600, MinNodes: 1000, MaxNodes: 1000, CPUsPerTask: 4})
		if d := q.Decide(1); len(d) != 1 || len(d[0].Nodes) != 1000 {
			b.Fatal("not started")
		}
		q.Withdraw(1)
	}
}
