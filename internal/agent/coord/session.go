package coord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/agent/launch"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/multiprog"
	"github.com/berth-hpc/berth/internal/step/placement"
	"github.com/berth-hpc/berth/translate/env"
	neutral "github.com/berth-hpc/berth/translate/job"
)

// session is a step together with the client that requested it.
type session struct {
	c    *Coordinator
	conn *step.Conn

	mu         sync.Mutex
	tree       *launch.Tree // nil: not started
	allocation *allocation
	ending     bool
	timeLimit  *time.Timer   // terminates the step; nil: none
	noKill     bool          // the step continues without lost nodes
	announced  chan struct{} // with ending: closed when the client knows the reason

	rec       *record // set with tree
	observers *broadcaster

	sampling sync.Mutex
	sampler  *sampler // nil: no query is in progress

	joined  chan *step.Join // from the client of a part
	part    *part           // set with tree; nil: the step is not part of another
	settled chan struct{}   // closed by settle
	settle  func()          // called when the step has its tree, or will not get one

	cancel context.CancelFunc // called when the client has disconnected
}

// Serve runs the step that the client at conn requests, from its Request to its
// end, and closes conn. It also answers clients that attach to a step, query
// usage or read the job's output.
func (c *Coordinator) Serve(ctx context.Context, conn *step.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f, err := conn.Receive()
	if err != nil {
		return
	}
	switch f.Type {
	case step.FrameAttach:
		c.attach(conn, f)
		return
	case step.FrameQuery:
		c.query(conn, f)
		return
	case step.FrameTail:
		c.tail(conn, f)
		return
	}
	var req step.Request
	if f.Type != step.FrameRequest || f.Decode(&req) != nil {
		return
	}
	s := &session{
		c: c, conn: conn, cancel: cancel, noKill: req.NoKill, observers: newBroadcaster(),
		joined: make(chan *step.Join, 1), settled: make(chan struct{}),
	}
	s.settle = sync.OnceFunc(func() { close(s.settled) })
	defer s.settle()
	go s.read()
	if err := s.check(&req); err != nil {
		s.refuse(err)
		return
	}
	g, err := s.waitForAllocation(ctx, &req)
	if err == nil {
		if err = c.checkAllocated(g, &req.Command); err != nil {
			c.release(g)
		}
	}
	if err != nil {
		s.refuse(err)
		return
	}
	s.run(ctx, g, &req)
}

// check returns an error for a request that no allocation can satisfy.
func (s *session) check(req *step.Request) error {
	switch {
	case req.JobID != 0 && req.JobID != s.c.job.ID:
		return step.Refuse(fmt.Sprintf("Unable to confirm allocation for job %d: Invalid job id specified", req.JobID))
	case len(req.Command.Args) == 0:
		return step.Refuse("No command given to execute.")
	case len(req.Container) > 0:
		if err := s.c.job.checkContainer(req.Container); err != nil {
			return err
		}
	}
	if req.Command.MPI == step.MPIPMIx {
		if err := s.c.node.CheckPMIx(); err != nil {
			return step.Refuse(
				"cannot find mpi plugin for mpi/pmix: "+err.Error(),
				"Invalid MPI type 'pmix', --mpi=list for acceptable types",
			)
		}
	}
	return nil
}

// checkAllocated returns an error if the command does not fit the step's allocation.
func (c *Coordinator) checkAllocated(g *allocation, cmd *step.Command) error {
	if cmd.Programs != nil {
		if lines := multiprog.Check(cmd.Args[0], cmd.Programs, g.layout.Count); lines != nil {
			return step.Refuse(lines...)
		}
	}
	return c.checkBinding(g, &cmd.CPUBind)
}

// waitForAllocation waits until the step can start.
func (s *session) waitForAllocation(ctx context.Context, req *step.Request) (*allocation, error) {
	var deadline <-chan time.Time
	if req.Immediate != nil {
		deadline = time.After(time.Duration(*req.Immediate) * time.Second)
	}
	for waited := false; ; waited = true {
		g, wait, err := s.c.allocate(s, req)
		if err != nil {
			return nil, err
		}
		if g != nil {
			if waited {
				s.sendText(step.FrameWaiting, fmt.Sprintf("Step created for job %d", s.c.job.ID))
			}
			return g, nil
		}
		if !waited && req.Immediate == nil {
			s.sendText(step.FrameWaiting, fmt.Sprintf(
				"Job %d step creation temporarily disabled, retrying (%s)", s.c.job.ID, placement.ReasonBusy))
		}
		select {
		case <-wait:
		case <-deadline:
			return nil, placement.Refuse(s.c.job.ID, placement.ReasonBusy)
		case <-ctx.Done():
			return nil, fmt.Errorf("step creation: %w", ctx.Err())
		}
	}
}

