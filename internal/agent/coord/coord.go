// Package coord is the part of the agent of a job's first node that grants
// steps: it numbers them, decides where their tasks go and on which CPUs,
// makes steps wait that do not fit beside the others, starts them through
// package launch, and ends them when the job ends.
package coord

import (
	"context"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/agent/launch"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/affinity"
	"github.com/berth-hpc/berth/internal/step/placement"
	"github.com/berth-hpc/berth/internal/wire"
)

// Job is what the coordinator knows of its job. Read-only, but for the pools.
type Job struct {
	ID       int64
	Nodes    []Node
	KillWait int32 // seconds
	// Unpropagated are resource limits that steps take over only when asked to.
	Unpropagated []string
	// HetID is the id of the heterogeneous job that it is a component of; 0:
	// of none.
	HetID int64
	// Address is the IP address that tasks are told srun is at.
	Address string
	// NoKill: the job outlives its nodes; steps keep off those that were lost.
	NoKill bool
	// Container is what the job asked of its containers (--container-image and
	// so on); nil: nothing.
	Container map[string]string
	// MemPerCPU: the job has its memory for its CPUs, not for its nodes.
	MemPerCPU bool
	// OOMKillStep: steps end when memory runs out, unless they say otherwise.
	OOMKillStep bool
}

// Node is a node of the job.
type Node struct {
	Name string
	CPUs int32
	IDs  []int // the CPUs; empty: unknown
	// Memory is the job's there, in MiB; 0: unknown.
	Memory int64
	// GPUs are the numbers of the job's GPUs there, where they are known;
	// HasGPUs: there are some.
	GPUs    []int
	HasGPUs bool
	// GRES are the job's other generic resources there.
	GRES []Pool
}

// Coordinator grants and runs the steps of one job. It is safe for concurrent
// use.
type Coordinator struct {
	node *launch.Node
	job  *Job
	now  func() string // for notices, as Slurm writes instants

	mu     sync.Mutex
	next   int32
	hidden int32
	taken  []map[int]bool // CPUs in use on each node, by position
	memory []int64        // in use on each node, MiB
	// takenGPUs are those that steps have to themselves, on each node.
	takenGPUs []map[int]bool
	live      map[int32]*session
	changed   chan struct{} // closed and replaced when CPUs become free or the job closes
	closed    bool
	report    func(wire.StepRecord)
	batch     func(gpus bool) *step.Usage // nil: there is no script
	out, err  string                      // the files that the script writes to; empty: none
	derived   uint32                      // wait status
	lost      Loss
	gone      map[string]bool // nodes that the job goes on without
	ports     map[int32]bool  // in use by steps

	written chan struct{} // closed when nobody writes to out and err any more
}

// Loss is the loss of a node during a step.
type Loss struct {
	Node string // empty: none was lost
	At   time.Time
}

// New makes the coordinator of a job; now gives the time as notices show it.
func New(node *launch.Node, job *Job, now func() string) *Coordinator {
	c := &Coordinator{node: node, job: job, now: now, live: map[int32]*session{}, ports: map[int32]bool{}, gone: map[string]bool{}, changed: make(chan struct{}), written: make(chan struct{})}
	for range job.Nodes {
		c.taken = append(c.taken, map[int]bool{})
		c.takenGPUs = append(c.takenGPUs, map[int]bool{})
	}
	c.memory = make([]int64, len(job.Nodes))
	return c
}

// grant is a step that has got its place.
type grant struct {
	id      int32
	layout  *placement.Layout
	nodes   []step.NodeTasks
	held    []map[int]bool // positions taken on each node of the layout; nil with overlap
	memory  []int64        // the same of memory, MiB
	gpus    [][]int        // the same of GPUs, by number
	counted []share        // of other generic resources
	shared  bool           // others may use them as well
	ports   ports
}

// try grants req to s if it can start now. wait is not nil if it must wait: it is
// closed when another attempt makes sense.
func (c *Coordinator) try(s *session, req *step.Request) (g *grant, wait <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, placement.Refuse(c.job.ID, "Job/step already completing or completed")
	}
	exact := req.Exact || req.Shape.CPUsPerTask > 0
	nodes, at := c.nodes()
	l, busy, err := placement.Plan(c.job.ID, nodes, &req.Shape, exact, req.Overlap)
	switch {
	case err != nil:
		return nil, nil, err
	case busy:
		return nil, c.changed, nil
	}
	for k, i := range l.Nodes {
		l.Nodes[k] = at[i]
	}
	gpus, busy, err := c.gpus(&req.Shape, l, req.Overlap)
	switch {
	case err != nil:
		return nil, nil, err
	case busy:
		return nil, c.changed, nil
	}
	counted, busy, err := c.counted(&req.Shape, l, req.Overlap)
	switch {
	case err != nil:
		return nil, nil, err
	case busy:
		return nil, c.changed, nil
	}
	reserved, busy, err := c.reservePorts(req.Ports, l)
	switch {
	case err != nil:
		return nil, nil, err
	case busy:
		return nil, c.changed, nil
	}
	g = &grant{id: c.next, layout: l, gpus: gpus, counted: counted, shared: req.Overlap, ports: reserved}
	g.holdGRES(true)
	if req.Hidden {
		c.hidden++
		g.id = -1000 - c.hidden
	} else {
		c.next++
	}
	c.live[g.id] = s
	for k, i := range l.Nodes {
		want := c.job.Nodes[i].CPUs
		if exact {
			want = min(want, int32(len(l.Tasks[k]))*max(req.Shape.CPUsPerTask, 1))
		}
		g.nodes = append(g.nodes, c.take(g, i, want, req.Overlap))
		c.takeMemory(g, i, &req.Shape, g.nodes[k].CPUs, req.Overlap)
		g.nodes[k].Step, g.nodes[k].Tasks, g.nodes[k].PerTask = int32(k), l.Tasks[k], max(req.Shape.CPUsPerTask, 1)
		if k < len(gpus) {
			g.nodes[k].GPUs = gpus[k]
		}
		g.nodes[k].NoGPUs = req.Shape.NoGPUs
	}
	if !g.shared {
		c.holdGPUs(g, true)
	}
	return g, nil, nil
}

