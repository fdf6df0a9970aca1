package launch

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/berth-hpc/berth/internal/step"
)

// Tree is a running step, or a subtree of it, as seen by one agent.
type Tree struct {
	up       Sink
	cancel   context.CancelFunc
	local    *tasks // nil: no task runs on this node
	children []*child
	route    map[uint32]*child // by task
	wg       sync.WaitGroup
	fence    *fence

	pmixFences *pmixFences
}

// Start starts the tasks of l; root is true for the whole step. Frames are sent to
// up until Wait returns. Nodes that cannot be reached are reported as lost.
func Start(ctx context.Context, node *Node, l *step.Launch, up Sink, root bool) *Tree {
	ctx, cancel := context.WithCancel(ctx)
	t := &Tree{up: up, cancel: cancel, route: map[uint32]*child{}}
	t.fence = &fence{tree: t, root: root, put: map[string]string{}}
	t.pmixFences = &pmixFences{
		tree: t, root: root, all: uint32(len(l.Step.Nodes)), subtree: uint32(len(l.Nodes)),
		open: map[string]*step.Collective{},
	}
	rest := l.Nodes
	if len(rest) > 0 && rest[0].Node == node.Index {
		t.local = newTasks(node, l, &rest[0], up)
		t.fence.parts++
		t.local.newMPIServer(t.fence)
		rest = rest[1:]
	}
	for _, part := range split(rest, Fanout) {
		t.add(newChild(node, l, part, t))
		t.fence.parts++
	}
	for _, k := range t.children {
		t.wg.Go(func() { k.run(ctx) })
	}
	if t.local != nil {
		t.startLocal()
	}
	return t
}

// startLocal starts the tasks of this node. With PMIx it does so in the
// background, because signals must not wait until the server has started.
func (t *Tree) startLocal() {
	if t.local.launch.Command.MPI != step.MPIPMIx {
		t.local.start()
		t.wg.Go(t.local.wait)
		return
	}
	t.wg.Go(func() {
		if err := t.local.pmix.start(t.local, t); err != nil {
			t.local.refuse("slurmstepd: error: mpi/pmix: " + err.Error())
		} else {
			t.local.start()
		}
		t.local.wait()
	})
}

// Send handles a frame from below: exchanges of MPI are handled by the tree,
// everything else is sent up.
func (t *Tree) Send(f *step.Frame) error {
	switch f.Type {
	case step.FrameFence:
	case step.FrameCollect:
		t.pmixFences.arrive(f)
		return nil
	case step.FrameModex:
		t.routeModex(f)
		return nil
	default:
		return t.up.Send(f)
	}
	var part step.Fence
	if err := f.Decode(&part); err != nil {
		return err
	}
	t.fence.arrive(&part)
	return nil
}

// add adds a child and the routes to its tasks.
func (t *Tree) add(k *child) {
	t.children = append(t.children, k)
	for i := range k.launch.Nodes {
		for _, task := range k.launch.Nodes[i].Tasks {
			t.route[task] = k
		}
	}
}

// split divides nodes into at most n runs of nearly equal length.
func split(nodes []step.NodeTasks, n int) [][]step.NodeTasks {
	var parts [][]step.NodeTasks
	n = min(n, len(nodes))
	for i := range n {
		parts = append(parts, nodes[i*len(nodes)/n:(i+1)*len(nodes)/n])
	}
	return parts
}

// ErrCredit means that more input arrived than the credit permits.
var ErrCredit = errors.New("more input than the credit permits")

// Down delivers a frame to the tasks that it addresses, without waiting for them.
// The frame's data is copied once if it is queued.
func (t *Tree) Down(f *step.Frame) error {
	if f.Type == step.FrameRelease {
		var all step.Fence
		if err := f.Decode(&all); err != nil {
			return err
		}
		t.release(f, &all)
		return nil
	}
	switch f.Type {
	case step.FrameCollected:
		t.broadcast(f)
		return nil
	case step.FrameModex:
		t.routeModex(f)
		return nil
	case step.FrameSample:
		for _, k := range t.children {
			k.send(f)
		}
		if t.local != nil {
			go t.local.sample(f.Flags&step.FlagGPUs != 0)
		}
		return nil
	}
	if f.Type != step.FrameStdin && f.Type != step.FrameStdinEOF && f.Type != step.FrameSignal &&
		f.Type != step.FrameWindow {
		return step.ErrFrame
	}
	if t.isUnwanted(f) {
		return nil
	}
	f = clone(f)
	if f.Task != step.AllTasks {
		if k := t.route[f.Task]; k != nil {
			k.enqueue(f)
			return nil
		}
	} else {
		for _, k := range t.children {
			k.enqueueForAll(f)
		}
	}
	if t.local == nil {
		return nil
	}
	return t.local.down(f)
}

// isUnwanted reports whether f is input for all tasks, and no task reads any more.
func (t *Tree) isUnwanted(f *step.Frame) bool {
	if f.Type != step.FrameStdin || f.Task != step.AllTasks || t.local != nil && !t.local.inputClosed() {
		return false
	}
	return !slices.ContainsFunc(t.children, func(k *child) bool { return !k.inputClosed() })
}

// Wait waits until every task has ended and all their frames have been sent up.
func (t *Tree) Wait() {
	t.wg.Wait()
	t.cancel()
}

// Abort kills all tasks of the subtree; Wait returns soon after.
func (t *Tree) Abort() {
	t.cancel()
	if t.local != nil {
		t.local.kill()
	}
}
