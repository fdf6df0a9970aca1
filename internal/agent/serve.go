package agent

import (
	"context"
	"net"
	"os"
	"sync/atomic"

	"github.com/berth-hpc/berth/internal/agent/launch"
	"github.com/berth-hpc/berth/internal/agent/peer"
	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
)

// peerListener accepts connections of other agents and of the API role. agent is the Agent
// of the current job, as several jobs may run in the pod one after the other.
type peerListener struct{ agent atomic.Pointer[Agent] }

// serve accepts connections until l is closed.
func (p *peerListener) serve(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		a := p.agent.Load()
		go func() {
			conn, isAgent, err := a.identity.Accept(c)
			if err != nil {
				a.log.Warn("refused a connection", "from", c.RemoteAddr().String(), "error", err)
				return
			}
			a.serve(ctx, step.NewConn(conn), isAgent)
		}()
	}
}

// serveUnix accepts connections of processes on this node.
func (a *Agent) serveUnix(ctx context.Context) {
	for {
		c, err := a.unix.AcceptUnix()
		if err != nil {
			return
		}
		if !peer.Allowed(c, os.Getuid()) {
			a.log.Warn("refused a connection of another user")
			_ = c.Close()
			continue
		}
		go a.serve(ctx, step.NewConn(c), false)
	}
}

// serve handles a connection according to its first message. isAgent is true for
// connections of other agents.
func (a *Agent) serve(ctx context.Context, conn *step.Conn, isAgent bool) {
	var open step.Open
	if err := conn.Expect(step.FrameOpen, &open); err != nil {
		conn.Close()
		return
	}
	switch {
	case open.Kind == step.KindStop && isAgent:
		spawn.Stop()
		conn.Close()
	case open.Kind == step.KindContinue && isAgent:
		spawn.Continue()
		conn.Close()
	case open.Kind == step.KindLaunch && isAgent:
		a.serveLaunch(ctx, conn)
	case a.coord != nil && !isAgent && !a.waitForProlog(ctx):
		refuse(conn, "Job prolog failed")
	case open.Kind == step.KindResumable && a.coord != nil:
		a.serveResumable(context.WithoutCancel(ctx), conn, &open)
	case open.Kind == step.KindClient && a.coord != nil:
		a.coord.Serve(context.WithoutCancel(ctx), conn)
	case open.Kind == step.KindClient && !isAgent:
		a.relay(ctx, conn)
	default:
		conn.Close()
	}
}

// serveLaunch runs subtrees of steps for another agent, one after the other on the
// same connection. If that agent goes away, the tasks are killed.
func (a *Agent) serveLaunch(ctx context.Context, conn *step.Conn) {
	defer conn.Close()
	var l step.Launch
	if err := conn.Expect(step.FrameLaunch, &l); err != nil {
		return
	}
	for a.isValid(&l) {
		next := a.runLaunch(ctx, conn, &l)
		if next == nil {
			return
		}
		l = *next
	}
}

// runLaunch runs one subtree and waits for the next launch. It returns nil if there
// is none.
func (a *Agent) runLaunch(ctx context.Context, conn *step.Conn, l *step.Launch) (next *step.Launch) {
	if !a.waitForProlog(ctx) {
		a.refuseLaunch(conn, l)
		return nil
	}
	if a.job.Batch.NoKill { // the coordinator must see the loss of this node, not the end of its tasks
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		defer stop()
	}
	tree := launch.Start(context.WithoutCancel(ctx), a.node, l, conn, false)
	read := make(chan *step.Launch, 1)
	go func() {
		defer close(read)
		for {
			f, err := conn.Receive()
			if err == nil && f.Type == step.FrameLaunch {
				next := new(step.Launch)
				if f.Decode(next) == nil {
					read <- next
					return
				}
			}
			// Down drops frames for a step that has ended.
			if err != nil || tree.Down(f) != nil {
				tree.Abort()
				return
			}
		}
	}()
	tree.Wait()
	if conn.Send(&step.Frame{Type: step.FrameDone}) != nil {
		conn.Close()
	}
	return <-read
}

// isValid reports whether the values of a launch are valid indexes for this job.
func (a *Agent) isValid(l *step.Launch) bool {
	if l.JobID != a.welcome.JobID || len(l.Nodes) == 0 || len(l.Command.Args) == 0 {
		return false
	}
	for _, n := range l.Nodes {
		if n.Node < 0 || int(n.Node) >= len(a.welcome.Hosts) || n.Step < 0 || int(n.Step) >= len(l.Step.Nodes) ||
			len(n.Tasks) != len(l.Step.Nodes[n.Step].Tasks) {
			return false
		}
	}
	return l.Nodes[0].Node == a.welcome.Index
}

// relay forwards a client's frames to the agent of the first node, and back.
func (a *Agent) relay(ctx context.Context, client *step.Conn) {
	defer client.Close()
	first, err := a.dial(ctx, 0, step.KindClient)
	if err != nil {
		refuse(client, "Unable to contact the job's first node: "+err.Error())
		return
	}
	defer first.Close()
	go func() {
		defer first.Close()
		forward(first, client)
	}()
	forward(client, first)
}

// refuse reports to a client why its step is refused.
func refuse(conn *step.Conn, why string) {
	defer conn.Close()
	if conn.Send(&step.Frame{Type: step.FrameRefused, Data: []byte(why)}) == nil {
		conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // it may be gone
	}
}

// forward copies frames until one side ends.
func forward(to, from *step.Conn) {
	for {
		f, err := from.Receive()
		if err != nil || to.Send(f) != nil {
			return
		}
	}
}

// dialLaunch returns a connection for a launch to the agent of a node.
func (a *Agent) dialLaunch(ctx context.Context, node int32) (*step.Conn, error) {
	return a.dial(ctx, node, step.KindLaunch)
}

// dial returns a connection of the given kind to the agent of a node.
func (a *Agent) dial(ctx context.Context, node int32, kind string) (*step.Conn, error) {
	if kind == step.KindLaunch {
		if conn := a.idle.get(node); conn != nil {
			return conn, nil
		}
	}
	c, err := a.identity.Dial(ctx, a.welcome.Hosts[node].Address)
	if err != nil {
		return nil, err
	}
	conn := step.NewConn(c)
	if err := conn.SendJSON(step.FrameOpen, step.Open{Kind: kind}); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
