package coord

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// session is one client's step.
type session struct {
	c    *Coordinator
	conn *step.Conn

	mu     sync.Mutex
	tree   *launch.Tree // nil: not started
	grant  *grant
	ending bool
	limits *time.Timer   // ends the step at its time limit; nil: none
	noKill bool          // it goes on without a node that is lost
	told   chan struct{} // with ending: closed when the client was told why

	rec *record // with tree
	hub *hub    // those who look on

	sampling sync.Mutex
	sampler  *sampler // nil: nobody asks

	joined chan *step.Join // what the client of a part sends
	join   *join           // with tree; nil: the step is no part of another
	begun  chan struct{}   // closed by begin
	begin  func()          // the step has its tree, or will get none

	cancel context.CancelFunc // the client is gone or does not want to wait
}

// Serve runs the step that the client at conn asks for, from its Request to
// the step's end, and closes conn.
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
	s := &session{c: c, conn: conn, cancel: cancel, hub: newHub(), joined: make(chan *step.Join, 1), begun: make(chan struct{}), noKill: req.NoKill}
	s.begin = sync.OnceFunc(func() { close(s.begun) })
	defer s.begin()
	go s.read()
	if err := s.check(&req); err != nil {
		s.refuse(err)
		return
	}
	g, err := s.place(ctx, &req)
	if err == nil {
		if err = c.checkGranted(g, &req.Command); err != nil {
			c.release(g)
		}
	}
	if err != nil {
		s.refuse(err)
		return
	}
	s.run(ctx, g, &req)
}

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
			return step.Refuse("cannot find mpi plugin for mpi/pmix: "+err.Error(), "Invalid MPI type 'pmix', --mpi=list for acceptable types")
		}
	}
	return nil
}

// checkGranted checks what depends on the step's place.
func (c *Coordinator) checkGranted(g *grant, cmd *step.Command) error {
	if cmd.Programs != nil {
		if lines := multiprog.Check(cmd.Args[0], cmd.Programs, g.layout.Count); lines != nil {
			return step.Refuse(lines...)
		}
	}
	return c.checkBinding(g, &cmd.CPUBind)
}

