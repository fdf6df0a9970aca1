// Package coord coordinates the steps of a job, in the agent of its first node.
// The coordinator numbers steps and reserves nodes, CPUs and other resources for their
// tasks. Steps wait until their resources are free. It starts steps through package
// launch, and terminates them when the job ends.
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

// Job describes the job to its coordinator. It is read-only, except for the
// pools of its nodes.
type Job struct {
	ID       int64
	Nodes    []Node
	KillWait int32 // seconds
	// Unpropagated are the resource limits that steps inherit from srun only with
	// --propagate.
	Unpropagated []string
	// HetID is the id of the heterogeneous job of which it is a component; 0:
	// none.
	HetID int64
	// Address is the IP address of srun, for the environment of tasks.
	Address string
	// NoKill means that the job continues without lost nodes; new steps avoid
	// them.
	NoKill bool
	// Container holds the job's container options (--container-image and so on); nil:
	// none.
	Container map[string]string
	// MemPerCPU means that the job's memory was requested by CPU, not by node.
	MemPerCPU bool
	// OOMKillStep is the default of --oom-kill-step for steps.
	OOMKillStep bool
}

// Node is a node of the job.
type Node struct {
	Name string
	CPUs int32
	IDs  []int // the CPUs; empty: unknown
	// Memory is the job's memory on the node, in MiB; 0: unknown.
	Memory int64
	// GPUs are the indexes of the job's GPUs on the node, if they are known. HasGPUs means
	// that the job has GPUs, even if their indexes are unknown.
	GPUs    []int
	HasGPUs bool
	// GRES are the job's other generic resources on the node.
	GRES []Pool
}

// Coordinator creates and runs the steps of one job. It is safe for concurrent
// use.
type Coordinator struct {
	node *launch.Node
	job  *Job
	now  func() string // the time, as Slurm writes it in notices

	mu       sync.Mutex
	next     int32
	hidden   int32
	reserved []map[int]bool // CPUs that steps have on each node, by position
	memory   []int64        // that steps have reserved on each node, MiB
	// reservedGPUs are the GPUs that steps have exclusively, on each node.
	reservedGPUs []map[int]bool
	live         map[int32]*session
	changed      chan struct{} // closed and replaced when a step ends or the coordinator closes
	closed       bool
	report       func(wire.StepRecord)
	batch        func(gpus bool) *step.Usage // usage of the batch script; nil: no script
	out, err     string                      // output files of the script; empty: none
	derived      uint32                      // highest wait status of a task
	lost         Loss
	gone         map[string]bool // nodes without which the job continues
	ports        map[int32]bool  // in use by steps

	opened  chan struct{} // closed when out and err are set
	written chan struct{} // closed when out and err are complete
}

// Loss is the loss of a node during a step.
type Loss struct {
	Node string // empty: none was lost
	At   time.Time
}

// New returns the coordinator of a job. now returns the time as notices show it.
func New(node *launch.Node, job *Job, now func() string) *Coordinator {
	c := &Coordinator{
		node: node, job: job, now: now,
		live: map[int32]*session{}, ports: map[int32]bool{}, gone: map[string]bool{},
		changed: make(chan struct{}), opened: make(chan struct{}), written: make(chan struct{}),
	}
	for range job.Nodes {
		c.reserved = append(c.reserved, map[int]bool{})
		c.reservedGPUs = append(c.reservedGPUs, map[int]bool{})
	}
	c.memory = make([]int64, len(job.Nodes))
	return c
}

// allocation is the resources of a step: nodes, CPUs and others.
type allocation struct {
	id     int32
	layout *placement.Layout
	nodes  []step.NodeTasks
	cpus   []map[int]bool // positions of CPUs reserved on each node of the layout; nil with overlap
	memory []int64        // reserved on each node, MiB
	gpus   [][]int        // on each node, by index
	gres   []share        // other generic resources
	shared bool           // other steps may use the same resources
	ports  portRange
}

// allocate reserves the resources that req requests for s. If they are in use by other
// steps, it returns a channel that is closed when another attempt makes sense.
func (c *Coordinator) allocate(s *session, req *step.Request) (g *allocation, wait <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, placement.Refuse(c.job.ID, "Job/step already completing or completed")
	}
	exact := req.Exact || req.Shape.CPUsPerTask > 0
	nodes, at := c.availableNodes()
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
	gpus, busy, err := c.selectGPUs(&req.Shape, l, req.Overlap)
	switch {
	case err != nil:
		return nil, nil, err
	case busy:
		return nil, c.changed, nil
	}
	gres, busy, err := c.selectGRES(&req.Shape, l, req.Overlap)
	switch {
	case err != nil:
		return nil, nil, err
	case busy:
		return nil, c.changed, nil
	}
	ports, busy, err := c.reservePorts(req.Ports, l)
	switch {
	case err != nil:
		return nil, nil, err
	case busy:
		return nil, c.changed, nil
	}
	g = &allocation{id: c.next, layout: l, gpus: gpus, gres: gres, shared: req.Overlap, ports: ports}
	g.reserveGRES()
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
			requested := int64(len(l.Tasks[k])) * int64(max(req.Shape.CPUsPerTask, 1))
			want = int32(min(int64(want), requested))
		}
		n := c.reserveCPUs(g, i, want, req.Overlap)
		c.reserveMemory(g, i, &req.Shape, n.CPUs, req.Overlap)
		n.Step = int32(k)
		n.Tasks = l.Tasks[k]
		n.PerTask = max(req.Shape.CPUsPerTask, 1)
		n.NoGPUs = req.Shape.NoGPUs
		if k < len(gpus) {
			n.GPUs = gpus[k]
		}
		g.nodes = append(g.nodes, n)
	}
	c.reserveGPUs(g)
	return g, nil, nil
}

