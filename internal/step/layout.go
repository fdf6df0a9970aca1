package step

import (
	"fmt"
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
	// NodesGiven: Nodes is not that of the job.
	NodesGiven   bool   `json:"nodesGiven,omitempty"`
	Overcommit   bool   `json:"overcommit,omitempty"`
	Distribution string `json:"distribution,omitempty"`
	// Hosts names the node of each task, with the distribution "arbitrary".
	Hosts []string `json:"hosts,omitempty"`
	// Memory that the step is to have to itself, in MiB, by node or by CPU; 0:
	// it does not say, and takes none from other steps.
	MemPerNode int64 `json:"memPerNode,omitempty"`
	MemPerCPU  int64 `json:"memPerCPU,omitempty"`
	// GPUs that the step is to have to itself: in all, by node or by task; 0:
	// it does not say, and sees those of the job. NoGPUs: it wants none.
	GPUs        int32 `json:"gpus,omitempty"`
	GPUsPerNode int32 `json:"gpusPerNode,omitempty"`
	GPUsPerTask int32 `json:"gpusPerTask,omitempty"`
	NoGPUs      bool  `json:"noGPUs,omitempty"`
	// MemPerGPU: its memory goes by its GPUs, so that there have to be some.
	MemPerGPU bool `json:"memPerGPU,omitempty"`
	// GRES are the other generic resources that the step is to have to itself.
	GRES []GRES `json:"gres,omitempty"`
}

// GRES is so much of a kind of generic resource on each node.
type GRES struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"` // empty: any
	Count int64  `json:"count"`
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
type Impossible struct {
	Line []string
	Code uint8 // srun's exit code; 0: 1
}

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
	if first := s.Relative - 1; first > 0 && int(first+want) > len(nodes) {
		return nil, false, s.beyond(first, want, len(nodes))
	}
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

// beyond refuses nodes behind the last one.
func (s *Shape) beyond(first, want int32, have int) error {
	option := "SLURM_JOB_NUM_NODES"
	if s.NodesGiven {
		option = "--nodes"
	}
	return &Impossible{Line: []string{fmt.Sprintf(
		"--relative and %s option incompatible with count of allocated nodes (%d+%d>%d)", option, first, want, have)}}
}

func tooFew(have int, want int32, excluded bool) error {
	e := &Impossible{}
	if excluded && have == 0 {
		return &Impossible{Line: []string{"Hostlist is empty!  Can't run job."}}
	}
	e.Line = append(e.Line, fmt.Sprintf("Only allocated %d nodes asked for %d", have, want))
	if excluded {
		e.Line = append(e.Line, "Are required nodes explicitly excluded?")
	}
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
