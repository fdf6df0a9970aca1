package coord

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
)

// record is the accounting record of a step. It is safe for concurrent use.
type record struct {
	mu       sync.Mutex
	r        wire.StepRecord
	node     []int32 // of each task
	code     int     // highest exit code so far
	counted  bool    // the usage of a task was added
	endState string  // of a step that was terminated; empty: by its tasks
}

func (c *Coordinator) newRecord(g *allocation, req *step.Request) *record {
	x := &record{node: g.layout.TaskNode(), code: -1, r: wire.StepRecord{
		ID: g.id, Name: req.Name, Tasks: int32(g.layout.Count), Layout: req.Shape.Distribution,
		State: "RUNNING", Start: time.Now().UnixNano(), TimeLimit: req.TimeLimit,
		SrunHost: req.SrunHost[:min(len(req.SrunHost), maxHostName)], SrunPID: req.SrunPID,
	}}
	if x.r.Layout == "" {
		x.r.Layout = "block"
		if int(g.layout.Count) <= len(g.nodes) {
			x.r.Layout = "cyclic"
		}
	}
	if x.r.Name == "" || !req.Named {
		program := req.Command.Args[0]
		x.r.Name = program[strings.LastIndexByte(program, '/')+1:]
	}
	for k, n := range g.nodes {
		x.r.GPUs += int32(len(c.gpusOf(g, k)))
		x.r.Nodes = append(x.r.Nodes, c.job.Nodes[n.Node].Name)
		x.r.CPUs += n.CPUs
		x.r.Memory += c.memoryOf(&c.job.Nodes[n.Node], &req.Shape, n.CPUs)
	}
	return x
}

// gpusOf returns the GPUs that a step sees on its node k: those that it requested, or else
// all GPUs of the job.
func (c *Coordinator) gpusOf(g *allocation, k int) []int {
	n := &g.nodes[k]
	if n.NoGPUs || n.GPUs != nil {
		return n.GPUs
	}
	return c.job.Nodes[n.Node].GPUs
}

// maxHostName is the maximum length of a host name (RFC 1035).
const maxHostName = 255

// memoryOf returns the memory in MiB that a step may use on a node where it has the given
// number of CPUs: what it requests, or else its share of the job's memory.
func (c *Coordinator) memoryOf(n *Node, s *step.Shape, cpus int32) int64 {
	switch need := s.MemoryOn(cpus); {
	case need > 0:
		return min(need, max(n.Memory, 0))
	case c.job.MemPerCPU:
		return n.Memory * int64(cpus) / int64(max(n.CPUs, 1))
	default:
		return n.Memory
	}
}

// addExit records the end of tasks.
func (x *record) addExit(e *step.Exit) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if code := step.ExitCode(e.Status); code > x.code {
		x.code = code
		ws := syscall.WaitStatus(e.Status)
		x.r.Status, x.r.Signal = int32(ws.ExitStatus()), 0
		if ws.Signaled() {
			x.r.Status, x.r.Signal = 0, int32(ws.Signal())
		}
	}
	for _, t := range e.Tasks {
		if int(t) < len(x.node) {
			AddUsage(&x.r.Usage, !x.counted, x.node[t], int32(t), &e.Used)
			x.counted = true
		}
	}
}

// AddUsage adds the usage of a task to that of its step. first is true for the
// first task.
func AddUsage(s *wire.Usage, first bool, node, task int32, u *step.TaskUsage) {
	s.UserCPU += u.User
	s.SystemCPU += u.System
	at := wire.Extreme{Node: node, Task: task}
	addAmount(&s.CPU, first, u.User+u.System, at)
	addAmount(&s.RSS, first, u.RSS, at)
	addAmount(&s.VMSize, first, u.VMSize, at)
	addAmount(&s.Pages, first, u.Pages, at)
	addAmount(&s.DiskRead, first, u.Read, at)
	addAmount(&s.DiskWrite, first, u.Write, at)
}

// addAmount adds what the task at has used. Of several tasks with the same usage, the
// first is the maximum and the minimum.
func addAmount(m *wire.Measure, first bool, amount int64, at wire.Extreme) {
	at.Amount = amount
	m.Total += amount
	if first || amount > m.Max.Amount {
		m.Max = at
	}
	if first || amount < m.Min.Amount {
		m.Min = at
	}
}

// setEndState sets the state of a step that is terminated. The first call wins.
func (x *record) setEndState(state string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.endState == "" {
		x.endState = state
	}
}

// killedBy records the user who cancelled the step. The first call wins.
func (x *record) killedBy(user string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.endState == "" && x.r.KilledBy == "" {
		x.r.KilledBy = user
	}
}

// setTimeLimit records a time limit and returns when it expires.
func (x *record) setTimeLimit(minutes int32) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.r.TimeLimit = max(minutes, 0)
	return time.Unix(0, x.r.Start).Add(time.Duration(minutes) * time.Minute)
}

// close records the end of the step.
func (x *record) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.r.End = time.Now().UnixNano()
	switch {
	case x.endState != "":
		x.r.State = x.endState
	case x.r.Signal != 0:
		x.r.State = "CANCELLED"
	case x.r.Status != 0:
		x.r.State = "FAILED"
	default:
		x.r.State = "COMPLETED"
	}
}

func (x *record) get() wire.StepRecord {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.r
}