// run starts a step and returns when it has ended.
func (s *session) run(ctx context.Context, g *allocation, req *step.Request) {
	created := s.c.describe(g)
	if req.Part && !s.waitForJoin(ctx, g, created) {
		s.c.release(g)
		return
	}
	l := s.c.launch(g, req)
	if s.part != nil {
		s.part.adapt(l)
	}
	rec := s.c.newRecord(g, req)
	defer s.observers.close()
	end := sync.OnceFunc(func() { s.c.end(g, rec) })
	defer end()
	s.observers.open(created)
	s.mu.Lock() // the reader must not deliver a frame before the tree exists
	if s.part == nil && s.conn.SendJSON(step.FrameCreated, created) != nil {
		s.mu.Unlock()
		return
	}
	s.allocation, s.rec = g, rec
	s.c.publish(rec)
	s.tree = launch.Start(ctx, s.c.node, l, s, s.part == nil)
	s.mu.Unlock()
	s.settle()
	if s.c.isClosed() {
		s.terminate(Cancelled, s.c.job.KillWait)
	}
	defer s.clearTimeLimit()
	if req.TimeLimit > 0 {
		s.setTimeLimit(req.TimeLimit)
		if req.Signal > 0 {
			delay := time.Duration(req.TimeLimit)*time.Minute - time.Duration(req.SignalBefore)*time.Second
			warning := time.AfterFunc(max(delay, 0), func() { s.signal(&step.Signal{Signal: req.Signal}) })
			defer warning.Stop()
		}
	}
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()
	s.tree.Wait()
	end() // before the client is notified, because its next step needs the CPUs
	s.waitForNotice()
	s.conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // the client may be gone
}

// setTimeLimit sets the time limit of a started step, in minutes from its start,
// or neutral.Unlimited. It returns false if the step was not started.
func (s *session) setTimeLimit(minutes int32) (started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rec == nil {
		return false
	}
	s.stopTimeLimit()
	if end := s.rec.setTimeLimit(minutes); minutes != neutral.Unlimited {
		s.timeLimit = time.AfterFunc(time.Until(end), func() { s.terminate(TimeLimit, s.c.job.KillWait) })
	}
	return true
}

// clearTimeLimit stops the timer of a step that has ended. Its record keeps the limit.
func (s *session) clearTimeLimit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopTimeLimit()
}

// stopTimeLimit stops the timer. The caller holds s.mu.
func (s *session) stopTimeLimit() {
	if s.timeLimit != nil {
		s.timeLimit.Stop()
		s.timeLimit = nil
	}
}

// killedBy records the user who cancels the step, if it was started.
func (s *session) killedBy(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rec != nil {
		s.rec.killedBy(user)
	}
}

// describe returns the message that describes a step to its client.
func (c *Coordinator) describe(g *allocation) *step.Created {
	created := &step.Created{
		StepID: g.id, PerNode: g.layout.PerNode(), Tasks: g.layout.Count,
		TaskNode: g.layout.TaskNode(), KillWait: c.job.KillWait, MaxInput: step.MaxInput,
	}
	for _, i := range g.layout.Nodes {
		created.Nodes = append(created.Nodes, c.job.Nodes[i].Name)
	}
	return created
}

// waitForNotice waits until the client of a step that is being terminated has received the
// notice, which must arrive before the end of the step.
func (s *session) waitForNotice() {
	s.mu.Lock()
	announced := s.announced
	s.mu.Unlock()
	if announced != nil {
		<-announced
	}
}

// isClosed reports whether the coordinator was closed.
func (c *Coordinator) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// launch returns the message that describes a step to the agents.
func (c *Coordinator) launch(g *allocation, req *step.Request) *step.Launch {
	shape := env.StepShape{
		ID: g.id, JobID: c.job.HetID, CPUsPerTask: req.Shape.CPUsPerTask, TasksPerNode: req.Shape.TasksPerNode,
		Distribution: req.Shape.Distribution, GPUsPerTask: req.GPUsPerTask, CPUBind: req.CPUBind,
		TasksPerGPU: req.TasksPerGPU, GPUBind: req.Command.GPUBind,
		LaunchAddress: c.job.Address, Ports: g.ports.String(), Preserve: req.PreserveEnv,
	}
	if req.Named {
		shape.Name = req.Name
	}
	if req.Command.Umask >= 0 {
		shape.Umask = fmt.Sprintf("%04o", req.Command.Umask)
	}
	for _, n := range g.nodes {
		tasks := make([]int32, len(n.Tasks))
		for i, t := range n.Tasks {
			tasks[i] = int32(t)
		}
		shape.Nodes = append(shape.Nodes, env.StepNode{Name: c.job.Nodes[n.Node].Name, Tasks: tasks})
	}
	command := req.Command
	if !command.RlimitsAsked {
		command.Rlimits = neutral.WithoutRlimits(command.Rlimits, c.job.Unpropagated)
	}
	command.OOMKillStep = c.job.OOMKillStep
	if req.OOMKillStep != nil {
		command.OOMKillStep = *req.OOMKillStep
	}
	return &step.Launch{JobID: c.job.ID, Step: shape, Nodes: g.nodes, Command: command}
}

