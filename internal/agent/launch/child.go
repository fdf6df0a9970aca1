package launch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth/internal/step"
)

// dialTimeout limits how long another agent may take to answer.
const dialTimeout = 20 * time.Second

// child is a subtree whose root is another agent.
type child struct {
	node   *Node
	launch step.Launch
	up     Sink
	outbox // frames for it; limited by the tasks' credit
	exited map[uint32]bool

	readers atomic.Int64 // tasks that have not closed their input
}

func newChild(node *Node, l *step.Launch, part []step.NodeTasks, up Sink) *child {
	c := &child{node: node, launch: *l, up: up, outbox: newOutbox(), exited: map[uint32]bool{}}
	c.launch.Nodes = part
	for i := range part {
		c.readers.Add(int64(len(part[i].Tasks)))
	}
	return c
}

// inputClosed reports whether all tasks of the subtree have closed their input.
func (c *child) inputClosed() bool { return c.readers.Load() <= 0 }

// enqueueForAll queues a frame for all tasks, unless it is input that none of them reads.
func (c *child) enqueueForAll(f *step.Frame) {
	if f.Type != step.FrameStdin || !c.inputClosed() {
		c.enqueue(f)
	}
}

// run serves the connection until the subtree is done or lost.
func (c *child) run(ctx context.Context) {
	err := c.serve(ctx)
	if err == nil || ctx.Err() != nil {
		return // done, or the step was killed
	}
	for i := range c.launch.Nodes {
		n := &c.launch.Nodes[i]
		for _, t := range n.Tasks {
			if !c.exited[t] {
				f, _ := step.JSON(step.FrameNodeLost, step.NodeLost{Node: n.Step, Why: err.Error()})
				c.up.Send(f) //nolint:errcheck // the client may be gone
				break
			}
		}
	}
}

// serve launches the subtree and forwards its frames until it is done.
func (c *child) serve(ctx context.Context) error {
	dctx, cancel := context.WithTimeout(ctx, dialTimeout)
	conn, err := c.node.Dial(dctx, c.launch.Nodes[0].Node)
	cancel()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	reusable := false
	defer func() {
		if !reusable {
			conn.Close()
		}
	}()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SendJSON(step.FrameLaunch, &c.launch); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	done, drained := make(chan struct{}), make(chan struct{})
	finish := sync.OnceFunc(func() {
		close(done)
		<-drained
	})
	defer finish()
	go func() {
		defer close(drained)
		c.drainTo(conn, done)
	}()
	for {
		f, err := conn.Receive()
		if err != nil {
			return err
		}
		switch f.Type {
		case step.FrameDone:
			finish() // nothing more is sent for this step
			if stop() {
				reusable = true
				c.node.Keep(c.launch.Nodes[0].Node, conn)
			}
			return nil
		case step.FrameStdinClosed:
			c.readers.Add(-1)
		case step.FrameExit:
			var e step.Exit
			if err := f.Decode(&e); err != nil {
				return err
			}
			for _, t := range e.Tasks {
				c.exited[t] = true
			}
		}
		if err := c.up.Send(f); err != nil {
			return nil
		}
	}
}
