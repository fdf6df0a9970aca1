package snapshot

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/wire"
)

// FollowNodes applies nodes that were added, changed or deleted (nil), by their
// Kubernetes names. It can apply a change of whether jobs may start on a node that belongs
// to no pool. It returns false for any other change; then the Incremental must be replaced.
func (x *Incremental) FollowNodes(nodes map[string]*corev1.Node) bool {
	for name, n := range nodes {
		i, known := x.byObject[name]
		if !known && (n == nil || !nodeinfo.Managed(n)) {
			continue
		}
		if !known || n == nil || x.nodes[i].power != nil || !differsInAvailability(x.nodes[i].object, n) {
			return false
		}
		x.nodes[i].object = n
		unavailable := nodeinfo.Unavailable(n) != ""
		x.queue.SetUnavailable(i, unavailable) // first, because the queue may share Nodes
		x.Nodes[i].Unavailable = unavailable
	}
	return true
}

// differsInAvailability reports whether two versions of a node differ at most in
// whether jobs may start there.
func differsInAvailability(old, n *corev1.Node) bool {
	a, b := old.Spec, n.Spec
	a.Unschedulable, b.Unschedulable = false, false
	a.Taints, b.Taints = restrictingTaints(old), restrictingTaints(n)
	return old.UID == n.UID && equality.Semantic.DeepEqual(a, b) && maps.Equal(old.Labels, n.Labels) &&
		maps.Equal(annotationsExceptState(old), annotationsExceptState(n)) &&
		equality.Semantic.DeepEqual(old.Status.Allocatable, n.Status.Allocatable) &&
		equality.Semantic.DeepEqual(old.Status.Capacity, n.Status.Capacity)
}

// annotationsExceptState returns the annotations without those that say whether and
// why no jobs may start.
func annotationsExceptState(n *corev1.Node) map[string]string {
	out := maps.Clone(n.Annotations)
	delete(out, wire.AnnotationState)
	delete(out, wire.AnnotationReason)
	delete(out, wire.AnnotationReboot)
	delete(out, wire.AnnotationRemoval)
	return out
}