// nodes are those of the job that are there, and their places in it. c.mu is
// held.
func (c *Coordinator) nodes() (nodes []placement.Node, at []int32) {
	for i, n := range c.job.Nodes {
		if !c.gone[n.Name] {
			nodes = append(nodes, placement.Node{Name: n.Name, CPUs: n.CPUs, Busy: int32(len(c.taken[i])), Memory: n.Memory, BusyMemory: c.memory[i]})
			at = append(at, int32(i))
		}
	}
	return nodes, at
}

// take reserves want CPUs of node i, the lowest free ones first. c.mu is held.
func (c *Coordinator) take(g *grant, i, want int32, overlap bool) step.NodeTasks {
	node := &c.job.Nodes[i]
	held := map[int]bool{}
	var ids []int
	for pos := 0; pos < int(node.CPUs) && int32(len(held)) < want; pos++ {
		if !overlap && c.taken[i][pos] {
			continue
		}
		held[pos] = true
		if pos < len(node.IDs) {
			ids = append(ids, node.IDs[pos])
		}
	}
	n := step.NodeTasks{Node: i, CPUs: int32(len(held)), CPUIDs: affinity.FormatCPUList(ids)}
	if overlap {
		held = nil
	}
	for pos := range held {
		c.taken[i][pos] = true
	}
	g.held = append(g.held, held)
	return n
}

// takeMemory reserves the memory that goes with so many CPUs of node i. c.mu is
// held.
func (c *Coordinator) takeMemory(g *grant, i int32, s *step.Shape, cpus int32, overlap bool) {
	need := s.MemoryOn(cpus)
	if overlap || c.job.Nodes[i].Memory == 0 {
		need = 0
	} else if s.MemPerCPU > 0 { // a step of whole nodes may have more CPUs than memory
		need = min(need, c.job.Nodes[i].Memory-c.memory[i])
	}
	g.memory = append(g.memory, need)
	c.memory[i] += need
}

// release gives back what g holds.
func (c *Coordinator) release(g *grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, i := range g.layout.Nodes {
		for pos := range g.held[k] {
			delete(c.taken[i], pos)
		}
		c.memory[i] -= g.memory[k]
	}
	if !g.shared {
		c.holdGPUs(g, false)
	}
	c.mark(g.ports, false)
	g.holdGRES(false)
	delete(c.live, g.id)
	c.wake()
}

// wake lets waiting steps try again. c.mu is held.
func (c *Coordinator) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Close refuses new steps and those that wait.
func (c *Coordinator) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.wake()
	}
}

// Signal sends a signal to the tasks of the steps named, or, with none, of all.
// Of SIGTERM the client is told that the step is cancelled, as Slurm does.
func (c *Coordinator) Signal(sig int32, steps ...int32) {
	for id, s := range c.running() {
		if len(steps) > 0 && !slices.Contains(steps, id) {
			continue
		}
		if sig == int32(syscall.SIGTERM) {
			s.warn()
		}
		s.down(&step.Signal{Signal: sig})
	}
}

// End ends the steps named, as the user named by wants it: at once, where the
// end of a job begins with SIGTERM.
func (c *Coordinator) End(by string, steps ...int32) {
	for id, s := range c.running() {
		if slices.Contains(steps, id) {
			s.killedBy(by)
			s.terminate("", step.KillNow)
		}
	}
}

// Limit gives the steps named a time limit in minutes from their start, or
// neutral.Unlimited.
func (c *Coordinator) Limit(minutes int32, steps ...int32) {
	for id, s := range c.running() {
		if slices.Contains(steps, id) && s.limit(minutes) {
			c.tell(s.rec)
		}
	}
}

func (c *Coordinator) running() map[int32]*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.live)
}

// Report has every change of a step told to fn, which must not block. Set it
// before the first step.
func (c *Coordinator) Report(fn func(wire.StepRecord)) { c.report = fn }

func (c *Coordinator) tell(x *record) {
	if c.report != nil && x.get().ID >= 0 {
		c.report(x.get())
	}
}

// Terminate closes the coordinator and ends all steps: SIGTERM, and SIGKILL
// after grace seconds. Reason is what the notice says behind the time, or empty.
func (c *Coordinator) Terminate(reason string, grace int32) {
	c.Close()
	for _, s := range c.sessions() {
		s.terminate(reason, grace)
	}
}

// Kill closes the coordinator and kills all tasks at once.
func (c *Coordinator) Kill() {
	c.Close()
	for _, s := range c.sessions() {
		s.abort()
	}
}

// Wait returns when no step is left; close the coordinator first.
func (c *Coordinator) Wait(ctx context.Context) error {
	for {
		c.mu.Lock()
		n, changed := len(c.live), c.changed
		c.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Derived is the highest exit code of any task so far, and where all were 0
// the highest signal that ended one.
func (c *Coordinator) Derived() (code, signal int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int32(c.derived >> 8), int32(c.derived & 0x7f)
}

// Lost is the last loss of a node.
func (c *Coordinator) Lost() Loss {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

func (c *Coordinator) noteLoss(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = Loss{node, time.Now()}
	if c.job.NoKill {
		c.gone[node] = true
	}
}

func (c *Coordinator) sessions() []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*session, 0, len(c.live))
	for _, s := range c.live {
		all = append(all, s)
	}
	return all
}
