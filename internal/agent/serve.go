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

// door is where other agents come in. One agent after the other stands behind
// it where a pod runs several tasks of an array.
type door struct{ agent atomic.Pointer[Agent] }

// serveTCP takes connections of other agents.
func (d *door) serveTCP(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		a := d.agent.Load()
		go func() {
			t, agent, err := a.identity.Accept(c)
			if err != nil {
				a.log.Warn("refused a connection", "from", c.RemoteAddr().String(), "error", err)
				return
			}
			a.serve(ctx, step.NewConn(t), agent)
		}()
	}
}

// serveUnix takes connections of processes on this node.
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

// serve does what the other side of conn asks for first.
func (a *Agent) serve(ctx context.Context, conn *step.Conn, agent bool) {
	var open step.Open
	if err := conn.Expect(step.FrameOpen, &open); err != nil {
		conn.Close()
		return
	}
	switch {
	case open.Kind == step.KindStop && agent:
		spawn.Stop()
		conn.Close()
	case open.Kind == step.KindContinue && agent:
		spawn.Continue()
		conn.Close()
	case open.Kind == step.KindLaunch && agent:
		a.serveLaunch(ctx, conn)
	case a.coord != nil && !agent && !a.awaitProlog(ctx):
		refuse(conn, "Job prolog failed")
	case open.Kind == step.KindResumable && a.coord != nil:
		a.serveLasting(context.WithoutCancel(ctx), conn, &open)
	case open.Kind == step.KindClient && a.coord != nil:
		a.coord.Serve(context.WithoutCancel(ctx), conn)
	case open.Kind == step.KindClient && !agent:
		a.relay(ctx, conn)
	default:
		conn.Close()
	}
}

// serveLaunch runs subtrees of steps for another agent, one after the other on
// the same connection. When that agent is gone the tasks are killed.
func (a *Agent) serveLaunch(ctx context.Context, conn *step.Conn) {
	defer conn.Close()
	var l step.Launch
	if err := conn.Expect(step.FrameLaunch, &l); err != nil {
		return
	}
	for a.sane(&l) {
		next := a.oneLaunch(ctx, conn, &l)
		if next == nil {
			return
		}
		l = *next
	}
}

// oneLaunch runs one subtree and waits for the next; nil: there is none.
func (a *Agent) oneLaunch(ctx context.Context, conn *step.Conn, l *step.Launch) (next *step.Launch) {
	if !a.awaitProlog(ctx) {
		a.refuseLaunch(conn, l)
		return nil
	}
	if a.job.Batch.NoKill { // the step is to learn that this node leaves, and not that its tasks ended
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
			// What comes late for a step that is over goes nowhere.
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

// sane rejects what no coordinator sends, before anything indexes by it.
func (a *Agent) sane(l *step.Launch) bool {
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

// relay passes a client's frames to the agent of the first node and back.
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

// refuse tells a client that there will be no step, and why.
func refuse(conn *step.Conn, why string) {
	defer conn.Close()
	if conn.Send(&step.Frame{Type: step.FrameRefused, Data: []byte(why)}) == nil {
		conn.Send(&step.Frame{Type: step.FrameDone}) //nolint:errcheck // as it goes
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

// dialLaunch opens a connection for a launch to the agent of a node.
func (a *Agent) dialLaunch(ctx context.Context, node int32) (*step.Conn, error) {
	return a.dial(ctx, node, step.KindLaunch)
}

func (a *Agent) dial(ctx context.Context, node int32, kind string) (*step.Conn, error) {
	if kind == step.KindLaunch {
		if conn := a.idle.take(node); conn != nil {
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
