package launch

import (
	"testing"

	"github.com/berth-hpc/berth/internal/step"
)

// TestUnwantedInput: a subtree whose tasks have all closed their input gets no more input for all
// tasks, but everything else.
func TestUnwantedInput(t *testing.T) {
	t.Parallel()
	c := newChild(nil, &step.Launch{}, []step.NodeTasks{{Tasks: []uint32{1, 2}}, {Tasks: []uint32{3}}}, nil)
	tree := &Tree{children: []*child{c}}
	send := func(typ step.Type) {
		if err := tree.Down(&step.Frame{Type: typ, Task: step.AllTasks}); err != nil {
			t.Fatal(err)
		}
	}
	send(step.FrameStdin)
	c.readers.Add(-2)
	send(step.FrameStdin)
	if len(c.queue) != 2 {
		t.Errorf("%d frames while a task reads", len(c.queue))
	}
	c.readers.Add(-1)
	send(step.FrameStdin)
	send(step.FrameStdinEOF)
	send(step.FrameSignal)
	if len(c.queue) != 4 || c.queue[2].Type != step.FrameStdinEOF || c.queue[3].Type != step.FrameSignal {
		t.Errorf("the queue is %v", c.queue)
	}
}
