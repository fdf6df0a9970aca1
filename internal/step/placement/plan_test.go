package placement

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/internal/step"
)

// TestPlanProperties checks that every task is placed exactly once, no node is
// used twice, excluded nodes are not used and required nodes are.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]Node, rapid.IntRange(1, 8).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i].Name = fmt.Sprintf("n%d", i)
			nodes[i].CPUs = rapid.Int32Range(1, 8).Draw(t, "cpus")
			nodes[i].Busy = rapid.Int32Range(0, nodes[i].CPUs).Draw(t, "busy")
		}
		s := &step.Shape{
			Nodes: rapid.Int32Range(0, 9).Draw(t, "N"), Tasks: rapid.Int32Range(0, 40).Draw(t, "n"),
			TasksPerNode: rapid.Int32Range(0, 4).Draw(t, "per node"), CPUsPerTask: rapid.Int32Range(0, 3).Draw(t, "c"),
			Overcommit:   rapid.Bool().Draw(t, "O"),
			Distribution: rapid.SampledFrom([]string{"", "block", "cyclic", "plane=3"}).Draw(t, "m"),
		}
		if rapid.Bool().Draw(t, "w") {
			s.NodeList = []string{nodes[0].Name}
		} else if rapid.Bool().Draw(t, "x") {
			s.Exclude = []string{nodes[0].Name}
		}
		overlap := rapid.Bool().Draw(t, "overlap")
		l, wait, err := Plan(1, nodes, s, rapid.Bool().Draw(t, "exact"), overlap)
		if wait && overlap {
			t.Fatal("a step with --overlap must not wait")
		}
		if err != nil || wait {
			return
		}
		checkLayout(t, nodes, s, l)
	})
}

// checkLayout fails the test if l breaks a property of layouts.
func checkLayout(t *rapid.T, nodes []Node, s *step.Shape, l *Layout) {
	seen := make([]bool, l.Count)
	for k, tasks := range l.Tasks {
		if k > 0 && l.Nodes[k] <= l.Nodes[k-1] {
			t.Fatal("nodes out of order")
		}
		for j, task := range tasks {
			if seen[task] || (j > 0 && task <= tasks[j-1]) {
				t.Fatalf("task %d is placed twice or out of order", task)
			}
			seen[task] = true
		}
		if len(tasks) == 0 {
			t.Fatal("a node without tasks")
		}
	}
	for task, ok := range seen {
		if !ok {
			t.Fatalf("task %d is not placed", task)
		}
	}
	used := map[string]bool{}
	for _, i := range l.Nodes {
		used[nodes[i].Name] = true
	}
	for _, x := range s.Exclude {
		if used[x] {
			t.Fatal("excluded node used")
		}
	}
	for _, w := range s.NodeList {
		if !used[w] && s.Distribution != "plane=3" {
			t.Fatal("required node not used")
		}
	}
}

// TestTasksFillTheCPUs checks how many tasks a step has with --cpus-per-task and
// without --ntasks, as in Slurm 22.05.8.
func TestTasksFillTheCPUs(t *testing.T) {
	nodes := []Node{{Name: "a", CPUs: 4, Busy: 1}, {Name: "b", CPUs: 4}}
	for _, c := range []struct {
		shape step.Shape
		want  uint32
	}{
		{step.Shape{Nodes: 1, MaxNodes: 1, CPUsPerTask: 1}, 4},
		{step.Shape{Nodes: 1, MaxNodes: 1, CPUsPerTask: 3}, 1},
		{step.Shape{CPUsPerTask: 2}, 4},
		{step.Shape{}, 2},
		{step.Shape{CPUsPerTask: 1, Tasks: 3}, 3},
		{step.Shape{CPUsPerTask: 1, TasksPerNode: 2}, 4},
		{step.Shape{CPUsPerTask: 1, Overcommit: true}, 2},
	} {
		if l, _, err := Plan(1, nodes, &c.shape, true, true); err != nil || l.Count != c.want {
			t.Errorf("%+v: %+v, %v, want %d tasks", c.shape, l, err, c.want)
		}
	}
	s := step.Shape{Nodes: 2, MaxNodes: 2, CPUsPerTask: 1}
	if _, wait, err := Plan(1, nodes, &s, true, false); !wait || err != nil {
		t.Errorf("a step that fills CPUs of which one is in use does not wait: %v", err)
	}
}

// TestHugeStepsAreRefused checks that the product of two numbers that are each possible
// does not overflow to a small number.
func TestHugeStepsAreRefused(t *testing.T) {
	nodes := []Node{{Name: "a", CPUs: 4}, {Name: "b", CPUs: 4}}
	for _, s := range []step.Shape{
		{Tasks: 2, CPUsPerTask: 1 << 30},
		{Tasks: 4, CPUsPerTask: 1 << 30},
		{Tasks: 40000, CPUsPerTask: 60000},
		{TasksPerNode: MaxTasks, CPUsPerTask: 1 << 13},
		{CPUsPerTask: 1 << 30},
		{Tasks: 1, CPUsPerTask: math.MaxInt32},
	} {
		want := Refuse(1, ReasonProcessors).Error()
		if l, wait, err := Plan(1, nodes, &s, true, true); err == nil || err.Error() != want {
			t.Errorf("%+v: accepted %v, wait %v, %v", s, l != nil, wait, err)
		}
	}
	many := make([]Node, 4)
	for i := range many {
		many[i] = Node{Name: fmt.Sprint("n", i), CPUs: 4}
	}
	s := step.Shape{TasksPerNode: MaxTasks / 2, Overcommit: true}
	if l, _, err := Plan(1, many, &s, true, true); err == nil {
		t.Errorf("a step of %d tasks is accepted, more than %d", l.Count, MaxTasks)
	}
	s = step.Shape{Relative: math.MaxInt32, Nodes: 2}
	want := "--relative and SLURM_JOB_NUM_NODES option incompatible with count of allocated nodes (2147483646+2>4)"
	if _, _, err := Plan(1, many, &s, true, true); err == nil || err.Error() != want {
		t.Errorf("--relative: %v, want %s", err, want)
	}
}
