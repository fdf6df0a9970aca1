package launch

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/berth-hpc/berth/internal/step"
)

// sinkFunc receives what a tree sends up.
type sinkFunc func(*step.Frame) error

func (f sinkFunc) Send(x *step.Frame) error { return f(x) }

// newTree returns a tree without tasks, with the given number of nodes out of
// those of the step.
func newTree(subtree, all uint32, root bool, up sinkFunc) *Tree {
	t := &Tree{up: up}
	t.pmixFences = &pmixFences{tree: t, root: root, all: all, subtree: subtree, open: map[string]*step.Collective{}}
	return t
}

// addChild adds a child that only queues what the root broadcasts.
func addChild(t *Tree) *outbox {
	k := &child{outbox: newOutbox()}
	t.children = append(t.children, k)
	return &k.outbox
}

func part(key string, need uint32, data string) *step.Frame {
	return (&step.Collective{Key: key, Parts: 1, Need: need, Data: []byte(data)}).Frame(step.FrameCollect)
}

// TestFenceOfAll checks that a fence of all nodes reaches the root as one frame
// from each subtree, with every contribution once, and that fences do not mix.
func TestFenceOfAll(t *testing.T) {
	root := newTree(5, 5, true, nil)
	down := addChild(root)
	sent := 0
	inner := func(below uint32) *Tree {
		return newTree(below, 5, false, func(f *step.Frame) error {
			sent++
			return root.Send(f)
		})
	}
	a, b := inner(2), inner(2)
	for round := range 3 {
		for i, tree := range []*Tree{a, root, b, b, a} {
			if len(down.queue) > round {
				t.Fatalf("round %d: ended before contribution %d", round, i)
			}
			tree.pmixFences.arrive(part(fmt.Sprintf("*#%d", round), 5, fmt.Sprint(i)))
		}
	}
	if sent != 6 || len(down.queue) != 3 {
		t.Fatalf("%d frames went up, %d fences ended; want 6 and 3", sent, len(down.queue))
	}
	for round, f := range down.queue {
		c, err := step.ReadCollective(f)
		if err != nil || f.Type != step.FrameCollected || c.Key != fmt.Sprintf("*#%d", round) || len(c.Data) != 5 {
			t.Errorf("round %d: %+v, %v", round, c, err)
		}
		for i := range 5 {
			if strings.Count(string(c.Data), fmt.Sprint(i)) != 1 {
				t.Errorf("round %d: data %q", round, c.Data)
			}
		}
	}
	if len(root.pmixFences.open) != 0 || root.pmixFences.bytes != 0 {
		t.Errorf("the root still has %v, %d bytes", root.pmixFences.open, root.pmixFences.bytes)
	}
}

// TestFenceOfSome checks that a fence of some nodes ends when those have
// contributed, although no agent on the way knows which they are.
func TestFenceOfSome(t *testing.T) {
	root := newTree(5, 5, true, nil)
	down := addChild(root)
	inner := newTree(4, 5, false, root.Send)
	inner.pmixFences.arrive(part("0,3#1", 2, "a"))
	inner.pmixFences.arrive(part("1,2#1", 2, "x"))
	if len(down.queue) != 0 {
		t.Fatal("the fence ended too early")
	}
	root.pmixFences.arrive(part("0,3#1", 2, "b"))
	if len(down.queue) != 1 {
		t.Fatalf("%d fences ended", len(down.queue))
	}
	if c, err := step.ReadCollective(down.queue[0]); err != nil || c.Key != "0,3#1" || string(c.Data) != "ab" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestFenceLimits checks that malformed and excessive contributions abort the
// step.
func TestFenceLimits(t *testing.T) {
	for name, send := range map[string]func(x *pmixFences){
		"malformed":       func(x *pmixFences) { x.arrive(&step.Frame{Type: step.FrameCollect, Data: []byte("x")}) },
		"other size":      func(x *pmixFences) { x.arrive(part("*#1", 3, "")); x.arrive(part("*#1", 2, "")) },
		"many at once":    func(x *pmixFences) { openManyFences(x) },
		"more than there": func(x *pmixFences) { x.subtree = 0; x.root = false; x.arrive(part("*#1", 3, "")) },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			aborted := false
			tree := newTree(3, 3, true, func(f *step.Frame) error {
				mu.Lock()
				defer mu.Unlock()
				aborted = aborted ||
					f.Type == step.FrameAbort && strings.HasPrefix(string(f.Data), "slurmstepd: error: mpi/pmix: ")
				return nil
			})
			if send(tree.pmixFences); !aborted {
				t.Error("the step was not aborted")
			}
		})
	}
}

func openManyFences(x *pmixFences) {
	for i := range 1<<12 + 1 {
		x.arrive(part(fmt.Sprintf("0,1#%d", i), 2, ""))
	}
}

// TestModexRouting checks that a request goes to the subtree of its task, or up.
func TestModexRouting(t *testing.T) {
	var up []*step.Frame
	tree := newTree(2, 3, false, func(f *step.Frame) error {
		up = append(up, f)
		return nil
	})
	k := &child{outbox: newOutbox()}
	tree.children, tree.route = []*child{k}, map[uint32]*child{4: k}
	tree.local = &tasks{part: &step.NodeTasks{Tasks: []uint32{2, 3}}, pmix: newPMIx()}
	for _, task := range []uint32{4, 3, 9} {
		if err := tree.Down((&step.Modex{Of: task}).Frame()); err != nil {
			t.Fatal(err)
		}
	}
	if len(k.queue) != 1 || k.queue[0].Task != 4 || len(tree.local.pmix.queue) != 1 ||
		tree.local.pmix.queue[0].Task != 3 {
		t.Errorf("child got %v, the server here %v", k.queue, tree.local.pmix.queue)
	}
	if len(up) != 1 || up[0].Task != 9 {
		t.Errorf("went up: %v", up)
	}
}
