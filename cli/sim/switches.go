package sim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// switchFigures are the statistics of a replay on a machine with switches.
type switchFigures struct {
	// MeanSwitches is the mean number of leaf switches of the jobs with several nodes.
	MeanSwitches float64 `json:"mean_switches"`
	// MeanLargestBlock is the mean over time of the largest number of free nodes below one
	// leaf switch: the largest job of whole nodes that would get a single switch.
	MeanLargestBlock float64 `json:"mean_largest_block_nodes"`
}

// withoutSwitches returns the machine without its switches.
func withoutSwitches(machine []backfill.Node) []backfill.Node {
	out := slices.Clone(machine)
	for i := range out {
		out[i].TopologyPath = nil
	}
	return out
}

// switchFiguresOf returns the statistics of the jobs that ran, or nil if the machine has no
// switches.
func switchFiguresOf(machine []backfill.Node, done []*ran) *switchFigures {
	leafOf, leaves := leavesOf(machine)
	if leaves < 2 || len(done) == 0 {
		return nil
	}
	f := &switchFigures{MeanLargestBlock: meanLargestBlock(leafOf, leaves, done)}
	jobs, switches := 0, 0
	for _, r := range done {
		if len(r.nodes) < 2 {
			continue
		}
		used := map[int]bool{}
		for _, a := range r.nodes {
			used[leafOf[a.Node]] = true
		}
		jobs, switches = jobs+1, switches+len(used)
	}
	f.MeanSwitches = float64(switches) / float64(max(jobs, 1))
	return f
}

// leavesOf returns the leaf of each node, and the number of leaves.
func leavesOf(machine []backfill.Node) (leafOf []int, leaves int) {
	numbers := map[string]int{}
	for i := range machine {
		path := strings.Join(machine[i].TopologyPath, "\x00")
		number, known := numbers[path]
		if !known {
			number = len(numbers)
			numbers[path] = number
		}
		leafOf = append(leafOf, number)
	}
	return leafOf, len(numbers)
}

// change is the start (1) or end (-1) of a job.
type change struct {
	at    int64
	jobs  int
	nodes []backfill.Assignment
}

// meanLargestBlock returns the mean over time of the largest number of free nodes of a leaf.
func meanLargestBlock(leafOf []int, leaves int, done []*ran) float64 {
	free, jobs := make([]int, leaves), make([]int, len(leafOf))
	for _, leaf := range leafOf {
		free[leaf]++
	}
	changes := make([]change, 0, 2*len(done))
	for _, r := range done {
		changes = append(changes, change{r.start, 1, r.nodes}, change{r.end, -1, r.nodes})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	area := 0.0
	for i, c := range changes {
		for _, a := range c.nodes {
			before := jobs[a.Node]
			jobs[a.Node] += c.jobs
			switch {
			case before == 0:
				free[leafOf[a.Node]]--
			case jobs[a.Node] == 0:
				free[leafOf[a.Node]]++
			}
		}
		if i+1 < len(changes) {
			area += float64(slices.Max(free)) * float64(changes[i+1].at-c.at)
		}
	}
	return area / float64(max(1, changes[len(changes)-1].at-changes[0].at))
}