// place waits until the step can start.
func (s *session) place(ctx context.Context, req *step.Request) (*grant, error) {
	var deadline <-chan time.Time
	if req.Immediate != nil {
		deadline = time.After(time.Duration(*req.Immediate) * time.Second)
	}
	for said := false; ; said = true {
		g, wait, err := s.c.try(s, req)
		if err != nil {
			return nil, err
		}
		if g != nil {
			if said {
				s.text(step.FrameWaiting, fmt.Sprintf("Step created for job %d", s.c.job.ID))
			}
			return g, nil
		}
		if !said && req.Immediate == nil {
			s.text(step.FrameWaiting, fmt.Sprintf(
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

// run starts a granted step and stays until it is over.
func (s *session) run(ctx context.Context, g *grant, req *step.Request) {
	release := sync.OnceFunc(func() { s.c.release(g) })
	defer release()
	created := s.c.created(g)
	if req.Part && !s.awaitJoin(ctx, g, created) {
		return
	}
	l := s.c.launch(g, req)
	if s.join != nil {
		s.join.fit(l)
	}
	rec := s.c.newRecord(g, req)
	defer func() {
		rec.over()
		s.c.tell(rec)
		s.hub.close()
	}()
	s.hub.begin(created)
	s.mu.Lock() // read must not see a frame for the step before there is one
	if s.join == nil && s.conn.SendJSON(step.FrameCreated, created) != nil {
		s.mu.Unlock()
		return
	}
	s.grant, s.rec = g, rec
	s.c.tell(rec)
	s.tree = launch.Start(ctx, s.c.node, l, s, s.join == nil)
	s.mu.Unlock()
	s.begin()
	if s.c.ending() {
		s.terminate("", s.c.job.KillWait)
	}
	defer s.unlimit()
	if req.TimeLimit > 0 {
		s.limit(req.TimeLimit)
		if ahead := time.Duration(req.TimeLimit)*time.Minute - time.Duration(req.SignalBefore)*time.Second; req.Signal > 0 {
			w := time.AfterFunc(max(ahead, 0), func() { s.down(&step.Signal{Signal: req.Signal}) })
			defer w.Stop()
		}
	}
	stop := context.AfterFunc(ctx, s.abort)
	defer stop()
	s.tree.Wait()
	release() // before the client knows: its next step must find the CPUs free
	s.awaitNotice()
	s.conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // the client may be gone
}

// limit gives the step, if it was started, another time limit in minutes from
// its start, or neutral.Unlimited.
func (s *session) limit(minutes int32) (started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rec == nil {
		return false
	}
	s.stopLimit()
	if end := s.rec.limit(minutes); minutes != neutral.Unlimited {
		s.limits = time.AfterFunc(time.Until(end), func() { s.terminate("DUE TO TIME LIMIT", s.c.job.KillWait) })
	}
	return true
}

// unlimit has the time limit of a step that is over end nothing; its record keeps it.
func (s *session) unlimit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLimit()
}

// stopLimit stops the timer; the caller holds s.mu.
func (s *session) stopLimit() {
	if s.limits != nil {
		s.limits.Stop()
		s.limits = nil
	}
}

// killedBy notes who ends the step by itself, if it was started.
func (s *session) killedBy(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rec != nil {
		s.rec.killedBy(user)
	}
}

// created is a granted step as its client is told about it.
func (c *Coordinator) created(g *grant) *step.Created {
	created := &step.Created{
		StepID: g.id, PerNode: g.layout.PerNode(), Tasks: g.layout.Count, TaskNode: g.layout.TaskNode(), KillWait: c.job.KillWait,
	}
	for _, i := range g.layout.Nodes {
		created.Nodes = append(created.Nodes, c.job.Nodes[i].Name)
	}
	return created
}

// awaitNotice returns when a client whose step is being ended knows why: that
// comes before the step's end.
func (s *session) awaitNotice() {
	s.mu.Lock()
	told := s.told
	s.mu.Unlock()
	if told != nil {
		<-told
	}
}

// ending tells whether the coordinator was closed.
func (c *Coordinator) ending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// launch describes a granted step to the agents.
func (c *Coordinator) launch(g *grant, req *step.Request) *step.Launch {
	shape := env.StepShape{
		ID: g.id, JobID: c.job.HetID, CPUsPerTask: req.Shape.CPUsPerTask, TasksPerNode: req.Shape.TasksPerNode,
		Distribution: req.Shape.Distribution, GPUsPerTask: req.GPUsPerTask, CPUBind: req.CPUBind,
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
	if say := req.OOMKillStep; say != nil {
		command.OOMKillStep = *say
	}
	return &step.Launch{JobID: c.job.ID, Step: shape, Nodes: g.nodes, Command: command}
}

// read takes what the client sends until it is gone.
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
			if !s.takeJoin(f) {
				return
			}
			continue
		case tree == nil:
			return // nothing may be sent before the step is there, but the wish to give up
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
				s.terminate("", wait)
				continue
			}
		}
		if tree.Down(s.join.down(f)) != nil {
			return
		}
	}
}

// Send passes a frame of the step to the client and takes note of it.
func (s *session) Send(f *step.Frame) error {
	f = s.join.up(f)
	switch f.Type {
	case step.FrameExit:
		var e step.Exit
		if f.Decode(&e) == nil {
			s.c.note(e.Status)
			s.rec.exit(&e)
		}
	case step.FrameSamples:
		return s.sampled(f)
	case step.FrameAbort:
		notice := *f
		notice.Type, f = step.FrameNotice, &notice
		defer func() { go s.terminate("", s.c.job.KillWait) }()
	case step.FrameNodeLost:
		var n step.NodeLost
		if nodes := s.grant.layout.Nodes; f.Decode(&n) == nil && n.Node >= 0 && int(n.Node) < len(nodes) {
			s.c.noteLoss(s.c.job.Nodes[nodes[n.Node]].Name)
		}
		s.rec.ended("NODE_FAIL")
		if s.noKill {
			break
		}
		defer func() { go s.terminate("DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", s.c.job.KillWait) }()
	}
	s.hub.send(f)
	return s.conn.Send(f)
}

func (c *Coordinator) note(status uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.derived = max(c.derived, status&0xff7f)
}

// terminate ends the step in order; a second call does nothing.
// With step.KillNow the tasks are killed without a warning.
func (s *session) terminate(reason string, wait int32) {
	s.mu.Lock()
	if s.ending || s.tree == nil { // one that is not started looks at ending() itself
		s.mu.Unlock()
		return
	}
	seconds := wait + 2
	if wait == step.KillNow { // Slurm's srun says the same then
		seconds = s.c.job.KillWait + 2
	}
	told := make(chan struct{})
	s.ending, s.told = true, told
	s.mu.Unlock()
	s.rec.ended(stateOf(reason))
	s.down(&step.Signal{Terminate: true, KillWait: wait, Reason: reason})
	if reason != "" {
		reason = " " + reason
	}
	// In a goroutine of its own: a client that does not read must not delay
	// the end of the step.
	go func() {
		defer close(told)
		if stateOf(reason) != "TIMEOUT" { // of that, Slurm's srun hears from its tasks alone
			s.conn.SendJSON(step.FrameAborted, step.Aborted{Seconds: seconds}) //nolint:errcheck // it may be gone
		}
		s.notice(reason)
	}()
}

// notice says in the step's output that it is cancelled; reason begins with a
// space, or is empty. The step has been granted.
func (s *session) notice(reason string) {
	first := s.c.job.Nodes[s.grant.layout.Nodes[0]].Name
	s.text(step.FrameNotice, fmt.Sprintf("slurmstepd: error: *** STEP %d.%d ON %s CANCELLED AT %s%s ***\n",
		s.c.job.ID, s.grant.id, first, s.c.now(), reason))
}

// warn says that the step is cancelled, before it is sent SIGTERM, without
// waiting for a client that does not read.
func (s *session) warn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tree != nil && !s.ending {
		go s.notice("")
	}
}