// availableNodes returns the nodes of the job that were not lost, and their
// indexes in the job. The caller holds c.mu.
func (c *Coordinator) availableNodes() (nodes []placement.Node, at []int32) {
	for i, n := range c.job.Nodes {
		if !c.gone[n.Name] {
			nodes = append(nodes, placement.Node{
				Name: n.Name, CPUs: n.CPUs, Busy: int32(len(c.reserved[i])), Memory: n.Memory, BusyMemory: c.memory[i],
			})
			at = append(at, int32(i))
		}
	}
	return nodes, at
}

// reserveCPUs reserves want CPUs of node i, the lowest free ones first. With
// overlap the step gets CPUs but does not reserve them. The caller holds c.mu.
func (c *Coordinator) reserveCPUs(g *allocation, i, want int32, overlap bool) step.NodeTasks {
	node := &c.job.Nodes[i]
	cpus := map[int]bool{}
	var ids []int
	for pos := 0; pos < int(node.CPUs) && int32(len(cpus)) < want; pos++ {
		if !overlap && c.reserved[i][pos] {
			continue
		}
		cpus[pos] = true
		if pos < len(node.IDs) {
			ids = append(ids, node.IDs[pos])
		}
	}
	n := step.NodeTasks{Node: i, CPUs: int32(len(cpus)), CPUIDs: affinity.FormatCPUList(ids)}
	if overlap {
		cpus = nil
	}
	for pos := range cpus {
		c.reserved[i][pos] = true
	}
	g.cpus = append(g.cpus, cpus)
	return n
}

// reserveMemory reserves the memory that the step requests with the given number
// of CPUs of node i. The caller holds c.mu.
func (c *Coordinator) reserveMemory(g *allocation, i int32, s *step.Shape, cpus int32, overlap bool) {
	need := s.MemoryOn(cpus)
	if overlap || c.job.Nodes[i].Memory == 0 {
		need = 0
	} else if s.MemPerCPU > 0 { // a step of whole nodes may have more CPUs than memory for them
		need = min(need, c.job.Nodes[i].Memory-c.memory[i])
	}
	g.memory = append(g.memory, need)
	c.memory[i] += need
}

// end reports the end of a step and releases its resources, in this order: Wait returns when
// the last step is released, and then the job's last report is made.
func (c *Coordinator) end(g *allocation, rec *record) {
	rec.close()
	c.publish(rec)
	c.release(g)
}

// release releases the resources of a step.
func (c *Coordinator) release(g *allocation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, i := range g.layout.Nodes {
		for pos := range g.cpus[k] {
			delete(c.reserved[i], pos)
		}
		c.memory[i] -= g.memory[k]
	}
	c.releaseGPUs(g)
	c.releasePorts(g.ports)
	g.releaseGRES()
	delete(c.live, g.id)
	c.wake()
}

// wake causes waiting steps to try again. The caller holds c.mu.
func (c *Coordinator) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Close refuses new and waiting steps.
func (c *Coordinator) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.wake()
	}
}

// Signal sends a signal to the tasks of the given steps, or of all if none is given. As
// in Slurm, before SIGTERM the client receives a notice that the step is cancelled.
func (c *Coordinator) Signal(sig int32, steps ...int32) {
	for id, s := range c.running() {
		if len(steps) > 0 && !slices.Contains(steps, id) {
			continue
		}
		if sig == int32(syscall.SIGTERM) {
			s.announceCancel()
		}
		s.signal(&step.Signal{Signal: sig})
	}
}

// Cancel kills the given steps in the name of a user. Unlike the steps of a job
// that ends, they get no SIGTERM first.
func (c *Coordinator) Cancel(user string, steps ...int32) {
	for id, s := range c.running() {
		if slices.Contains(steps, id) {
			s.killedBy(user)
			s.terminate(Cancelled, step.KillNow)
		}
	}
}

// SetTimeLimit sets the time limit of the given steps, in minutes from their
// start, or neutral.Unlimited.
func (c *Coordinator) SetTimeLimit(minutes int32, steps ...int32) {
	for id, s := range c.running() {
		if slices.Contains(steps, id) && s.setTimeLimit(minutes) {
			c.publish(s.rec)
		}
	}
}

func (c *Coordinator) running() map[int32]*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.live)
}

// OnChange registers a function that is called with every change of a step. It
// must not block. OnChange must be called before the first step.
func (c *Coordinator) OnChange(fn func(wire.StepRecord)) { c.report = fn }

// publish reports a change of a step that has a number.
func (c *Coordinator) publish(x *record) {
	if c.report != nil && x.get().ID >= 0 {
		c.report(x.get())
	}
}

// Terminate closes the coordinator and terminates all steps: SIGTERM, and
// SIGKILL after grace seconds.
func (c *Coordinator) Terminate(reason EndReason, grace int32) {
	c.Close()
	for _, s := range c.sessions() {
		s.terminate(reason, grace)
	}
}

// Kill closes the coordinator and kills all tasks immediately.
func (c *Coordinator) Kill() {
	c.Close()
	for _, s := range c.sessions() {
		s.abort()
	}
}

// Wait returns when no step is left. The coordinator must have been closed.
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

// Derived returns the highest exit code of any task so far and, if all were 0,
// the highest signal that ended a task.
func (c *Coordinator) Derived() (code, signal int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int32(c.derived >> 8), int32(c.derived & 0x7f)
}

// Lost returns the last loss of a node.
func (c *Coordinator) Lost() Loss {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

func (c *Coordinator) recordLoss(node string) {
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
