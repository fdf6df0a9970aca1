// Package placement decides how the tasks of a step are distributed over the
// nodes of its job, by the rules of Slurm 22.05. It is a function of the nodes
// and the requested shape; the coordinator (internal/agent/coord) reserves what
// it returns.
package placement

import (
	"fmt"

	"github.com/berth-hpc/berth/internal/step"
)

// Node is a node of the job on which tasks can be placed.
type Node struct {
	Name string
	CPUs int32 // allocated to the job
	Busy int32 // CPUs that other steps have reserved
	// Memory is allocated to the job, in MiB (0: unknown). BusyMemory is what
	// other steps have reserved of it.
	Memory, BusyMemory int64
}

// cpusWithMemory returns how many of the wanted CPUs the node has memory for.
func (n *Node) cpusWithMemory(s *step.Shape, want int32, ignoreBusy bool) int32 {
	free := n.Memory
	if !ignoreBusy {
		free -= n.BusyMemory
	}
	switch {
	case n.Memory == 0:
	case s.MemPerCPU > 0:
		return int32(min(int64(want), max(free, 0)/s.MemPerCPU))
	case s.MemPerNode > free:
		return 0
	}
	return want
}

// Layout has the tasks of each node.
type Layout struct {
	Nodes []int32    // indexes of the job's nodes, ascending
	Tasks [][]uint32 // the global numbers of each node's tasks, ascending
	Count uint32     // tasks in all
}

// PerNode returns the number of tasks of each node.
func (l *Layout) PerNode() []int32 {
	n := make([]int32, len(l.Tasks))
	for i, t := range l.Tasks {
		n[i] = int32(len(t))
	}
	return n
}

// TaskNode returns, for each task, the position of its node in Nodes.
func (l *Layout) TaskNode() []int32 {
	of := make([]int32, l.Count)
	for i, tasks := range l.Tasks {
		for _, t := range tasks {
			of[t] = int32(i)
		}
	}
	return of
}

// MaxTasks is the maximum number of tasks of a step. It protects against
// requests that would only use up memory.
const MaxTasks = 1 << 18

// Reasons for which a step is refused or waits, in the words of Slurm.
const (
	ReasonProcessors = "More processors requested than permitted"
	ReasonNodes      = "Requested node configuration is not available"
	ReasonBusy       = "Requested nodes are busy"
	ReasonMemory     = "Memory required by task is not available"
)

// Refuse returns the error of a step that cannot be created for the given
// reason.
func Refuse(jobID int64, reason string) error {
	return step.Refuse(fmt.Sprintf("Unable to create step for job %d: %s", jobID, reason))
}

// Plan places the tasks of a step on nodes of its job. wait is true, and l nil, if the
// step fits the job, but not what other steps have left free; that cannot happen with
// overlap (srun --overlap). exact lets the step share nodes with other steps. The error
// is a *step.RefusedError.
func Plan(jobID int64, nodes []Node, s *step.Shape, exact, overlap bool) (l *Layout, wait bool, err error) {
	if s.Tasks > MaxTasks || s.TasksPerNode > MaxTasks || s.Nodes > MaxTasks {
		return nil, false, Refuse(jobID, ReasonProcessors)
	}
	allowed, err := candidates(jobID, nodes, s)
	if err != nil {
		return nil, false, err
	}
	want := wantedNodes(s, len(nodes))
	tasks := wantedTasks(s, want)
	if first := int(s.Relative) - 1; first > 0 && first+int(want) > len(nodes) {
		return nil, false, refuseRelative(s, first, want, len(nodes))
	}
	if int(want) > len(allowed) {
		return nil, false, refuseTooFewNodes(len(allowed), want, len(s.Exclude) > 0)
	}
	if tasks > MaxTasks {
		return nil, false, Refuse(jobID, ReasonProcessors)
	}
	cpusPerTask := max(s.CPUsPerTask, 1)
	if s.CPUsPerTask > 0 && s.Tasks == 0 && s.TasksPerNode == 0 && !s.Overcommit {
		tasks = max(tasks, tasksThatFill(nodes, allowed, s, want))
	}
	request := selection{shape: s, nodes: want, cpus: tasks * int64(cpusPerTask), exact: exact, ignoreBusy: overlap}
	chosen := request.choose(nodes, allowed)
	if chosen != nil {
		return distribute(nodes, chosen, s, int32(tasks), cpusPerTask), false, nil
	}
	request.ignoreBusy = true
	if overlap || request.choose(nodes, allowed) == nil {
		return nil, false, Refuse(jobID, request.missing(nodes, allowed))
	}
	return nil, true, nil
}

// refuseRelative returns the error of a step that would extend past the job's last node.
func refuseRelative(s *step.Shape, first int, want int32, have int) error {
	option := "SLURM_JOB_NUM_NODES"
	if s.NodesGiven {
		option = "--nodes"
	}
	return step.Refuse(fmt.Sprintf(
		"--relative and %s option incompatible with count of allocated nodes (%d+%d>%d)", option, first, want, have))
}

