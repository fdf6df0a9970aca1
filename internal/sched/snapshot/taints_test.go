package snapshot

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// Partitions depend on taints, so a node whose taints change cannot be followed, unless they are
// those of its state or announce its removal, which drains it.
func TestTaintsThatChangePartitions(t *testing.T) {
	const spot = "aws-node-termination-handler/spot-itn"
	for key, follows := range map[string]bool{
		"team": false, spot: true, "node.kubernetes.io/not-ready": true, wire.LabelManaged: true,
	} {
		before, after := &corev1.Node{}, &corev1.Node{}
		after.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
		after.Annotations = map[string]string{wire.AnnotationRemoval: "2026-01-02T03:04:05Z " + spot}
		if got := differsInAvailability(before, after); got != follows {
			t.Errorf("%s: followed %v", key, got)
		}
		if got := toleratesTaints(nil, after); got != follows {
			t.Errorf("%s: in partitions %v", key, got)
		}
	}
}
