package coord

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/internal/step"
)

func job() *Job {
	return &Job{ID: 1, Nodes: []Node{{Name: "a", CPUs: 4, IDs: []int{2, 3, 8, 9}, Memory: 1000}, {Name: "b", CPUs: 2}}}
}

func TestTakesLowestFreeCPUs(t *testing.T) {
	c := New(nil, job(), nil)
	one := &step.Request{Exact: true, Shape: step.Shape{Nodes: 1, MaxNodes: 1, Tasks: 1}}
	first, _, err := c.try(nil, one)
	if err != nil || first.nodes[0].CPUIDs != "2" {
		t.Fatalf("%+v, %v", first, err)
	}
	pair := &step.Request{Exact: true, Shape: step.Shape{Nodes: 1, MaxNodes: 1, Tasks: 1, CPUsPerTask: 2}}
	second, _, _ := c.try(nil, pair)
	if second == nil || second.nodes[0].CPUIDs != "3,8" || second.id != 1 {
		t.Fatalf("%+v", second)
	}
	c.release(first)
	third, _, _ := c.try(nil, pair)
	if third == nil || third.nodes[0].CPUIDs != "2,9" {
		t.Fatalf("%+v", third)
	}
	whole := &step.Request{Shape: step.Shape{Nodes: 2, Tasks: 2}}
	if g, wait, err := c.try(nil, whole); g != nil || wait == nil || err != nil {
		t.Errorf("%+v, %v: a step of whole nodes must wait", g, err)
	}
	whole.Overlap = true
	if g, _, err := c.try(nil, whole); err != nil || g == nil || g.nodes[0].CPUs != 4 {
		t.Errorf("%+v, %v", g, err)
	}
	c.Close()
	if _, _, err := c.try(nil, one); err == nil {
		t.Error("a closed coordinator grants steps")
	}
}

// TestMemoryIsSharedOut: steps that say what memory they need wait for it, and
// those that say nothing do not.
func TestMemoryIsSharedOut(t *testing.T) {
	c := New(nil, &Job{ID: 1, Nodes: []Node{{Name: "a", CPUs: 8, Memory: 1000}}}, nil)
	ask := func(perNode, perCPU int64, tasks int32) (*grant, bool, error) {
		g, wait, err := c.try(nil, &step.Request{Exact: true, Shape: step.Shape{
			Nodes: 1, MaxNodes: 1, Tasks: tasks, MemPerNode: perNode, MemPerCPU: perCPU}})
		return g, wait != nil, err
	}
	first, _, err := ask(600, 0, 1)
	if first == nil || err != nil {
		t.Fatal(err)
	}
	if g, wait, err := ask(500, 0, 1); g != nil || !wait || err != nil {
		t.Errorf("%+v, %v, %v; want to wait for 500 MB of 400", g, wait, err)
	}
	if g, wait, err := ask(0, 150, 3); g != nil || !wait || err != nil {
		t.Errorf("%+v, %v, %v; want to wait for 3 x 150 MB", g, wait, err)
	}
	second, _, err := ask(0, 150, 2)
	if second == nil || err != nil || c.memory[0] != 900 {
		t.Fatalf("%v, %d MB taken", err, c.memory[0])
	}
	if g, _, err := ask(0, 0, 2); g == nil || err != nil {
		t.Errorf("a step that does not say: %v", err)
	} else {
		c.release(g)
	}
	_, wait, err := ask(1001, 0, 1)
	if want := "Unable to create step for job 1: Memory required by task is not available"; wait || err == nil || err.Error() != want {
		t.Errorf("%v, %v; want %q", wait, err, want)
	}
	if _, _, err := ask(0, 0, 9); err == nil || !strings.Contains(err.Error(), step.ReasonProcessors) {
		t.Error(err)
	}
	c.release(first)
	c.release(second)
	if g, _, err := ask(1000, 0, 1); g == nil || err != nil || c.memory[0] != 1000 {
		t.Errorf("%v, %d MB taken", err, c.memory[0])
	}
}

// TestCPUsAreNeverTwice: whatever steps come and go, no two that do not share
// hold the same CPU, and nothing leaks.
func TestCPUsAreNeverTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(nil, job(), nil)
		var live []*grant
		for range rapid.IntRange(1, 40).Draw(t, "moves") {
			if len(live) > 0 && rapid.Bool().Draw(t, "end") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				c.release(live[i])
				live = append(live[:i], live[i+1:]...)
				continue
			}
			req := &step.Request{Exact: rapid.Bool().Draw(t, "exact"), Shape: step.Shape{
				Nodes: rapid.Int32Range(0, 2).Draw(t, "N"), Tasks: rapid.Int32Range(1, 6).Draw(t, "n"),
				CPUsPerTask: rapid.Int32Range(0, 2).Draw(t, "c"), MemPerCPU: rapid.Int64Range(0, 300).Draw(t, "mem"),
			}}
			if g, _, err := c.try(nil, req); err == nil && g != nil {
				live = append(live, g)
			}
			held := map[[2]int]bool{}
			for _, g := range live {
				for k, node := range g.layout.Nodes {
					for pos := range g.held[k] {
						if held[[2]int{int(node), pos}] {
							t.Fatal("a CPU is held twice")
						}
						held[[2]int{int(node), pos}] = true
					}
				}
			}
		}
		for _, g := range live {
			c.release(g)
		}
		if c.memory[0] != 0 || c.memory[1] != 0 {
			t.Fatalf("%v MB are left taken", c.memory)
		}
		if len(c.taken[0])+len(c.taken[1])+len(c.live) != 0 {
			t.Fatal("something is still held")
		}
	})
}
