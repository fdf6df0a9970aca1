package srun

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/affinity"
)

// gather is how long srun waits for tasks that end in the same way, to name
// them in one line.
const gather = 50 * time.Millisecond

// exits collects the ends of tasks.
type exits struct {
	code    int // highest so far
	nodes   []string
	node    []int32 // of each task
	over    []bool
	failed  []bool
	left    int
	pending map[ending][]int
	order   []ending
	timer   *time.Timer
	// forced: SIGKILL or SIGTERM ended a task.
	forced bool
}

// ending is one line: a node and the way tasks ended there.
type ending struct {
	node   int32
	status uint32
}

func (x *exits) begin(c *step.Created) {
	x.nodes, x.node = c.Nodes, c.TaskNode
	x.over, x.failed = make([]bool, c.Tasks), make([]bool, c.Tasks)
	x.left = int(c.Tasks)
	x.pending = map[ending][]int{}
}

// end notes that a task is over; false: it was before, or there is no such.
func (x *exits) end(task uint32, status uint32) bool {
	if int(task) >= len(x.over) || x.over[task] {
		return false
	}
	x.over[task] = true
	x.left--
	x.code = max(x.code, step.ExitCode(status))
	if status == 0 {
		return true
	}
	x.failed[task] = true
	key := ending{x.node[task], status}
	if x.pending[key] == nil {
		x.order = append(x.order, key)
	}
	x.pending[key] = append(x.pending[key], int(task))
	return true
}

// flush writes the lines that are pending. all.mu is held.
func (x *exits) flush(r *run) {
	if x.left == 0 && r.restore != nil {
		r.restore() // or the lines would run down the terminal like stairs
	}
	if r.parsed.Client.Quiet > 1 { // -QQ suppresses errors as well
		x.order = nil
	}
	for _, key := range x.order {
		ws := syscall.WaitStatus(key.status)
		if r.all.told(key.status) || r.all.aborted && ws.Signaled() && ws.Signal() == syscall.SIGINT { // as was asked for
			continue
		}
		tasks := x.pending[key]
		slices.Sort(tasks)
		what := fmt.Sprintf("Exited with exit code %d", key.status>>8&0xff)
		if ws.Signaled() {
			what = signalText(ws.Signal())
			if ws.CoreDump() {
				what += " (core dumped)"
			}
		}
		r.o.say("error: %s: %s: %s", x.nodes[key.node], taskList(tasks), what)
	}
	x.order = nil
	clear(x.pending)
	x.timer = nil
}

// isForced tells of the ends that Slurm's srun sums up in a last line.
func isForced(status uint32) bool {
	ws := syscall.WaitStatus(status)
	return ws.Signaled() && (ws.Signal() == syscall.SIGKILL || ws.Signal() == syscall.SIGTERM)
}

// last is the line at the end of a step with a task that was killed. A step
// that was aborted has been spoken of. all.mu is held.
func (r *run) last() {
	if r.exits.forced && !r.saidAborted {
		r.info("Force Terminated StepId=%s", r.id())
	}
}

// told tells whether the way in which tasks ended was named before, where
// SLURM_SRUN_REDUCE_TASK_EXIT_MSG wants each but once. s.mu is held.
func (s *steps) told(status uint32) bool {
	if v := s.o.p.Env("SLURM_SRUN_REDUCE_TASK_EXIT_MSG"); v == "" || v == "0" {
		return false
	}
	if s.named == nil {
		s.named = map[uint32]bool{}
	}
	before := s.named[status]
	s.named[status] = true
	return before
}

// signalText is strsignal(3).
func signalText(s syscall.Signal) string {
	text := s.String()
	return strings.ToUpper(text[:1]) + text[1:]
}

// taskList is "task 0", or "tasks 0-2,5".
func taskList(ids []int) string {
	list := affinity.FormatCPUList(ids)
	if len(ids) == 1 {
		return "task " + list
	}
	return "tasks " + list
}