// stateOf is the state of a step that ends for the reason in its notice.
func stateOf(reason string) string {
	if strings.Contains(reason, "TIME LIMIT") {
		return "TIMEOUT"
	}
	return "CANCELLED"
}

func (s *session) down(sig *step.Signal) {
	f, err := step.JSON(step.FrameSignal, sig)
	s.mu.Lock()
	tree := s.tree
	s.mu.Unlock()
	if err == nil && tree != nil {
		tree.Down(f) //nolint:errcheck // a signal of ours is well-formed
	}
}

// abort kills the step at once.
func (s *session) abort() {
	s.mu.Lock()
	tree := s.tree
	s.mu.Unlock()
	if tree != nil {
		tree.Abort()
	}
	s.conn.Close()
}

func (s *session) text(t step.Type, text string) {
	s.conn.Send(&step.Frame{Type: t, Task: step.AllTasks, Data: []byte(text)}) //nolint:errcheck // it may be gone
}

func (s *session) refuse(err error) {
	var no *step.RefusedError
	if !errors.As(err, &no) {
		no = &step.RefusedError{Lines: []string{err.Error()}}
	}
	for _, line := range no.Lines {
		s.conn.Send(&step.Frame{Type: step.FrameRefused, Flags: no.ExitCode, Task: step.AllTasks, Data: []byte(line)}) //nolint:errcheck // it may be gone
	}
	s.conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // it may be gone
}
