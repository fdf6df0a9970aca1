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

// gatherTime is how long srun waits for tasks that end in the same way, to report
// them in one line.
const gatherTime = 50 * time.Millisecond

// exits records how the tasks of a part ended.
type exits struct {
	code    int // highest exit code so far
	nodes   []string
	node    []int32 // of each task
	over    []bool
	failed  []bool
	left    int
	pending map[ending][]int
	order   []ending
	timer   *time.Timer
	// forced means that SIGKILL or SIGTERM ended a task.
	forced bool
}

// ending is the subject of one line: a node, and the wait status of tasks there.
type ending struct {
	node   int32
	status uint32
}

func (x *exits) init(c *step.Created) {
	x.nodes, x.node = c.Nodes, c.TaskNode
	x.over, x.failed = make([]bool, c.Tasks), make([]bool, c.Tasks)
	x.left = int(c.Tasks)
	x.pending = map[ending][]int{}
}

// add records the end of a task. It returns false for a task that does not exist or
// has already ended.
func (x *exits) add(task, status uint32) bool {
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

// flush prints the pending lines. The caller holds all.mu.
func (x *exits) flush(r *run) {
	if x.left == 0 && r.restore != nil {
		r.restore() // in raw mode, a newline would not return the cursor
	}
	if r.parsed.Client.Quiet > 1 { // -QQ suppresses errors as well
		x.order = nil
	}
	for _, key := range x.order {
		ws := syscall.WaitStatus(key.status)
		interrupted := r.all.aborted && ws.Signaled() && ws.Signal() == syscall.SIGINT // as the user requested
		if r.all.alreadyReported(key.status) || interrupted {
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
		r.o.printf("error: %s: %s: %s", x.nodes[key.node], taskList(tasks), what)
	}
	x.order = nil
	clear(x.pending)
	x.timer = nil
}

// isForced reports whether a wait status makes Slurm's srun print a last line.
func isForced(status uint32) bool {
	ws := syscall.WaitStatus(status)
	return ws.Signaled() && (ws.Signal() == syscall.SIGKILL || ws.Signal() == syscall.SIGTERM)
}

// reportForced prints the last line of a step with a task that was killed, unless
// the abort of the step was reported. The caller holds all.mu.
func (r *run) reportForced() {
	if r.exits.forced && !r.abortReported {
		r.info("Force Terminated StepId=%s", r.id())
	}
}

// alreadyReported reports whether a wait status was printed before, if
// SLURM_SRUN_REDUCE_TASK_EXIT_MSG requests each only once. The caller holds s.mu.
func (s *steps) alreadyReported(status uint32) bool {
	if v := s.o.p.Env("SLURM_SRUN_REDUCE_TASK_EXIT_MSG"); v == "" || v == "0" {
		return false
	}
	if s.reported == nil {
		s.reported = map[uint32]bool{}
	}
	before := s.reported[status]
	s.reported[status] = true
	return before
}

// signalText returns the text of strsignal(3).
func signalText(s syscall.Signal) string {
	text := s.String()
	return strings.ToUpper(text[:1]) + text[1:]
}

// taskList returns "task 0", or "tasks 0-2,5".
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
	r.reportExit(e)
	for _, t := range e.Tasks {
		if x.add(t, e.Status) && isForced(e.Status) {
			x.forced = true
		}
	}
	if len(x.order) > 0 && x.timer == nil {
		x.timer = time.AfterFunc(gatherTime, func() {
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
	if w := r.parsed.Step.Wait; w != nil && *w > 0 && !r.all.taskEnded {
		r.all.timer = time.AfterFunc(time.Duration(*w)*time.Second, func() { r.all.waitExpired(*w) })
	}
	r.all.taskEnded = true
}

// left returns the number of tasks that have not ended. The caller holds s.mu.
func (s *steps) left() (n int) {
	for _, r := range s.parts {
		n += r.exits.left
	}
	return n
}

// stop terminates the parts that are not being terminated, and reports it. The
// caller holds s.mu.
func (s *steps) stop(how step.Signal) {
	for _, r := range s.parts {
		if !r.ending {
			r.terminate(how)
			r.info("launch/slurm: _step_signal: Terminating StepId=%s", r.id())
		}
	}
}

// terminate requests the termination of the part. The caller holds all.mu. The
// frame is sent by another goroutine, because the reader of the connection may be
// waiting for the mutex.
func (r *run) terminate(how step.Signal) {
	r.ending = true
	go r.conn.SendJSON(step.FrameSignal, how) //nolint:errcheck // the reader sees it
}

// waitExpired terminates the step when the time of --wait is over.
func (s *steps) waitExpired(seconds int32) {
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
		r.printStatus()
	}
	s.stop(step.Signal{Signal: int32(syscall.SIGKILL), Terminate: true})
}

// printStatus prints which tasks run and which have ended. The caller holds all.mu.
func (r *run) printStatus() {
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

// id returns JOB.STEP. The caller holds all.mu, and the step was created.
func (r *run) id() string { return fmt.Sprintf("%d.%d", r.req.JobID, r.created.StepID) }

// nodeLost handles the loss of a node.
func (r *run) nodeLost(n *step.NodeLost) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if n.Node < 0 || int(n.Node) >= len(r.exits.nodes) {
		return
	}
	r.exits.flush(r)
	r.o.printf("error: Node failure on %s", r.exits.nodes[n.Node])
	for t, node := range r.exits.node {
		if node == n.Node {
			r.exits.add(uint32(t), uint32(syscall.SIGKILL))
		}
	}
	delete(r.exits.pending, ending{n.Node, uint32(syscall.SIGKILL)}) // the line about the node covers them
	r.exits.order = slices.DeleteFunc(r.exits.order, func(e ending) bool { return e.node == n.Node })
}

// loseNodes marks all nodes of a part as lost, because its first node no longer
// answers.
func (r *run) loseNodes() {
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

// aborted reports that the step is being terminated.
func (r *run) aborted(a *step.Aborted) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.ending && r.parsed.Step.KillOnBadExit != nil {
		return
	}
	r.ending, r.abortReported = true, true
	r.o.printf("Job step aborted: Waiting up to %d seconds for job step to finish.", a.Seconds)
}