// exited handles the end of tasks.
func (r *run) exited(e *step.Exit) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	x := &r.exits
	r.tellExit(e)
	for _, t := range e.Tasks {
		if x.end(t, e.Status) && isForced(e.Status) {
			x.forced = true
		}
	}
	if len(x.order) > 0 && x.timer == nil {
		x.timer = time.AfterFunc(gather, func() {
			r.all.mu.Lock()
			defer r.all.mu.Unlock()
			x.flush(r)
		})
	}
	if r.all.left() == 0 {
		return
	}
	if k := r.parsed.Step.KillOnBadExit; k != nil && *k && e.Status != 0 && !r.ending {
		x.flush(r)
		r.all.stop(step.Signal{Terminate: true})
	}
	if w := r.parsed.Step.Wait; w != nil && *w > 0 && !r.all.first {
		r.all.timer = time.AfterFunc(time.Duration(*w)*time.Second, func() { r.all.waited(*w) })
	}
	r.all.first = true
}

// left is the number of tasks that have not ended. s.mu is held.
func (s *steps) left() (n int) {
	for _, r := range s.parts {
		n += r.exits.left
	}
	return n
}

// stop ends the parts that are not being ended, in the given way, and says so.
// s.mu is held.
func (s *steps) stop(how step.Signal) {
	for _, r := range s.parts {
		if !r.ending {
			r.end(how)
			r.info("launch/slurm: _step_signal: Terminating StepId=%s", r.id())
		}
	}
}

// end asks for the end of the step. all.mu is held; the frame is sent from a
// goroutine of its own, since the reader of the connection may be waiting for
// us.
func (r *run) end(how step.Signal) {
	r.ending = true
	go r.conn.SendJSON(step.FrameSignal, how) //nolint:errcheck // the reader sees it
}

// waited is the end of --wait's time.
func (s *steps) waited(seconds int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left() == 0 || !slices.ContainsFunc(s.parts, func(r *run) bool { return !r.ending }) {
		return
	}
	for _, r := range s.parts {
		r.exits.flush(r)
	}
	lead := s.parts[0]
	lead.info("First task exited %ds ago", seconds)
	for _, r := range s.parts {
		r.status()
	}
	s.stop(step.Signal{Signal: int32(syscall.SIGKILL), Terminate: true})
}

// status tells how the tasks are. all.mu is held.
func (r *run) status() {
	var running, bad, good []int
	for t, over := range r.exits.over {
		switch {
		case !over:
			running = append(running, t)
		case r.exits.failed[t]:
			bad = append(bad, t)
		default:
			good = append(good, t)
		}
	}
	for _, l := range []struct {
		ids  []int
		text string
	}{{running, "running"}, {bad, "exited abnormally"}, {good, "exited"}} {
		if len(l.ids) > 0 {
			r.info("StepId=%s %s: %s", r.id(), taskList(l.ids), l.text)
		}
	}
}

// id is JOB.STEP. all.mu is held and the step exists.
func (r *run) id() string { return fmt.Sprintf("%d.%d", r.req.JobID, r.created.StepID) }

func (r *run) nodeLost(n *step.NodeLost) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if n.Node < 0 || int(n.Node) >= len(r.exits.nodes) {
		return
	}
	r.exits.flush(r)
	r.o.say("error: Node failure on %s", r.exits.nodes[n.Node])
	for t, node := range r.exits.node {
		if node == n.Node {
			r.exits.end(uint32(t), uint32(syscall.SIGKILL))
		}
	}
	delete(r.exits.pending, ending{n.Node, uint32(syscall.SIGKILL)}) // the node says it for them
	r.exits.order = slices.DeleteFunc(r.exits.order, func(e ending) bool { return e.node == n.Node })
}

// vanished takes the nodes of a part for lost whose first one has hung up for
// good.
func (r *run) vanished() {
	r.all.mu.Lock()
	var lost []int32
	for t, over := range r.exits.over {
		if node := r.exits.node[t]; !over && !slices.Contains(lost, node) {
			lost = append(lost, node)
		}
	}
	r.all.mu.Unlock()
	for _, node := range lost {
		r.nodeLost(&step.NodeLost{Node: node})
	}
}

func (r *run) aborted(a *step.Aborted) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.ending && r.parsed.Step.KillOnBadExit != nil {
		return
	}
	r.ending, r.saidAborted = true, true
	r.o.say("Job step aborted: Waiting up to %d seconds for job step to finish.", a.Seconds)
}
