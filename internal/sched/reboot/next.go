package reboot

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/wire"
)

// Ends of the reasons of nodes, as scontrol(1) words them.
const (
	issued   = " : reboot issued"
	complete = " : reboot complete"
	timedOut = " : reboot timed out"
)

const stateDown = "down" // of wire.AnnotationState

// lookAgain is the interval in which rebooting nodes are looked at, because not every report of
// a kubelet causes a decision.
const lookAgain = 5 * time.Second

// facts are what a decision about a node depends on.
type facts struct {
	now     time.Time
	busy    bool          // jobs have the node
	timeout time.Duration // until it must be back
}

// next returns the node as it should be, or nil if nothing is to be done before due (zero: until
// something changes). r is the reboot that its annotations describe.
func next(n *corev1.Node, r *wire.NodeReboot, f facts) (after *corev1.Node, due time.Time) {
	if r.Issued == nil {
		if f.busy {
			return nil, time.Time{}
		}
		return issue(n, *r, f.now), time.Time{}
	}
	if hasReturned(n, r) {
		return resume(n, r, f.now), time.Time{}
	}
	if due = r.Issued.Add(f.timeout); f.now.Before(due) {
		if again := f.now.Add(lookAgain); again.Before(due) {
			return nil, again
		}
		return nil, due
	}
	after = without(n)
	setDown(after, timedOut, f.now)
	return after, time.Time{}
}

// issue returns the node, kept from all jobs until it has rebooted.
func issue(n *corev1.Node, r wire.NodeReboot, now time.Time) *corev1.Node {
	after := without(n)
	at := now.UTC().Truncate(time.Second) // the precision of conditions
	r.Issued, r.BootID = &at, n.Status.NodeInfo.BootID
	if !r.Drained {
		r.State, r.Cordoned = n.Annotations[wire.AnnotationState], n.Spec.Unschedulable
	}
	setDown(after, issued, now)
	after.Annotations[wire.AnnotationReboot] = r.String()
	return after
}

// hasReturned reports whether the node has rebooted and its kubelet is ready. Without boot IDs
// it must have become ready after the reboot was issued.
func hasReturned(n *corev1.Node, r *wire.NodeReboot) bool {
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady || c.Status != corev1.ConditionTrue {
			continue
		}
		if id := n.Status.NodeInfo.BootID; id != "" || r.BootID != "" {
			return id != r.BootID
		}
		return c.LastTransitionTime.After(*r.Issued)
	}
	return false
}

// resume returns the node in the state that was requested for the time after the reboot.
func resume(n *corev1.Node, r *wire.NodeReboot, now time.Time) *corev1.Node {
	after := without(n)
	switch {
	case r.NextState == wire.RebootDown:
		setDown(after, complete, now)
	case r.NextState == "" && (r.State != "" || r.Cordoned): // an operator had drained it before
		after.Spec.Unschedulable = r.Cordoned
		setAnnotation(after, wire.AnnotationState, r.State)
	default:
		after.Spec.Unschedulable = false
		delete(after.Annotations, wire.AnnotationState)
		delete(after.Annotations, wire.AnnotationReason)
		delete(after.Annotations, wire.AnnotationDrainedFor)
	}
	return after
}

// setDown keeps jobs from the node and adds to its reason.
func setDown(n *corev1.Node, why string, now time.Time) {
	text, _, _ := nodeinfo.Reason(n)
	n.Annotations[wire.AnnotationState] = stateDown
	n.Annotations[wire.AnnotationReason] = text + why + " [root@" + now.UTC().Format("2006-01-02T15:04:05") + "]"
	n.Spec.Unschedulable = true
}

func setAnnotation(n *corev1.Node, key, value string) {
	if value == "" {
		delete(n.Annotations, key)
		return
	}
	n.Annotations[key] = value
}

// without returns a copy of the node without a reboot.
func without(n *corev1.Node) *corev1.Node {
	after := n.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	delete(after.Annotations, wire.AnnotationReboot)
	return after
}
