package pools

import (
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
