package power

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/pools"
	"github.com/berth-hpc/berth/internal/wire"
)

// nameNode writes to a Node object which node of the pool it is, with the features and the
// geometry that the pool promises. extra are further annotations. The object must not have
// changed since it was read.
func nameNode(
	ctx context.Context, c *control.Cluster, pool *v1alpha1.NodePool, n *corev1.Node, name string,
	extra map[string]string,
) error {
	labels, annotations := pools.Metadata(pool)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !strings.HasPrefix(key, wire.LabelFeature) })
	labels[wire.LabelNodePool] = pool.Name
	maps.Copy(annotations, extra)
	annotations[wire.AnnotationNodeName] = name
	named := n.DeepCopy()
	named.Labels, named.Annotations = merged(n.Labels, labels), merged(n.Annotations, annotations)
	patch := client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{})
	if err := c.Client.Patch(ctx, named, patch); err != nil {
		return fmt.Errorf("name of node %s: %w", n.Name, err)
	}
	c.Nodes.Apply(named)
	return nil
}

// merged returns the entries of both maps; those of b replace those of a.
func merged(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}

// isNamed reports whether the object is the node of the pool with that name.
func isNamed(n *corev1.Node, pool *v1alpha1.NodePool, name string) bool {
	return n.Annotations[wire.AnnotationNodeName] == name && n.Labels[wire.LabelNodePool] == pool.Name
}

// oldestFirst orders objects by their age, those of the same second by name.
func oldestFirst[T client.Object](a, b T) int {
	x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return cmp.Or(x.Compare(y.Time), cmp.Compare(a.GetName(), b.GetName()))
}

// inStates returns the names of the pool's nodes that are in one of the states, in the order of
// the status.
func inStates(pool *v1alpha1.NodePool, states ...string) (names []string) {
	for _, n := range pool.Status.Nodes {
		if slices.Contains(states, n.State) {
			names = append(names, n.Name)
		}
	}
	return names
}
