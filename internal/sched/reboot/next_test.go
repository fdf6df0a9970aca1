package reboot

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// node returns a ready node with the request r, which was drained before if state is set.
func node(r *wire.NodeReboot, state, reason string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{
		wire.AnnotationReboot: r.String(), wire.AnnotationReason: reason + " [root@2026-01-02T03:00:00]",
	}}}
	if state != "" {
		n.Annotations[wire.AnnotationState], n.Spec.Unschedulable = state, true
	}
	n.Status.NodeInfo.BootID = "first"
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(-time.Hour)),
	}}
	return n
}

// state returns what a node says about its state.
func state(n *corev1.Node) string {
	text := n.Annotations[wire.AnnotationState] + "|" + n.Annotations[wire.AnnotationReason]
	if n.Spec.Unschedulable {
		text += "|cordoned"
	}
	if n.Annotations[wire.AnnotationReboot] != "" {
		text += "|reboot"
	}
	return text
}

// decide returns the node after the decision, or the node itself.
func decide(t *testing.T, n *corev1.Node, busy bool, after time.Duration) *corev1.Node {
	t.Helper()
	r := wire.ParseNodeReboot(n.Annotations)
	if r == nil {
		t.Fatalf("%s has no reboot", state(n))
	}
	changed, due := next(n, r, facts{now: start.Add(after), busy: busy, timeout: time.Minute})
	if changed == nil {
		if r.Issued != nil && !due.After(start.Add(after)) {
			t.Errorf("looked at again at %v", due)
		}
		return n
	}
	return changed
}

// A node reboots when its jobs have ended, and then has the state that was requested.
func TestStatesOfAReboot(t *testing.T) {
	for name, x := range map[string]struct {
		request       wire.NodeReboot
		state, reason string // before
		issued, back  string
	}{
		"plain": {wire.NodeReboot{}, "", "reboot requested",
			"down|reboot requested : reboot issued [root@2026-01-02T03:04:05]|cordoned|reboot", "|"},
		"ASAP": {wire.NodeReboot{Drained: true, NextState: "RESUME"}, "drain", "Reboot ASAP",
			"down|Reboot ASAP : reboot issued [root@2026-01-02T03:04:05]|cordoned|reboot", "|"},
		"down": {wire.NodeReboot{NextState: "DOWN"}, "", "abc",
			"down|abc : reboot issued [root@2026-01-02T03:04:05]|cordoned|reboot",
			"down|abc : reboot issued : reboot complete [root@2026-01-02T03:04:15]|cordoned"},
		"drained before": {wire.NodeReboot{}, "drain", "mine",
			"down|mine : reboot issued [root@2026-01-02T03:04:05]|cordoned|reboot",
			"drain|mine : reboot issued [root@2026-01-02T03:04:05]|cordoned"},
		"drained before, to be resumed": {wire.NodeReboot{NextState: "RESUME"}, "drain", "mine",
			"down|mine : reboot issued [root@2026-01-02T03:04:05]|cordoned|reboot", "|"},
	} {
		n := node(&x.request, x.state, x.reason)
		if waits := decide(t, n, true, 0); waits != n {
			t.Errorf("%s: a node with a job becomes %s", name, state(waits))
		}
		n = decide(t, n, false, 0)
		if got := state(n); got != x.issued {
			t.Errorf("%s: issued: %s, want %s", name, got, x.issued)
		}
		late := decide(t, n, false, time.Minute)
		if want := n.Annotations[wire.AnnotationReason]; late.Annotations[wire.AnnotationState] != "down" ||
			late.Annotations[wire.AnnotationReason] != want[:len(want)-len(" [root@2026-01-02T03:04:05]")]+
				" : reboot timed out [root@2026-01-02T03:05:05]" || late.Annotations[wire.AnnotationReboot] != "" {
			t.Errorf("%s: timed out: %s", name, state(late))
		}
		n = decide(t, n, false, 10*time.Second) // nothing has happened
		n = n.DeepCopy()
		n.Status.NodeInfo.BootID = "second"
		if got := state(decide(t, n, false, 10*time.Second)); got != x.back {
			t.Errorf("%s: back: %s, want %s", name, got, x.back)
		}
	}
}

// A node without a boot ID has rebooted when it has become ready again.
func TestNodeWithoutBootID(t *testing.T) {
	n := node(&wire.NodeReboot{}, "", "x")
	n.Status.NodeInfo.BootID = ""
	n = decide(t, n, false, 0).DeepCopy()
	ready := &n.Status.Conditions[0]
	for _, x := range []struct {
		status  corev1.ConditionStatus
		since   time.Duration
		reboots bool
	}{
		{corev1.ConditionTrue, -time.Hour, true}, {corev1.ConditionUnknown, 5 * time.Second, true},
		{corev1.ConditionTrue, 9 * time.Second, false},
	} {
		ready.Status, ready.LastTransitionTime = x.status, metav1.NewTime(start.Add(x.since))
		after := decide(t, n, false, 10*time.Second)
		if got := after.Annotations[wire.AnnotationReboot] != ""; got != x.reboots {
			t.Errorf("%s since %v: reboots %v", x.status, x.since, got)
		}
	}
}
