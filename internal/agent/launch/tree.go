package launch

import (
	"context"
	"errors"
	"sync"

	"github.com/berth-hpc/berth/internal/step"
)

// Tree is a running step, or a subtree of it, seen from one agent.
type Tree struct {
	up     Sink
	cancel context.CancelFunc
	local  *tasks // nil: none of the tasks is here
	kids   []*child
	route  map[uint32]*child
	wg     sync.WaitGroup
	fence  *fence

	collects *collects
}

// Start begins to run l; root: it is the whole step. Frames go to up until Wait
// returns. The nodes that cannot be reached are reported as lost.
func Start(ctx context.Context, node *Node, l *step.Launch, up Sink, root bool) *Tree {
	ctx, cancel := context.WithCancel(ctx)
	t := &Tree{up: up, cancel: cancel, route: map[uint32]*child{}}
	t.fence = &fence{tree: t, root: root, put: map[string]string{}}
	t.collects = &collects{
		tree: t, root: root, all: uint32(len(l.Step.Nodes)), below: uint32(len(l.Nodes)), open: map[string]*step.Collective{},
	}
	rest := l.Nodes
	if len(rest) > 0 && rest[0].Node == node.Index {
		t.local = newTasks(node, l, &rest[0], up)
		t.fence.parts++
		t.local.serveMPI(t.fence)
		rest = rest[1:]
	}
	for _, part := range split(rest, Fanout) {
		t.add(newChild(node, l, part, t))
		t.fence.parts++
	}
	for _, k := range t.kids {
		t.wg.Go(func() { k.run(ctx) })
	}
	if t.local != nil {
		t.startLocal()
	}
	return t
}

// startLocal runs the tasks of this node. A PMIx server takes its time to
// start, and signals must not wait for it.
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

// Send passes up what comes from below, but for what the tree itself does.
func (t *Tree) Send(f *step.Frame) error {
	switch f.Type {
	case step.FrameFence:
	case step.FrameCollect:
		t.collects.arrive(f)
		return nil
	case step.FrameModex:
		t.modex(f)
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

func (t *Tree) add(k *child) {
	t.kids = append(t.kids, k)
	for i := range k.launch.Nodes {
		for _, task := range k.launch.Nodes[i].Tasks {
			t.route[task] = k
		}
	}
}

// split cuts nodes into at most n runs of nearly equal length.
func split(nodes []step.NodeTasks, n int) [][]step.NodeTasks {
	var parts [][]step.NodeTasks
	n = min(n, len(nodes))
	for i := range n {
		parts = append(parts, nodes[i*len(nodes)/n:(i+1)*len(nodes)/n])
	}
	return parts
}

// ErrCredit means that more input came than was granted.
var ErrCredit = errors.New("more input than granted")

// Down delivers a frame to the tasks that it is for. It does not block on
// them. The frame's data is copied where it is kept, once for all who keep it.
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
		t.spread(f)
		return nil
	case step.FrameModex:
		t.modex(f)
		return nil
	case step.FrameSample:
		for _, k := range t.kids {
			k.send(f)
		}
		if t.local != nil {
			go t.local.sample(f.Flags&step.FlagGPUs != 0)
		}
		return nil
	}
	if f.Type != step.FrameStdin && f.Type != step.FrameStdinEOF && f.Type != step.FrameSignal && f.Type != step.FrameWindow {
		return step.ErrFrame
	}
	f = kept(f)
	if f.Task != step.AllTasks {
		if k := t.route[f.Task]; k != nil {
			k.keep(f)
			return nil
		}
	} else {
		for _, k := range t.kids {
			k.keep(f)
		}
	}
	if t.local == nil {
		return nil
	}
	return t.local.down(f)
}

// Wait returns when every task has ended and everything of them was sent up.
func (t *Tree) Wait() {
	t.wg.Wait()
	t.cancel()
}

// Abort kills the tasks at once, here and below; Wait returns soon after.
func (t *Tree) Abort() {
	t.cancel()
	if t.local != nil {
		t.local.kill()
	}
}
