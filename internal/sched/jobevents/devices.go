package jobevents

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// DevicesChanged returns a subscription to nodes that writes an event if what trouble returns for a
// node changes: which of its devices cannot be used.
func (r *Recorder) DevicesChanged(trouble func(*corev1.Node) string) func(old, now *corev1.Node) {
	return func(old, now *corev1.Node) {
		if old == nil || now == nil || r.level() == v1alpha1.JobEventsNone {
			return
		}
		switch before, after := trouble(old), trouble(now); {
		case before == after:
		case after == "":
			r.recorder.Event(now, corev1.EventTypeNormal, "DevicesUsable", "all devices can be used again")
		default:
			r.recorder.Event(now, corev1.EventTypeWarning, "DevicesUnusable", after)
		}
	}
}
