package nodehealth

import (
	"context"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
)

// world is a cluster of one node with a controller.
type world struct {
	*Controller
	t *testing.T
	c *control.Cluster
}

func newWorld(t *testing.T) *world {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	c := fake.Cluster(interceptor.Funcs{}, n)
	return &world{New(c, func() time.Time { return time.Unix(1800000000, 0) }, slog.New(slog.DiscardHandler)), t, c}
}

func (w *world) node() *corev1.Node {
	w.t.Helper()
	n := &corev1.Node{}
	if err := w.c.Client.Get(context.Background(), client.ObjectKey{Name: "n1"}, n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// change changes the node as another process does, and lets the controller look at it.
func (w *world) change(f func(*corev1.Node)) *corev1.Node {
	w.t.Helper()
	n := w.node()
	f(n)
	conditions := n.Status.Conditions
	if err := w.c.Client.Update(context.Background(), n); err != nil {
		w.t.Fatal(err)
	}
	n.Status.Conditions = conditions
	if err := w.c.Client.Status().Update(context.Background(), n); err != nil {
		w.t.Fatal(err)
	}
	w.c.Nodes.Apply(w.node())
	if err := w.check(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	return w.node()
}

// report sets a condition of the node.
func report(kind string, status corev1.ConditionStatus, message string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			if string(n.Status.Conditions[i].Type) == kind {
				n.Status.Conditions[i].Status = status
				return
			}
		}
		n.Status.Conditions = append(n.Status.Conditions,
			corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status, Message: message})
	}
}

func (w *world) expect(n *corev1.Node, state, reason string) {
	w.t.Helper()
	if n.Annotations[wire.AnnotationState] != state || n.Annotations[wire.AnnotationReason] != reason ||
		n.Spec.Unschedulable != (state != "") {
		w.t.Errorf("state %q, reason %q, unschedulable %v, want %q, %q", n.Annotations[wire.AnnotationState],
			n.Annotations[wire.AnnotationReason], n.Spec.Unschedulable, state, reason)
	}
}

const deadlock = "KernelDeadlock: task stuck for 120 s [root@2027-01-15T08:00:00]"

func TestNodeIsDrainedAndResumed(t *testing.T) {
	w := newWorld(t)
	w.expect(w.change(report("KernelDeadlock", corev1.ConditionFalse, "")), "", "")
	w.expect(w.change(report("DiskPressure", corev1.ConditionTrue, "full")), "", "") // none of those that drain
	n := w.change(func(n *corev1.Node) {
		n.Status.Conditions = nil
		report("KernelDeadlock", corev1.ConditionTrue, "task stuck\n for 120 s")(n)
	})
	w.expect(n, "drain", deadlock)
	w.expect(w.change(func(*corev1.Node) {}), "drain", deadlock) // nothing is written twice
	n = w.change(report("ReadonlyFilesystem", corev1.ConditionTrue, "sda1"))
	w.expect(n, "drain", deadlock)
	n = w.change(report("KernelDeadlock", corev1.ConditionFalse, ""))
	w.expect(n, "drain", "ReadonlyFilesystem: sda1 [root@2027-01-15T08:00:00]")
	n = w.change(report("ReadonlyFilesystem", corev1.ConditionUnknown, ""))
	w.expect(n, "", "")
	if _, left := n.Annotations[wire.AnnotationDrainedFor]; left {
		t.Error("an annotation is left")
	}
}

func TestOperatorsDecide(t *testing.T) {
	w := newWorld(t)
	operator := func(state, reason string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			if n.Annotations == nil {
				n.Annotations = map[string]string{}
			}
			n.Annotations[wire.AnnotationState], n.Annotations[wire.AnnotationReason] = state, reason
			n.Spec.Unschedulable = true
		}
	}
	w.change(operator("drain", "disk [anna@2027-01-01T00:00:00]"))
	n := w.change(report("KernelDeadlock", corev1.ConditionTrue, "x"))
	w.expect(n, "drain", "disk [anna@2027-01-01T00:00:00]")
	n = w.change(report("KernelDeadlock", corev1.ConditionFalse, "x"))
	w.expect(n, "drain", "disk [anna@2027-01-01T00:00:00]") // it was not drained for the condition

	w = newWorld(t)
	w.change(report("KernelDeadlock", corev1.ConditionTrue, "task stuck for 120 s"))
	w.change(operator("down", "replaced [anna@2027-01-01T00:00:00]"))
	n = w.change(report("KernelDeadlock", corev1.ConditionFalse, ""))
	w.expect(n, "down", "replaced [anna@2027-01-01T00:00:00]")

	w = newWorld(t)
	n = w.change(func(n *corev1.Node) {
		n.Spec.Unschedulable = true // kubectl cordon
		report("KernelDeadlock", corev1.ConditionTrue, "x")(n)
	})
	if n.Annotations[wire.AnnotationState] != "" || !n.Spec.Unschedulable {
		t.Errorf("a node that was cordoned: %v", n.Annotations)
	}
	w = newWorld(t)
	n = w.change(func(n *corev1.Node) {
		n.Labels = map[string]string{wire.LabelManaged: "false"}
		report("KernelDeadlock", corev1.ConditionTrue, "x")(n)
	})
	w.expect(n, "", "")
}

func TestConditionsAreConfigured(t *testing.T) {
	for _, tt := range []struct {
		configured []string
		kind       string
		want       bool
	}{
		{nil, "KernelDeadlock", true}, {nil, "GpuUnhealthy", false},
		{[]string{"GpuUnhealthy"}, "GpuUnhealthy", true}, {[]string{"GpuUnhealthy"}, "KernelDeadlock", false},
		{[]string{"NONE"}, "KernelDeadlock", false},
	} {
		n := &corev1.Node{}
		report(tt.kind, corev1.ConditionTrue, "")(n)
		if got := decide(n, signs{conditions: configured(tt.configured, defaultConditions)}, time.Unix(0, 0)) != nil; got != tt.want {
			t.Errorf("%v, %s: %v", tt.configured, tt.kind, got)
		}
	}
}
