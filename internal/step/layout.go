package step

import (
	"fmt"
	"strconv"
	"strings"
)

// Shape is a step's geometry as asked for. 0 means not given.
type Shape struct {
	Nodes        int32    `json:"nodes,omitempty"`    // at least
	MaxNodes     int32    `json:"maxNodes,omitempty"` // at most; 0: as many as Nodes
	Tasks        int32    `json:"tasks,omitempty"`
	TasksPerNode int32    `json:"tasksPerNode,omitempty"`
	CPUsPerTask  int32    `json:"cpusPerTask,omitempty"`
	NodeList     []string `json:"nodeList,omitempty"`
	Exclude      []string `json:"exclude,omitempty"`
	Relative     int32    `json:"relative,omitempty"` // first node, plus one
	Overcommit   bool     `json:"overcommit,omitempty"`
	Distribution string   `json:"distribution,omitempty"`
	// Hosts names the node of each task, with the distribution "arbitrary".
	Hosts []string `json:"hosts,omitempty"`
	// Memory that the step is to have to itself, in MiB, by node or by CPU; 0:
	// it does not say, and takes none from other steps.
	MemPerNode int64 `json:"memPerNode,omitempty"`
	MemPerCPU  int64 `json:"memPerCPU,omitempty"`
}

// Needs is the memory that the step takes on a node where it has so many CPUs.
func (s *Shape) Needs(cpus int32) int64 {
	if s.MemPerCPU > 0 {
		return s.MemPerCPU * int64(cpus)
	}
	return s.MemPerNode
}

// Node is a node that tasks can be laid out on.
type Node struct {
	Name string
	CPUs int32 // allocated to the job
	Busy int32 // of these, taken by other steps
	// Memory allocated to the job, in MiB (0: unknown), and what other steps
	// take of it.
	Memory, BusyMemory int64
}

// cpus are those of so many that the memory of the node is enough for.
func (n *Node) cpus(s *Shape, want int32, ignoreBusy bool) int32 {
	left := n.Memory
	if !ignoreBusy {
		left -= n.BusyMemory
	}
	switch {
	case n.Memory == 0:
	case s.MemPerCPU > 0:
		return int32(min(int64(want), max(left, 0)/s.MemPerCPU))
	case s.MemPerNode > left:
		return 0
	}
	return want
}

// Layout says which tasks run where.
type Layout struct {
	Nodes []int32    // indexes into the job's nodes, ascending
	Tasks [][]uint32 // for each, the global numbers of its tasks, ascending
	Count uint32     // tasks in all
}

// PerNode counts the tasks of each node.
func (l *Layout) PerNode() []int32 {
	n := make([]int32, len(l.Tasks))
	for i, t := range l.Tasks {
		n[i] = int32(len(t))
	}
	return n
}

// TaskNode gives the step node of every task.
func (l *Layout) TaskNode() []int32 {
	of := make([]int32, l.Count)
	for i, tasks := range l.Tasks {
		for _, t := range tasks {
			of[t] = int32(i)
		}
	}
	return of
}

// MaxTasks bounds a step, against requests that would only take memory.
const MaxTasks = 1 << 18

// Impossible is an error of Plan: the step can never run in this job. Line is
// Slurm's text behind "srun: error: ".
type Impossible struct{ Line []string }

func (e *Impossible) Error() string { return strings.Join(e.Line, "; ") }

// Reasons why a step cannot be created, as Slurm words them.
const (
	ReasonProcessors = "More processors requested than permitted"
	ReasonNodes      = "Requested node configuration is not available"
	ReasonBusy       = "Requested nodes are busy"
	ReasonMemory     = "Memory required by task is not available"
)

func cannot(jobID int64, reason string) error {
	return &Impossible{Line: []string{fmt.Sprintf("Unable to create step for job %d: %s", jobID, reason)}}
}

// Plan lays out a step over a job's nodes by the rules of Slurm 22.05. wait
// is true if the step fits the job but not what other steps leave (never with
// overlap). The error is *Impossible.
func Plan(jobID int64, nodes []Node, s *Shape, exact, overlap bool) (l *Layout, wait bool, err error) {
	if s.Tasks > MaxTasks || s.TasksPerNode > MaxTasks || s.Nodes > MaxTasks {
		return nil, false, cannot(jobID, ReasonProcessors)
	}
	allowed, err := candidates(jobID, nodes, s)
	if err != nil {
		return nil, false, err
	}
	want := s.want(len(nodes))
	tasks := s.tasks(want)
	if int(want) > len(allowed) {
		return nil, false, tooFew(len(allowed), want, len(s.Exclude) > 0)
	}
	per := max(s.CPUsPerTask, 1)
	choose := func(ignoreBusy bool) []int32 { return pick(nodes, allowed, s, want, tasks*per, exact, ignoreBusy) }
	chosen := choose(overlap)
	if chosen == nil {
		if overlap || choose(true) == nil {
			return nil, false, cannot(jobID, s.tooMuch(nodes, allowed, want, tasks*per, exact))
		}
		return nil, true, nil
	}
	return arrange(nodes, chosen, s, tasks, per), false, nil
}

