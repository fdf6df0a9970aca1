package placement

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step"
)

// distribute places tasks on the chosen nodes. Each node gets tasks in turn, within its
// capacity. That gives the number of tasks of each node; which tasks they are depends on
// the distribution (srun -m).
func distribute(nodes []Node, chosen []int32, s *step.Shape, tasks, cpusPerTask int32) *Layout {
	capacity := make([]int32, len(chosen))
	for k, i := range chosen {
		capacity[k] = max(nodes[i].CPUs/cpusPerTask, 1)
		if s.TasksPerNode > 0 {
			capacity[k] = s.TasksPerNode
		}
	}
	l := &Layout{Nodes: chosen, Tasks: make([][]uint32, len(chosen)), Count: uint32(tasks)}
	kind, size := parseDistribution(s.Distribution)
	if kind == "arbitrary" && len(s.Hosts) > 0 {
		return arbitrary(nodes, l, s.Hosts)
	}
	if kind == "plane" {
		deal(l, capacity, tasks, size)
		return withoutIdleNodes(l)
	}
	if isPacked(s.Distribution) {
		deal(l, capacity, tasks, tasks) // fill one node after the other
		return withoutIdleNodes(l)
	}
	deal(l, capacity, tasks, 1)
	if kind != "cyclic" {
		next := uint32(0)
		for _, of := range l.Tasks {
			for j := range of {
				of[j] = next
				next++
			}
		}
	}
	return l
}

// isPacked reports whether nodes are to be filled one after the other (-m Pack).
func isPacked(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		if strings.EqualFold(part, "pack") {
			return true
		}
	}
	return false
}

// arbitrary places task i on the node hosts[i], and tasks beyond the list on its
// last node.
func arbitrary(nodes []Node, l *Layout, hosts []string) *Layout {
	at := make(map[string]int, len(l.Nodes))
	for k, i := range l.Nodes {
		at[nodes[i].Name] = k
	}
	for t := range l.Count {
		if k, ok := at[hosts[min(int(t), len(hosts)-1)]]; ok {
			l.Tasks[k] = append(l.Tasks[k], t)
		}
	}
	return withoutIdleNodes(l)
}

// withoutIdleNodes removes nodes that got no task, as happens with large planes.
func withoutIdleNodes(l *Layout) *Layout {
	out := &Layout{Count: l.Count}
	for k, tasks := range l.Tasks {
		if len(tasks) > 0 {
			out.Nodes = append(out.Nodes, l.Nodes[k])
			out.Tasks = append(out.Tasks, tasks)
		}
	}
	return out
}

// deal gives size tasks at a time to each node in turn while it has capacity.
// When no node has any left, it continues without regard to capacity.
func deal(l *Layout, capacity []int32, tasks, size int32) {
	next := int32(0)
	for full := false; next < tasks; {
		moved := false
		for k := range l.Tasks {
			for range size {
				if next < tasks && (full || int32(len(l.Tasks[k])) < capacity[k]) {
					l.Tasks[k] = append(l.Tasks[k], uint32(next))
					next++
					moved = true
				}
			}
		}
		full = full || !moved
	}
}

// parseDistribution returns the distribution over nodes, which is the first part
// of --distribution, and the size of a plane.
func parseDistribution(text string) (kind string, size int32) {
	text, _, _ = strings.Cut(text, ",")
	text, _, _ = strings.Cut(text, ":")
	if n, ok := strings.CutPrefix(text, "plane="); ok {
		size, err := strconv.ParseInt(n, 10, 32)
		if err == nil && size > 0 {
			return "plane", int32(size)
		}
	}
	return strings.ToLower(text), 1
}
