package nodehealth

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// defaultNotices are the keys of taints, and types of conditions, that are documented by those
// who remove nodes: cluster-autoscaler (ToBeDeletedByClusterAutoscaler), Karpenter, the
// termination handlers of AWS and Google Cloud, and node-problem-detector on Azure.
var defaultNotices = []string{
	"ToBeDeletedByClusterAutoscaler",
	"karpenter.sh/disrupted",
	"aws-node-termination-handler/spot-itn",
	"aws-node-termination-handler/asg-lifecycle-termination",
	"cloud.google.com/impending-node-termination",
	"PreemptScheduled",
	"TerminateScheduled",
}

// signs are what keeps jobs from a node: types of conditions, and announcements that the node
// will be removed.
type signs struct{ conditions, notices []string }

// notice returns the first announcement that the node will be removed, as a condition, or nil.
func notice(n *corev1.Node, names []string) *corev1.NodeCondition {
	for _, name := range names {
		i := slices.IndexFunc(n.Spec.Taints, func(t corev1.Taint) bool { return strings.EqualFold(t.Key, name) })
		if i >= 0 {
			return &corev1.NodeCondition{
				Type: corev1.NodeConditionType(n.Spec.Taints[i].Key), Message: "the node will be removed",
			}
		}
		if c := unhealthy(n, []string{name}); c != nil {
			return c
		}
	}
	return nil
}

// noteRemoval returns the node with the annotation for the announcement, which may be nil, or
// nil if it is as it should be. The time of an announcement stays.
func noteRemoval(n *corev1.Node, announced *corev1.NodeCondition, now time.Time) *corev1.Node {
	_, key, _ := strings.Cut(n.Annotations[wire.AnnotationRemoval], " ")
	switch {
	case announced == nil && n.Annotations[wire.AnnotationRemoval] != "":
		return without(n, wire.AnnotationRemoval)
	case announced == nil || key == string(announced.Type):
		return nil
	}
	after := n.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[wire.AnnotationRemoval] = now.UTC().Format(time.RFC3339) + " " + string(announced.Type)
	return after
}
