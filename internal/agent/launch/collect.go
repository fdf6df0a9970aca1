package launch

import (
	"fmt"
	"sync"

	"github.com/berth-hpc/berth/internal/step"
)

// collects gathers the parts of PMIx fences. A fence of all nodes of the step
// is gathered on the way up the tree; one of some goes straight to the root,
// since nobody below knows who takes part.
type collects struct {
	tree  *Tree
	root  bool
	all   uint32 // nodes of the step
	below uint32 // nodes of this subtree

	mu    sync.Mutex
	open  map[string]*step.Collective
	bytes int // of data that open holds
}

// arrive takes in a part.
func (x *collects) arrive(f *step.Frame) {
	part, err := step.ReadCollective(f)
	if err != nil {
		x.fail(err.Error())
		return
	}
	if !x.root && part.Need != x.all {
		x.tree.up.Send(f) //nolint:errcheck // then nobody listens
		return
	}
	c, err := x.add(part)
	switch {
	case err != nil:
		x.fail(err.Error())
	case c == nil:
	case !x.root:
		x.tree.up.Send(c.Frame(step.FrameCollect)) //nolint:errcheck // then nobody listens
	default:
		x.tree.spread(c.Frame(step.FrameCollected))
	}
}

// add puts a part to those of its fence; it returns the fence when this was
// the last one that is to come here.
func (x *collects) add(part *step.Collective) (*step.Collective, error) {
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
	target := x.below
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

// fail ends the step.
func (x *collects) fail(why string) {
	line := "slurmstepd: error: mpi/pmix: " + why + "\n"
	x.tree.up.Send(&step.Frame{Type: step.FrameAbort, Task: step.AllTasks, Data: []byte(line)}) //nolint:errcheck // then nobody listens
}

// spread gives the end of a fence to every node below.
func (t *Tree) spread(f *step.Frame) {
	for _, k := range t.kids {
		k.send(f)
	}
	if t.local != nil && t.local.pmix != nil {
		t.local.pmix.send(f)
	}
}

// modex passes a question for a task on, or an answer, towards the node that
// it is for.
func (t *Tree) modex(f *step.Frame) {
	switch k := t.route[f.Task]; {
	case t.local != nil && t.local.has(f.Task):
		if t.local.pmix != nil {
			t.local.pmix.send(f)
		}
	case k != nil:
		k.send(f)
	case !t.collects.root:
		t.up.Send(f) //nolint:errcheck // then nobody listens
	}
}
