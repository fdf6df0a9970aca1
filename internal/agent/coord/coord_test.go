package coord

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/placement"
	"github.com/berth-hpc/berth/internal/wire"
)

func job() *Job {
	return &Job{ID: 1, Nodes: []Node{{Name: "a", CPUs: 4, IDs: []int{2, 3, 8, 9}, Memory: 1000}, {Name: "b", CPUs: 2}}}
}

func TestAllocatesLowestFreeCPUs(t *testing.T) {
	c := New(nil, job(), nil)
	one := &step.Request{Exact: true, Shape: step.Shape{Nodes: 1, MaxNodes: 1, Tasks: 1}}
	first, _, err := c.allocate(nil, one)
	if err != nil || first.nodes[0].CPUIDs != "2" {
		t.Fatalf("%+v, %v", first, err)
	}
	pair := &step.Request{Exact: true, Shape: step.Shape{Nodes: 1, MaxNodes: 1, Tasks: 1, CPUsPerTask: 2}}
	second, _, _ := c.allocate(nil, pair)
	if second == nil || second.nodes[0].CPUIDs != "3,8" || second.id != 1 {
		t.Fatalf("%+v", second)
	}
	c.release(first)
	third, _, _ := c.allocate(nil, pair)
	if third == nil || third.nodes[0].CPUIDs != "2,9" {
		t.Fatalf("%+v", third)
	}
	whole := &step.Request{Shape: step.Shape{Nodes: 2, Tasks: 2}}
	if g, wait, err := c.allocate(nil, whole); g != nil || wait == nil || err != nil {
		t.Errorf("%+v, %v: a step of whole nodes must wait", g, err)
	}
	whole.Overlap = true
	if g, _, err := c.allocate(nil, whole); err != nil || g == nil || g.nodes[0].CPUs != 4 {
		t.Errorf("%+v, %v", g, err)
	}
	c.Close()
	if _, _, err := c.allocate(nil, one); err == nil {
		t.Error("a closed coordinator creates steps")
	}
}

// TestMemoryIsReserved checks that steps that request memory wait for it, and
// that others do not.
func TestMemoryIsReserved(t *testing.T) {
	c := New(nil, &Job{ID: 1, Nodes: []Node{{Name: "a", CPUs: 8, Memory: 1000}}}, nil)
	allocate := func(perNode, perCPU int64, tasks int32) (*allocation, bool, error) {
		g, wait, err := c.allocate(nil, &step.Request{Exact: true, Shape: step.Shape{
			Nodes: 1, MaxNodes: 1, Tasks: tasks, MemPerNode: perNode, MemPerCPU: perCPU}})
		return g, wait != nil, err
	}
	first, _, err := allocate(600, 0, 1)
	if first == nil || err != nil {
		t.Fatal(err)
	}
	if g, wait, err := allocate(500, 0, 1); g != nil || !wait || err != nil {
		t.Errorf("%+v, %v, %v; want to wait for 500 MB of 400", g, wait, err)
	}
	if g, wait, err := allocate(0, 150, 3); g != nil || !wait || err != nil {
		t.Errorf("%+v, %v, %v; want to wait for 3 x 150 MB", g, wait, err)
	}
	second, _, err := allocate(0, 150, 2)
	if second == nil || err != nil || c.memory[0] != 900 {
		t.Fatalf("%v, %d MB reserved", err, c.memory[0])
	}
	if g, _, err := allocate(0, 0, 2); g == nil || err != nil {
		t.Errorf("a step without a request for memory: %v", err)
	} else {
		c.release(g)
	}
	_, wait, err := allocate(1001, 0, 1)
	if want := "Unable to create step for job 1: Memory required by task is not available"; wait || err == nil ||
		err.Error() != want {
		t.Errorf("%v, %v; want %q", wait, err, want)
	}
	if _, _, err := allocate(0, 0, 9); err == nil || !strings.Contains(err.Error(), placement.ReasonProcessors) {
		t.Error(err)
	}
	c.release(first)
	c.release(second)
	if g, _, err := allocate(1000, 0, 1); g == nil || err != nil || c.memory[0] != 1000 {
		t.Errorf("%v, %d MB reserved", err, c.memory[0])
	}
}

