package launch

import (
	"fmt"
	"sync"

	"github.com/berth-hpc/berth/internal/step"
)

// pmixFences combines the contributions to PMIx fences. Those to a fence of all
// nodes of the step are combined on the way up the tree. Those to a fence of some
// nodes go directly to the root, because no other agent knows the participants.
type pmixFences struct {
	tree    *Tree
	root    bool
	all     uint32 // nodes of the step
	subtree uint32 // nodes of this subtree

	mu    sync.Mutex
	open  map[string]*step.Collective
	bytes int // of data in open
}

// arrive handles a contribution.
func (x *pmixFences) arrive(f *step.Frame) {
	part, err := step.ReadCollective(f)
	if err != nil {
		x.fail(err.Error())
		return
	}
	if !x.root && part.Need != x.all {
		x.tree.up.Send(f) //nolint:errcheck // the client may be gone
		return
	}
	c, err := x.add(part)
	switch {
	case err != nil:
		x.fail(err.Error())
	case c == nil:
	case !x.root:
		x.tree.up.Send(c.Frame(step.FrameCollect)) //nolint:errcheck // the client may be gone
	default:
		x.tree.broadcast(c.Frame(step.FrameCollected))
	}
}

// add adds a contribution to its fence. It returns the fence if the contribution
// was the last one expected here.
func (x *pmixFences) add(part *step.Collective) (*step.Collective, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.open[part.Key]
	if c == nil {
		c = &step.Collective{Key: part.Key, Need: part.Need}
		x.open[part.Key] = c
	}
	if x.bytes += len(part.Data); x.bytes > step.MaxModex/2 || len(x.open) > 1<<12 {
		return nil, fmt.Errorf("the processes exchange more than %d MB at once", step.MaxModex>>21)
	}
	c.Parts += part.Parts
	c.Data = append(c.Data, part.Data...)
	target := x.subtree
	if x.root {
		target = c.Need
	}
	switch {
	case c.Need != part.Need || c.Parts > target:
		return nil, fmt.Errorf("%w: fence %q of %d/%d parts", step.ErrFrame, c.Key, c.Parts, c.Need)
	case c.Parts < target:
		return nil, nil
	}
	delete(x.open, c.Key)
	x.bytes -= len(c.Data)
	return c, nil
}

// fail aborts the step.
func (x *pmixFences) fail(why string) {
	line := "slurmstepd: error: mpi/pmix: " + why + "\n"
	_ = x.tree.up.Send(
		&step.Frame{Type: step.FrameAbort, Task: step.AllTasks, Data: []byte(line)},
	) //nolint:errcheck // the client may be gone
}

// broadcast sends a frame to every PMIx server of the subtree.
func (t *Tree) broadcast(f *step.Frame) {
	for _, k := range t.children {
		k.send(f)
	}
	if t.local != nil && t.local.pmix != nil {
		t.local.pmix.send(f)
	}
}

// routeModex forwards a request or a response towards the node of its task.
func (t *Tree) routeModex(f *step.Frame) {
	switch k := t.route[f.Task]; {
	case t.local != nil && t.local.has(f.Task):
		if t.local.pmix != nil {
			t.local.pmix.send(f)
		}
	case k != nil:
		k.send(f)
	case !t.pmixFences.root:
		t.up.Send(f) //nolint:errcheck // the client may be gone
	}
}