// tooMuch is what a step asks for that the job does not have.
func (s *Shape) tooMuch(nodes []Node, allowed []int32, want, cpus int32, exact bool) string {
	less := *s
	less.MemPerCPU, less.MemPerNode = 0, 0
	if pick(nodes, allowed, &less, want, cpus, exact, true) != nil {
		return ReasonMemory
	}
	return ReasonProcessors
}

func tooFew(have int, want int32, excluded bool) error {
	e := &Impossible{}
	if excluded {
		e.Line = append(e.Line, "Are required nodes explicitly excluded?")
	}
	e.Line = append(e.Line, fmt.Sprintf("Only allocated %d nodes asked for %d", have, want))
	return e
}

// want is the number of nodes of the step: what was asked for, else all.
func (s *Shape) want(have int) int32 {
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

// tasks is the number of tasks on n nodes.
func (s *Shape) tasks(n int32) int32 {
	if s.Tasks > 0 {
		return s.Tasks
	}
	return n * max(s.TasksPerNode, 1)
}

// candidates lists the nodes that a step may use, by index.
func candidates(jobID int64, nodes []Node, s *Shape) ([]int32, error) {
	index := make(map[string]int32, len(nodes))
	for i, n := range nodes {
		index[n.Name] = int32(i)
	}
	for _, name := range s.NodeList {
		if _, ok := index[name]; !ok {
			return nil, cannot(jobID, ReasonNodes)
		}
	}
	out := make(map[string]bool, len(s.Exclude))
	for _, name := range s.Exclude {
		out[name] = true
	}
	for _, name := range s.NodeList {
		if out[name] {
			return nil, cannot(jobID, ReasonNodes)
		}
	}
	var allowed []int32
	for i, n := range nodes {
		if !out[n.Name] && int32(i) >= s.Relative-1 {
			allowed = append(allowed, int32(i))
		}
	}
	return allowed, nil
}

// pick chooses want of the allowed nodes with enough CPUs: those named first,
// then those with free CPUs in order. It returns nil where that is not to be
// had.
func pick(nodes []Node, allowed []int32, s *Shape, want, cpus int32, exact, ignoreBusy bool) []int32 {
	free := func(i int32) int32 {
		n := nodes[i]
		switch {
		case ignoreBusy:
			return n.cpus(s, n.CPUs, true)
		case !exact && n.Busy > 0:
			return 0
		}
		return n.cpus(s, n.CPUs-n.Busy, false)
	}
	named := make(map[string]bool, len(s.NodeList))
	for _, n := range s.NodeList {
		named[n] = true
	}
	taken := make(map[int32]bool, want)
	total := int32(0)
	take := func(i int32) {
		taken[i] = true
		total += free(i)
	}
	for _, i := range allowed {
		if named[nodes[i].Name] {
			if free(i) <= 0 {
				return nil
			}
			take(i)
		}
	}
	for _, i := range allowed {
		if int32(len(taken)) < want && !taken[i] && free(i) > 0 {
			take(i)
		}
	}
	if int32(len(taken)) < want || (total < cpus && !s.Overcommit) {
		return nil
	}
	var chosen []int32
	for _, i := range allowed {
		if taken[i] {
			chosen = append(chosen, i)
		}
	}
	return chosen
}

// arrange distributes tasks over the chosen nodes. How many each gets is
// decided by dealing them out in turn, as far as the node has CPUs; which they
// are depends on the distribution.
func arrange(nodes []Node, chosen []int32, s *Shape, tasks, per int32) *Layout {
	capacity := make([]int32, len(chosen))
	for k, i := range chosen {
		capacity[k] = max(nodes[i].CPUs/per, 1)
		if s.TasksPerNode > 0 {
			capacity[k] = s.TasksPerNode
		}
	}
	l := &Layout{Nodes: chosen, Tasks: make([][]uint32, len(chosen)), Count: uint32(tasks)}
	kind, size := distribution(s.Distribution)
	if kind == "arbitrary" && len(s.Hosts) > 0 {
		return arbitrary(nodes, l, s.Hosts)
	}
	if kind == "plane" {
		deal(l, capacity, tasks, size)
		return withTasks(l)
	}
	if packed(s.Distribution) {
		deal(l, capacity, tasks, tasks) // one node full after the other
		return withTasks(l)
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

// packed tells whether nodes are to be filled one after the other (-m Pack).
func packed(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		if strings.EqualFold(part, "pack") {
			return true
		}
	}
	return false
}

// arbitrary gives task i the node hosts[i]; tasks beyond the list go on with
// its last node.
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
	return withTasks(l)
}

// withTasks drops the nodes that got no task, which large planes can leave.
func withTasks(l *Layout) *Layout {
	out := &Layout{Count: l.Count}
	for k, tasks := range l.Tasks {
		if len(tasks) > 0 {
			out.Nodes = append(out.Nodes, l.Nodes[k])
			out.Tasks = append(out.Tasks, tasks)
		}
	}
	return out
}

// deal gives size tasks in turn to every node that has room, and goes on
// without regard to room when no node has any.
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

// distribution reads the first part of --distribution.
func distribution(text string) (kind string, size int32) {
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