// read handles the frames of the client until it disconnects.
func (s *session) read() {
	defer s.cancel()
	for {
		f, err := s.conn.Receive()
		if err != nil {
			return
		}
		s.mu.Lock()
		tree := s.tree
		s.mu.Unlock()
		switch {
		case tree == nil && f.Type == step.FrameJoin:
			if !s.receiveJoin(f) {
				return
			}
			continue
		case tree == nil:
			return // before the step is created, a client can only disconnect
		case f.Type == step.FrameSignal:
			var sig step.Signal
			if f.Decode(&sig) != nil {
				return
			}
			if sig.Terminate {
				wait := s.c.job.KillWait
				if sig.Signal == int32(syscall.SIGKILL) {
					wait = step.KillNow
				}
				s.terminate(Cancelled, wait)
				continue
			}
		}
		if tree.Down(s.part.toWhole(f)) != nil {
			return
		}
	}
}

// Send forwards a frame from the step's tasks to the client and its observers, and updates
// the step's record.
func (s *session) Send(f *step.Frame) error {
	f = s.part.toPart(f)
	switch f.Type {
	case step.FrameExit:
		var e step.Exit
		if f.Decode(&e) == nil {
			s.c.recordStatus(e.Status)
			s.rec.addExit(&e)
		}
	case step.FrameSamples:
		return s.addSamples(f)
	case step.FrameAbort:
		notice := *f
		notice.Type, f = step.FrameNotice, &notice
		defer func() { go s.terminate(Cancelled, s.c.job.KillWait) }()
	case step.FrameNodeLost:
		var n step.NodeLost
		nodes := s.allocation.layout.Nodes
		if f.Decode(&n) == nil && n.Node >= 0 && int(n.Node) < len(nodes) {
			s.c.recordLoss(s.c.job.Nodes[nodes[n.Node]].Name)
		}
		s.rec.setEndState("NODE_FAIL")
		if s.noKill {
			break
		}
		defer func() { go s.terminate(NodeFailure, s.c.job.KillWait) }()
	}
	s.observers.send(f)
	return s.conn.Send(f)
}

// recordStatus records the wait status of a task for Derived.
func (c *Coordinator) recordStatus(status uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.derived = max(c.derived, status&0xff7f)
}

// terminate terminates the step: SIGTERM, and SIGKILL after wait seconds, or only SIGKILL
// with step.KillNow. A second call has no effect.
func (s *session) terminate(reason EndReason, wait int32) {
	s.mu.Lock()
	if s.ending || s.tree == nil { // run terminates a step that starts later
		s.mu.Unlock()
		return
	}
	seconds := wait + 2
	if wait == step.KillNow { // Slurm's srun prints the same number in this case
		seconds = s.c.job.KillWait + 2
	}
	announced := make(chan struct{})
	s.ending, s.announced = true, announced
	s.mu.Unlock()
	s.rec.setEndState(reason.state())
	s.signal(&step.Signal{Terminate: true, KillWait: wait})
	// A client that does not read must not delay the end of the step.
	go func() {
		defer close(announced)
		if reason != TimeLimit { // at a time limit Slurm's srun prints only the lines about the tasks' end
			s.conn.SendJSON(step.FrameAborted, step.Aborted{Seconds: seconds}) //nolint:errcheck // it may be gone
		}
		s.sendNotice(reason)
	}()
}

// sendNotice writes the notice of the step's cancellation to its output. The step must have
// an allocation.
func (s *session) sendNotice(reason EndReason) {
	first := s.c.job.Nodes[s.allocation.layout.Nodes[0]].Name
	s.sendText(step.FrameNotice, fmt.Sprintf("slurmstepd: error: *** STEP %d.%d ON %s CANCELLED AT %s%s ***\n",
		s.c.job.ID, s.allocation.id, first, s.c.now(), reason.Suffix()))
}

// announceCancel writes the notice before the step is sent SIGTERM. It does not
// wait for a client that does not read.
func (s *session) announceCancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tree != nil && !s.ending {
		go s.sendNotice(Cancelled)
	}
}

// signal sends a signal to the tasks, if the step was started.
func (s *session) signal(sig *step.Signal) {
	f, err := step.JSON(step.FrameSignal, sig)
	s.mu.Lock()
	tree := s.tree
	s.mu.Unlock()
	if err == nil && tree != nil {
		tree.Down(f) //nolint:errcheck // a signal of ours is well-formed
	}
}

// abort kills the step and closes the connection to its client.
func (s *session) abort() {
	s.mu.Lock()
	tree := s.tree
	s.mu.Unlock()
	if tree != nil {
		tree.Abort()
	}
	s.conn.Close()
}

func (s *session) sendText(t step.Type, text string) {
	s.conn.Send(&step.Frame{Type: t, Task: step.AllTasks, Data: []byte(text)}) //nolint:errcheck // it may be gone
}

// refuse reports to the client why its step is refused.
func (s *session) refuse(err error) {
	var refused *step.RefusedError
	if !errors.As(err, &refused) {
		refused = &step.RefusedError{Lines: []string{err.Error()}}
	}
	for _, line := range refused.Lines {
		s.conn.Send(&step.Frame{ //nolint:errcheck // it may be gone
			Type: step.FrameRefused, Flags: refused.ExitCode, Task: step.AllTasks, Data: []byte(line),
		})
	}
	s.conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // it may be gone
}
