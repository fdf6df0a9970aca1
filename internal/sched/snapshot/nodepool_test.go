package snapshot

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
)

// aPool returns a pool of the nodes, which boot in that many seconds and cost so much.
func aPool(name, nodes string, boot int32, cost string) *v1alpha1.NodePool {
	return &v1alpha1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.NodePoolSpec{
			Nodes: nodes, BootTime: boot, CostPerHour: cost,
			Resources: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("4000Mi")},
		},
	}
}

// Nodes that run come first, then those that are coming, then the cheapest.
func TestNodesOfPools(t *testing.T) {
	dear, cheap := aPool("dear", "d[1-2]", 20, "3.5"), aPool("cheap", "e[1-4]", 60, "1")
	dear.Status.Nodes = []v1alpha1.PoolNode{
		{Name: "d2", State: v1alpha1.PoolPoweringUp, Since: *schedtest.At(schedtest.Now.Add(-8 * time.Second))},
	}
	cheap.Status.Nodes = []v1alpha1.PoolNode{
		{Name: "e1", State: v1alpha1.PoolRunning}, {Name: "e2", State: v1alpha1.PoolPoweringDown},
		{Name: "e4", State: v1alpha1.PoolFailed},
	}
	s := New(Input{
		Now: schedtest.Now, Nodes: []*corev1.Node{schedtest.Node("n1"), schedtest.Node("e1"), schedtest.Node("e2")},
		NodePools: []*v1alpha1.NodePool{dear, cheap},
	})
	want := []struct {
		name        string
		boot        int64
		unavailable bool
	}{
		{"e1", 0, false}, {"e2", 0, true}, {"e4", 0, true}, {"n1", 0, false}, {"d2", 12, false}, {"e3", 60, false},
		{"d1", 20, false},
	}
	if len(s.Nodes) != len(want) {
		t.Fatalf("%d nodes, want %d", len(s.Nodes), len(want))
	}
	for i, w := range want {
		n := &s.Nodes[i]
		if n.Name != w.name || n.Boot != w.boot || n.Unavailable != w.unavailable {
			t.Errorf("%d: %s boots in %d, unavailable %v; want %+v", i, n.Name, n.Boot, n.Unavailable, w)
		}
	}
}

// A job that waits for its nodes has them for its whole time limit from then on.
func TestJobThatAwaitsNodesEndsLater(t *testing.T) {
	b := schedtest.Attempt(v1alpha1.StateConfiguring)
	b.Status.Allocation.Nodes = []v1alpha1.NodeAllocation{{Name: "d1", Node: "d1", CPUs: 1}}
	b.Status.StartTime = schedtest.At(schedtest.Now.Add(-15 * time.Second))
	pool := aPool("cloud", "d1", 40, "")
	pool.Status.Nodes = []v1alpha1.PoolNode{
		{Name: "d1", State: v1alpha1.PoolPoweringUp, Since: *schedtest.At(schedtest.Now.Add(-15 * time.Second))},
	}
	in := Input{Now: schedtest.Now, Jobs: []*v1alpha1.BatchJob{b}, NodePools: []*v1alpha1.NodePool{pool}}
	if got, want := New(in).Running[0].End, schedtest.Now.Unix()+25+600; got != want {
		t.Errorf("it ends at %d, want %d", got, want)
	}
}

// An Incremental follows no change of a node of a pool, and is replaced when a node could have
// booted since it was made.
func TestIncrementalOfPools(t *testing.T) {
	n := schedtest.Node("d1")
	in := Input{Now: schedtest.Now, Nodes: []*corev1.Node{n}, NodePools: []*v1alpha1.NodePool{aPool("cloud", "d[1-2]", 20, "")}}
	x, ok := NewIncremental(in, func(int64) []*corev1.Pod { return nil })
	if !ok {
		t.Fatal("there is none")
	}
	lost := n.DeepCopy()
	lost.Status.Conditions[0].Status = corev1.ConditionUnknown
	if x.FollowNodes(map[string]*corev1.Node{"d1": lost}) {
		t.Error("it follows a node of a pool")
	}
	if !x.Follow(in.Now.Add(19*time.Second), nil) || x.Follow(in.Now.Add(20*time.Second), nil) {
		t.Error("it is not replaced when a node could have booted")
	}
}

// A job got a node before that had an object, whose name the provider then chose. It holds the
// node from the start on, before and after the pool's state says that the node runs.
func TestJobOnANodeThatItsProviderNamed(t *testing.T) {
	for _, state := range []string{v1alpha1.PoolPoweringUp, v1alpha1.PoolRunning} {
		t.Run(state, func(t *testing.T) { testJobOnANodeThatItsProviderNamed(t, state) })
	}
}

func testJobOnANodeThatItsProviderNamed(t *testing.T, state string) {
	n := schedtest.Node("ip-10-0-0-7")
	n.Annotations = map[string]string{"berth.hpc/node-name": "d1"}
	b := schedtest.Attempt(v1alpha1.StateConfiguring)
	pool := aPool("cloud", "d1", 40, "")
	pool.Status.Nodes = []v1alpha1.PoolNode{{Name: "d1", State: state}}
	for object, want := range map[string]int{"d1": 1, "ip-10-0-0-7": 1, "ip-10-0-0-8": 0} {
		b.Status.Allocation.Nodes = []v1alpha1.NodeAllocation{{Name: "d1", Node: object, CPUs: 1}}
		in := Input{
			Now: schedtest.Now, Jobs: []*v1alpha1.BatchJob{b}, NodePools: []*v1alpha1.NodePool{pool},
			Nodes: []*corev1.Node{n},
		}
		s := New(in)
		if len(s.Nodes) != 1 || s.Nodes[0].Name != "d1" || s.NodePower(0) == nil {
			t.Fatalf("the nodes are %+v", s.Nodes)
		}
		got := 0
		for _, r := range s.Running {
			got += len(r.Allocation)
		}
		if got != want {
			t.Errorf("the job on %s holds %d nodes, want %d", object, got, want)
		}
	}
}