// refuseTooFewNodes returns the error of a step that requests more nodes than it may use.
func refuseTooFewNodes(have int, want int32, excluded bool) error {
	if excluded && have == 0 {
		return step.Refuse("Hostlist is empty!  Can't run job.")
	}
	line := fmt.Sprintf("Only allocated %d nodes asked for %d", have, want)
	if excluded {
		return step.Refuse(line, "Are required nodes explicitly excluded?")
	}
	return step.Refuse(line)
}

// wantedNodes returns the number of nodes of the step: the requested number, or
// all nodes that the job has.
func wantedNodes(s *step.Shape, have int) int32 {
	want := s.Nodes
	if want == 0 {
		want = int32(have)
		if s.MaxNodes > 0 {
			want = min(want, s.MaxNodes)
		}
	} else if s.MaxNodes > want {
		want = max(want, min(s.MaxNodes, int32(have)))
	}
	if s.Tasks > 0 {
		want = min(want, s.Tasks)
	}
	return want
}

// wantedTasks returns the number of tasks of a step on the given number of
// nodes.
func wantedTasks(s *step.Shape, nodes int32) int64 {
	if s.Tasks > 0 {
		return int64(s.Tasks)
	}
	return int64(nodes) * int64(max(s.TasksPerNode, 1))
}

// tasksThatFill returns how many tasks of the step fill the CPUs of the job on its
// nodes. As many run if --cpus-per-task is given and no number of tasks.
func tasksThatFill(nodes []Node, allowed []int32, s *step.Shape, want int32) (tasks int64) {
	shape := *s
	shape.MemPerCPU, shape.MemPerNode = 0, 0
	r := selection{shape: &shape, nodes: want, cpus: int64(want) * int64(s.CPUsPerTask), exact: true, ignoreBusy: true}
	for _, i := range r.choose(nodes, allowed) {
		tasks += int64(nodes[i].CPUs / s.CPUsPerTask)
	}
	return tasks
}

// candidates returns the indexes of the nodes that the step may use.
func candidates(jobID int64, nodes []Node, s *step.Shape) ([]int32, error) {
	known := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		known[n.Name] = true
	}
	excluded := make(map[string]bool, len(s.Exclude))
	for _, name := range s.Exclude {
		excluded[name] = true
	}
	for _, name := range s.NodeList {
		if !known[name] || excluded[name] {
			return nil, Refuse(jobID, ReasonNodes)
		}
	}
	var allowed []int32
	for i, n := range nodes {
		if !excluded[n.Name] && int32(i) >= s.Relative-1 {
			allowed = append(allowed, int32(i))
		}
	}
	return allowed, nil
}

// selection is a request for nodes with enough CPUs and memory.
type selection struct {
	shape      *step.Shape
	nodes      int32 // wanted
	cpus       int64 // wanted on these nodes in all
	exact      bool  // nodes that other steps use in part may be chosen as well
	ignoreBusy bool  // what other steps have reserved counts as free
}

// choose returns the chosen nodes in the order of allowed, or nil if the request
// cannot be met. The nodes of the shape's node list come first, then those with
// free CPUs.
func (r *selection) choose(nodes []Node, allowed []int32) []int32 {
	required := make(map[string]bool, len(r.shape.NodeList))
	for _, n := range r.shape.NodeList {
		required[n] = true
	}
	chosen := make(map[int32]bool, r.nodes)
	total := int64(0)
	for _, i := range allowed {
		if !required[nodes[i].Name] {
			continue
		}
		free := r.free(&nodes[i])
		if free <= 0 {
			return nil
		}
		chosen[i] = true
		total += int64(free)
	}
	for _, i := range allowed {
		if free := r.free(&nodes[i]); int32(len(chosen)) < r.nodes && !chosen[i] && free > 0 {
			chosen[i] = true
			total += int64(free)
		}
	}
	if int32(len(chosen)) < r.nodes || (total < r.cpus && !r.shape.Overcommit) {
		return nil
	}
	var list []int32
	for _, i := range allowed {
		if chosen[i] {
			list = append(list, i)
		}
	}
	return list
}

// free returns the number of CPUs of a node that the step could have.
func (r *selection) free(n *Node) int32 {
	switch {
	case r.ignoreBusy:
		return n.cpusWithMemory(r.shape, n.CPUs, true)
	case !r.exact && n.Busy > 0:
		return 0
	}
	return n.cpusWithMemory(r.shape, n.CPUs-n.Busy, false)
}

// missing returns the reason why not even the idle job could meet the request.
func (r *selection) missing(nodes []Node, allowed []int32) string {
	shape := *r.shape
	shape.MemPerCPU, shape.MemPerNode = 0, 0
	withoutMemory := *r
	withoutMemory.shape = &shape
	if withoutMemory.choose(nodes, allowed) != nil {
		return ReasonMemory
	}
	return ReasonProcessors
}
