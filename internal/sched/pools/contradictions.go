package pools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// contradictions returns how nodes that run differ from what the pool says about them, and
// whether another autoscaler removes them, too; "": nothing. Nodes with the same problem share
// its text.
func contradictions(p *v1alpha1.NodePool, nodes []v1alpha1.PoolNode, object func(string) *corev1.Node) string {
	found := map[string][]string{}
	for i := range nodes {
		n := &nodes[i]
		if n.State != v1alpha1.PoolRunning {
			continue
		}
		if o := object(n.Name); o != nil {
			for _, text := range contradictionsOf(p, o) {
				found[text] = append(found[text], n.Name)
			}
		}
	}
	var out []string
	for _, text := range slices.Sorted(maps.Keys(found)) {
		out = append(out, hostlist.Fold(found[text])+": "+text)
	}
	return strings.Join(out, "; ")
}

// contradictionsOf returns how a node that runs differs from what its pool says.
func contradictionsOf(p *v1alpha1.NodePool, o *corev1.Node) []string {
	all := []string{lacks(&p.Spec, o), lacksLabel(&p.Spec, o), otherAutoscaler(o)}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// Trouble returns what is wrong with a node of a pool, for scontrol show node: why it failed or
// has not come yet, how it differs from what its pool says, or that nothing can bring it. ""
// means nothing. object is the node's, of which a pool's template counts as one too.
func (p *Power) Trouble(object *corev1.Node) string {
	switch {
	case p.Reason != "":
		return p.Reason
	case p.State == v1alpha1.PoolPoweringUp:
		return p.Progress
	case p.State == v1alpha1.PoolRunning:
		return strings.Join(contradictionsOf(p.Pool, object), "; ")
	}
	return unbringable(&p.Pool.Spec)
}

// unbringable returns why no node of the pool can come; "": they can.
func unbringable(s *v1alpha1.NodePoolSpec) string {
	if s.Program == nil && !s.NamesObjects() {
		return "nothing brings the nodes: none of program, karpenter, provisioningRequest and clusterAPI is set"
	}
	return ""
}

// lacksLabel returns which promised label the node does not have; "": none.
func lacksLabel(s *v1alpha1.NodePoolSpec, n *corev1.Node) string {
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if n.Labels[key] != s.Labels[key] {
			return fmt.Sprintf("without the label %s=%s", key, s.Labels[key])
		}
	}
	return ""
}

// Marks of autoscalers: cluster-autoscaler taints nodes that it removes or is about to remove,
// and Karpenter labels the nodes of its own pools.
const (
	taintAutoscaler = "OfClusterAutoscaler"
	taintToBeGone   = "ToBeDeletedByClusterAutoscaler"
	labelKarpenter  = "karpenter.sh/nodepool"
)

// otherAutoscaler returns the sign that something else than this pool decides when the node is
// removed; "": there is none.
func otherAutoscaler(n *corev1.Node) string {
	for i := range n.Spec.Taints {
		if key := n.Spec.Taints[i].Key; key == taintToBeGone || strings.HasSuffix(key, taintAutoscaler) {
			return "cluster-autoscaler removes it, too (taint " + key + ")"
		}
	}
	if pool, ok := n.Labels[labelKarpenter]; ok {
		return "Karpenter removes it, too (label " + labelKarpenter + "=" + pool + ")"
	}
	return ""
}

// join joins texts that are not empty.
func join(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "; ")
}