// TestReservationsAreExclusive checks that no two steps ever reserve the same
// CPU, and that everything is released in the end.
func TestReservationsAreExclusive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(nil, job(), nil)
		var live []*allocation
		for range rapid.IntRange(1, 40).Draw(t, "events") {
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
			if g, _, err := c.allocate(nil, req); err == nil && g != nil {
				live = append(live, g)
			}
			owned := map[[2]int]bool{}
			for _, g := range live {
				for k, node := range g.layout.Nodes {
					for pos := range g.cpus[k] {
						if owned[[2]int{int(node), pos}] {
							t.Fatal("a CPU is reserved twice")
						}
						owned[[2]int{int(node), pos}] = true
					}
				}
			}
		}
		for _, g := range live {
			c.release(g)
		}
		if c.memory[0] != 0 || c.memory[1] != 0 {
			t.Fatalf("%v MB are still reserved", c.memory)
		}
		if len(c.reserved[0])+len(c.reserved[1])+len(c.live) != 0 {
			t.Fatal("CPUs or steps are left")
		}
	})
}

// TestGRESIsReserved checks that steps wait for generic resources, of the type
// that they request if any, and release them.
func TestGRESIsReserved(t *testing.T) {
	c := New(nil, &Job{ID: 1, Nodes: []Node{
		{Name: "a", CPUs: 8, GRES: []Pool{
			{Name: "fpga", Type: "x", Count: 2}, {Name: "fpga", Type: "y", Count: 1}, {Name: "tape", Count: 4},
		}},
		{Name: "b", CPUs: 8, GRES: []Pool{{Name: "fpga", Type: "x", Count: 2}}},
	}}, nil)
	allocate := func(nodes int32, overlap bool, gres ...step.GRES) (*allocation, bool, error) {
		g, wait, err := c.allocate(nil, &step.Request{Exact: true, Overlap: overlap, Shape: step.Shape{
			Nodes: nodes, MaxNodes: nodes, Tasks: nodes, NodeList: []string{"a"}, GRES: gres}})
		return g, wait != nil, err
	}
	first, _, err := allocate(1, false, step.GRES{Name: "fpga", Count: 2})
	if first == nil || err != nil {
		t.Fatal(err)
	}
	if g, wait, err := allocate(1, false, step.GRES{Name: "fpga", Type: "x", Count: 1}); g != nil || !wait || err != nil {
		t.Errorf("%+v, %v, %v; want to wait for an x", g, wait, err)
	}
	if g, wait, err := allocate(2, false, step.GRES{Name: "fpga", Count: 2}); g != nil || !wait || err != nil {
		t.Errorf("%+v, %v, %v; want to wait on node a", g, wait, err)
	}
	second, _, err := allocate(1, false, step.GRES{Name: "fpga", Type: "y", Count: 1}, step.GRES{Name: "tape", Count: 4})
	if second == nil || err != nil {
		t.Fatal(err)
	}
	if g, _, err := allocate(1, true, step.GRES{Name: "fpga", Count: 3}); g == nil || err != nil {
		t.Errorf("a step with --overlap: %v", err)
	} else {
		c.release(g)
	}
	for gres, want := range map[step.GRES]string{
		{Name: "fpga", Count: 4}:            "Step requested gres_per_node=fpga:4 is more than the job's gres_per_node=fpga:3",
		{Name: "tape", Type: "z", Count: 1}: "Step requested GRES but job doesn't have GRES",
		{Name: "nic", Count: 1}:             "Step requested GRES but job doesn't have GRES",
	} {
		want += "; Unable to create step for job 1: Invalid generic resource (gres) specification"
		if g, wait, err := allocate(1, false, gres); g != nil || wait || err == nil || err.Error() != want {
			t.Errorf("%+v: %v, %v; want %q", gres, wait, err, want)
		}
	}
	c.release(first)
	c.release(second)
	for _, n := range c.job.Nodes {
		for _, p := range n.GRES {
			if p.reserved != 0 {
				t.Errorf("%+v is still reserved", p)
			}
		}
	}
}

