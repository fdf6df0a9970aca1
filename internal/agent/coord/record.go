package coord

import (
	"sync"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
)

// record keeps what is accounted of one step. Safe for concurrent use.
type record struct {
	mu   sync.Mutex
	r    wire.StepRecord
	node []int32 // of each task
	code int     // highest so far
	all  bool    // no task has been counted yet when false
	why  string  // state of a step that was ended from outside
}

func (c *Coordinator) newRecord(g *grant, req *step.Request) *record {
	x := &record{node: g.layout.TaskNode(), code: -1, r: wire.StepRecord{
		ID: g.id, Name: req.Name, Tasks: int32(g.layout.Count), Layout: req.Shape.Distribution,
		State: "RUNNING", Start: time.Now().UnixNano(), TimeLimit: req.TimeLimit,
		SrunHost: req.SrunHost[:min(len(req.SrunHost), longestHost)], SrunPID: req.SrunPID,
	}}
	if x.r.Layout == "" {
		x.r.Layout = "block"
		if int(g.layout.Count) <= len(g.nodes) {
			x.r.Layout = "cyclic"
		}
	}
	if x.r.Name == "" || !req.Named {
		x.r.Name = base(req.Command.Args[0])
	}
	for _, n := range g.nodes {
		x.r.Nodes = append(x.r.Nodes, c.job.Nodes[n.Node].Name)
		x.r.CPUs += n.CPUs
		x.r.Memory += c.memoryOf(&c.job.Nodes[n.Node], &req.Shape, n.CPUs)
	}
	return x
}

// longestHost bounds the name of a machine, RFC 1035.
const longestHost = 255

// memoryOf is what a step may have of a node where it has so many CPUs: what it
// asks for, else what the job has by the same measure.
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

func base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

// exit counts the end of tasks.
func (x *record) exit(e *step.Exit) {
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
			x.add(t, &e.Used)
		}
	}
}

// add takes a task's usage into the step's. x.mu is held.
func (x *record) add(task uint32, u *step.TaskUsage) {
	Add(&x.r.Usage, x.all, x.node[task], int32(task), u)
	x.all = true
}

// Add takes what one task has used into what its step has; some is false for
// the first task.
func Add(s *wire.Usage, some bool, node, task int32, u *step.TaskUsage) {
	s.UserCPU += u.User
	s.SystemCPU += u.System
	s.TotalRSS += u.RSS
	s.TotalVMSize += u.VMSize
	s.TotalPages += u.Pages
	s.DiskRead += u.Read
	s.DiskWrite += u.Write
	if u.RSS > s.MaxRSS || !some {
		s.MaxRSS, s.MaxRSSNode, s.MaxRSSTask = u.RSS, node, task
	}
	if u.VMSize > s.MaxVMSize || !some {
		s.MaxVMSize, s.MaxVMSizeNode, s.MaxVMSizeTask = u.VMSize, node, task
	}
	if u.Pages > s.MaxPages || !some {
		s.MaxPages, s.MaxPagesNode, s.MaxPagesTask = u.Pages, node, task
	}
	if cpu := u.User + u.System; cpu < s.MinCPU || !some {
		s.MinCPU, s.MinCPUNode, s.MinCPUTask = cpu, node, task
	}
}

// ended says why the step was ended from outside; the first reason counts.
func (x *record) ended(state string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.why == "" {
		x.why = state
	}
}

// killedBy notes the user who cancelled the step; the first counts.
func (x *record) killedBy(user string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.why == "" && x.r.KilledBy == "" {
		x.r.KilledBy = user
	}
}

// limit notes another time limit and tells when it is over.
func (x *record) limit(minutes int32) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.r.TimeLimit = max(minutes, 0)
	return time.Unix(0, x.r.Start).Add(time.Duration(minutes) * time.Minute)
}

// over closes the record.
func (x *record) over() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.r.End = time.Now().UnixNano()
	switch {
	case x.why != "":
		x.r.State = x.why
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
