package nodeinfo

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// IsUnreachable reports whether Kubernetes has not heard of the node for the grace period of the
// node lifecycle controller. A node that has never reported is not called so.
func IsUnreachable(n *corev1.Node) bool {
	c := readiness(n)
	return c != nil && c.Status == corev1.ConditionUnknown
}

// LostAt returns when the jobs of an unreachable node are given up, because it has not responded
// for the timeout; zero: they never are, which a timeout of 0 means.
func LostAt(n *corev1.Node, timeout time.Duration) time.Time {
	if timeout == 0 {
		return time.Time{}
	}
	return readiness(n).LastTransitionTime.Add(timeout)
}

// IsLost reports whether an unreachable node is lost at the instant (see LostAt).
func IsLost(n *corev1.Node, timeout time.Duration, now time.Time) bool {
	at := LostAt(n, timeout)
	return !at.IsZero() && !now.Before(at)
}

// readiness returns the Ready condition of the node, or nil.
func readiness(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}
