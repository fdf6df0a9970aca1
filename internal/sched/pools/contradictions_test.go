package pools

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Nodes that contradict their pool are reported while they run, the same problem once.
func TestNodesThatContradictTheirPool(t *testing.T) {
	node := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "a"}}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("1000Mi")}
		if change != nil {
			change(n)
		}
		return n
	}
	for name, x := range map[string]struct {
		change func(*corev1.Node)
		want   string
	}{
		"as promised": {nil, ""},
		"less": {func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("1") },
			"c[1-2]: Low CPUs (reported:1 < configured:4)"},
		"another label": {func(n *corev1.Node) { n.Labels["zone"] = "b" }, "c[1-2]: without the label zone=a"},
		"cluster-autoscaler": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler"}}
		}, "c[1-2]: cluster-autoscaler removes it, too (taint DeletionCandidateOfClusterAutoscaler)"},
		"Karpenter": {func(n *corev1.Node) { n.Labels["karpenter.sh/nodepool"] = "general" },
			"c[1-2]: Karpenter removes it, too (label karpenter.sh/nodepool=general)"},
	} {
		w := newWorld()
		w.pool.Spec.Labels = map[string]string{"zone": "a"}
		objects := map[string]*corev1.Node{"c1": node(x.change), "c2": node(x.change), "c3": node(x.change)}
		nodes := []v1alpha1.PoolNode{
			{Name: "c1", State: v1alpha1.PoolRunning}, {Name: "c2", State: v1alpha1.PoolRunning},
			{Name: "c3", State: v1alpha1.PoolPoweringDown},
		}
		got := contradictions(w.pool, nodes, func(name string) *corev1.Node { return objects[name] })
		if got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// scontrol show node says of each node of a pool what is wrong with it.
func TestTroubleOfANode(t *testing.T) {
	w := newWorld()
	good := &corev1.Node{}
	good.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("1000Mi")}
	small, taken := good.DeepCopy(), good.DeepCopy()
	small.Status.Allocatable["cpu"] = resource.MustParse("1")
	taken.Labels = map[string]string{"karpenter.sh/nodepool": "general"}
	bare := w.pool.DeepCopy()
	bare.Spec.Program, bare.Spec.Karpenter = nil, nil
	for _, x := range []struct {
		pool *v1alpha1.NodePool
		node v1alpha1.PoolNode
		o    *corev1.Node
		want string
	}{
		{w.pool, v1alpha1.PoolNode{State: v1alpha1.PoolRunning}, good, ""},
		{w.pool, v1alpha1.PoolNode{State: v1alpha1.PoolRunning}, small, "Low CPUs (reported:1 < configured:4)"},
		{w.pool, v1alpha1.PoolNode{State: v1alpha1.PoolRunning}, taken,
			"Karpenter removes it, too (label karpenter.sh/nodepool=general)"},
		{w.pool, v1alpha1.PoolNode{State: v1alpha1.PoolPoweringUp, Progress: "not launched"}, good, "not launched"},
		{w.pool, v1alpha1.PoolNode{State: v1alpha1.PoolFailed, Reason: "ResumeTimeout reached"}, good,
			"ResumeTimeout reached"},
		{bare, v1alpha1.PoolNode{State: v1alpha1.PoolPoweredDown}, good,
			"nothing brings the nodes: none of program, karpenter, provisioningRequest and clusterAPI is set"},
	} {
		p := Power{PoolNode: x.node, Pool: x.pool}
		if got := p.Trouble(x.o); got != x.want {
			t.Errorf("%+v: %q, want %q", x.node, got, x.want)
		}
	}
}

// The object of a pool's node may have another name, which the provider chose.
func TestNodesThatTheirProviderNames(t *testing.T) {
	w := newWorld()
	named := func(object, name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: object, Annotations: map[string]string{"berth.hpc/node-name": name},
		}}
	}
	leaving := named("a-old", "c2")
	leaving.DeletionTimestamp = &metav1.Time{}
	other := named("x-c1", "c1")
	w.pool.Status.Nodes = []v1alpha1.PoolNode{{Name: "c1", State: v1alpha1.PoolPoweringUp}}
	merged, power := Merge([]*v1alpha1.NodePool{w.pool}, []*corev1.Node{other, leaving, named("b-new", "c2")}, w.now)
	got := map[string]string{}
	for _, n := range merged {
		got[n.Name] = power[n.Name].State
	}
	want := map[string]string{
		"c1": v1alpha1.PoolPoweringUp, "b-new": v1alpha1.PoolRunning, "c3": v1alpha1.PoolPoweredDown,
	}
	if len(got) != len(merged) || !maps.Equal(got, want) {
		t.Errorf("the nodes are %v, want %v", got, want)
	}
}
