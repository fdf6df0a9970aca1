package snapshot

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// PodJobID returns the number of the job that the pod's label names, or 0.
func PodJobID(p *corev1.Pod) int64 {
	id, err := strconv.ParseInt(p.Labels[wire.LabelJobID], 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// IsTerminated reports whether all containers of the pod have ended for good.
func IsTerminated(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// isAccounted reports whether the pod's resources are accounted for elsewhere: it
// has terminated, or the allocation of its job includes them.
func (s *Snapshot) isAccounted(p *corev1.Pod) bool {
	if IsTerminated(p) || s.placedPods[p.UID] {
		return true
	}
	b := s.jobs[PodJobID(p)]
	if b == nil || b.Namespace != p.Namespace || strconv.Itoa(int(b.Status.Attempt)) != p.Labels[wire.LabelAttempt] {
		return false
	}
	// A pod that outlives its job belongs to the job that runs in it now, or is
	// idle and uses nothing.
	return b.HoldsAllocation() || b.Status.Pods != nil
}
