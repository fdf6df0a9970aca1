package snapshot

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-hpc/berth/internal/wire"
)

// FollowNodes takes in nodes that changed, came or went (nil), by their
// Kubernetes names. It follows whether jobs may start on them; where more has
// changed it is false, and the Live is of no use any more.
func (l *Live) FollowNodes(nodes map[string]*corev1.Node) bool {
	for name, now := range nodes {
		i, known := l.byObject[name]
		if !known && (now == nil || now.Labels[wire.LabelManaged] == "false") {
			continue
		}
		if !known || now == nil || !l.flips(l.nodes[i].object, now) {
			return false
		}
		l.nodes[i].object = now
		unavailable := Unavailable(now) != ""
		l.queue.SetUnavailable(i, unavailable) // first: it may share Nodes yet
		l.Nodes[i].Unavailable = unavailable
	}
	return true
}

// flips tells whether jobs may or may not start on the node is all that can
// have changed. Taints decide about pods of workloads only.
func (l *Live) flips(old, now *corev1.Node) bool {
	a, b := old.Spec, now.Spec
	a.Unschedulable, b.Unschedulable = false, false
	if len(l.waiting) == 0 {
		a.Taints, b.Taints = nil, nil
	}
	return old.UID == now.UID && equality.Semantic.DeepEqual(a, b) &&
		maps.Equal(old.Labels, now.Labels) && maps.Equal(described(old), described(now)) &&
		equality.Semantic.DeepEqual(old.Status.Allocatable, now.Status.Allocatable)
}

// described are the annotations without those that say whether jobs may start,
// and why not.
func described(n *corev1.Node) map[string]string {
	out := maps.Clone(n.Annotations)
	delete(out, wire.AnnotationState)
	delete(out, wire.AnnotationReason)
	return out
}