// TestGPUsForEveryNode checks that a step gets at least one of its GPUs on each
// of its nodes.
func TestGPUsForEveryNode(t *testing.T) {
	c := New(nil, &Job{ID: 1, Nodes: []Node{
		{Name: "a", CPUs: 2, GPUs: []int{0, 1}, HasGPUs: true}, {Name: "b", CPUs: 2, GPUs: []int{0, 1}, HasGPUs: true},
	}}, nil)
	two := func(gpus int32) (*allocation, error) {
		g, _, err := c.allocate(
			nil,
			&step.Request{Overlap: true, Shape: step.Shape{Nodes: 2, MaxNodes: 2, Tasks: 2, GPUs: gpus}},
		)
		return g, err
	}
	_, err := two(1)
	const want = "Step requested gres=gpu:1 is less than the requested min nodes=2"
	if refused, ok := errors.AsType[*step.RefusedError](err); !ok || refused.Lines[0] != want {
		t.Errorf("one GPU for two nodes: %v", err)
	}
	if g, err := two(3); err != nil || len(g.gpus[0]) != 2 || len(g.gpus[1]) != 1 {
		t.Errorf("three GPUs for two nodes: %+v, %v", g, err)
	}
}

// TestGPUsPerTaskWithTotal checks that --gpus beside --gpus-per-task is the
// step's total and adds nothing.
func TestGPUsPerTaskWithTotal(t *testing.T) {
	c := New(nil, &Job{ID: 1, Nodes: []Node{{Name: "a", CPUs: 2, GPUs: []int{0, 1}, HasGPUs: true}}}, nil)
	g, _, err := c.allocate(
		nil,
		&step.Request{Shape: step.Shape{Nodes: 1, MaxNodes: 1, Tasks: 2, GPUs: 2, GPUsPerTask: 1}},
	)
	if err != nil || len(g.gpus[0]) != 2 {
		t.Errorf("%+v, %v; want two GPUs", g, err)
	}
}

// TestGPUsPerNodeWithTotal checks that --gpus beside --gpus-per-node is the step's
// total and adds nothing.
func TestGPUsPerNodeWithTotal(t *testing.T) {
	c := New(nil, &Job{ID: 1, Nodes: []Node{{Name: "a", CPUs: 2, GPUs: []int{0, 1}, HasGPUs: true}}}, nil)
	g, _, err := c.allocate(
		nil,
		&step.Request{Shape: step.Shape{Nodes: 1, MaxNodes: 1, Tasks: 1, GPUs: 2, GPUsPerNode: 2}},
	)
	if err != nil || len(g.gpus[0]) != 2 {
		t.Errorf("%+v, %v; want two GPUs", g, err)
	}
}

// TestOvercommittedCPUs: with --overcommit, tasks that request more CPUs than there are get
// all CPUs of their node, however many they request.
func TestOvercommittedCPUs(t *testing.T) {
	for _, each := range []int32{2, 1 << 20, 1 << 30, 1<<30 + 1, math.MaxInt32} {
		c := New(nil, job(), nil)
		g, _, err := c.allocate(nil, &step.Request{Shape: step.Shape{
			Nodes: 1, MaxNodes: 1, Tasks: 4, CPUsPerTask: each, Overcommit: true,
		}})
		if err != nil || len(g.nodes) != 1 || g.nodes[0].CPUs != 4 {
			t.Errorf("4 tasks with %d CPUs each: %+v, %v", each, g, err)
		}
	}
}

// TestEndIsReportedBeforeRelease: Wait returns when the last step is released, and the agent
// then makes the job's last report, which must contain the end of every step.
func TestEndIsReportedBeforeRelease(t *testing.T) {
	c := New(nil, job(), nil)
	req := &step.Request{Shape: step.Shape{Tasks: 1}, Command: step.Command{Args: []string{"true"}}}
	g, _, err := c.allocate(&session{}, req)
	if err != nil || g == nil {
		t.Fatal(err)
	}
	reports := 0
	c.OnChange(func(r wire.StepRecord) {
		reports++
		if r.End == 0 || len(c.running()) != 1 {
			t.Errorf("the record %+v was reported with %d steps left, want 1", r, len(c.running()))
		}
	})
	c.end(g, c.newRecord(g, req))
	if reports != 1 || len(c.running()) != 0 {
		t.Errorf("%d reports, and %d steps are left", reports, len(c.running()))
	}
}
