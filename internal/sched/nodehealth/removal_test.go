package nodehealth

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// taint sets or removes a taint of the node.
func taint(key string, set bool) func(*corev1.Node) {
	return func(n *corev1.Node) {
		if n.Spec.Taints = nil; set {
			n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
}

// A node that will be removed is drained until it stays after all, and the time of the
// announcement is kept.
func TestRemovalIsAnnounced(t *testing.T) {
	const spot = "aws-node-termination-handler/spot-itn"
	w := newWorld(t)
	w.expect(w.change(taint("dedicated", true)), "", "")
	n := w.change(taint(spot, true))
	w.expect(n, "drain", spot+": the node will be removed [root@2027-01-15T08:00:00]")
	const noted = "2027-01-15T08:00:00Z " + spot
	if got := n.Annotations[wire.AnnotationRemoval]; got != noted {
		t.Errorf("noted %q, want %q", got, noted)
	}
	w.now = func() time.Time { return time.Unix(1800000060, 0) }
	n = w.change(func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} })
	if got := n.Annotations[wire.AnnotationRemoval]; got != noted {
		t.Errorf("a minute later: noted %q, want %q", got, noted)
	}
	n = w.change(taint(spot, false))
	w.expect(n, "", "")
	if got := n.Annotations[wire.AnnotationRemoval]; got != "" {
		t.Errorf("it stays: noted %q", got)
	}
}

// The announcement is noted also on a node that an operator has drained, whose state it does
// not change; a condition can be an announcement.
func TestRemovalOfADrainedNode(t *testing.T) {
	w := newWorld(t)
	w.change(func(n *corev1.Node) {
		n.Annotations = map[string]string{wire.AnnotationState: "drain", wire.AnnotationReason: "disk"}
		n.Spec.Unschedulable = true
	})
	n := w.change(report("PreemptScheduled", corev1.ConditionTrue, "at 12:00"))
	w.expect(n, "drain", "disk")
	if got := n.Annotations[wire.AnnotationRemoval]; got != "2027-01-15T08:00:00Z PreemptScheduled" {
		t.Errorf("noted %q", got)
	}
	n = w.change(report("PreemptScheduled", corev1.ConditionFalse, ""))
	w.expect(n, "drain", "disk")
	if got := n.Annotations[wire.AnnotationRemoval]; got != "" {
		t.Errorf("it stays: noted %q", got)
	}
}

func TestAnnouncementsAreConfigured(t *testing.T) {
	for _, tt := range []struct {
		configured []string
		key        string
		want       bool
	}{
		{nil, "karpenter.sh/disrupted", true}, {nil, "example.org/leaving", false},
		{[]string{"example.org/leaving"}, "example.org/leaving", true},
		{[]string{"example.org/leaving"}, "karpenter.sh/disrupted", false}, {[]string{"none"}, "karpenter.sh/disrupted", false},
	} {
		n := &corev1.Node{}
		taint(tt.key, true)(n)
		if got := decide(n, signs{notices: configured(tt.configured, defaultNotices)}, time.Unix(0, 0)) != nil; got != tt.want {
			t.Errorf("%v, %s: %v", tt.configured, tt.key, got)
		}
	}
}
