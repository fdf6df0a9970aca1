package processnode

import (
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// reasonLost and messageLost are the reason and message of pods that ended because the
// process of their node ended.
const (
	reasonLost  = "Terminated"
	messageLost = "The process node that ran the pod was stopped, which ended the pod's processes."
)

// startedBefore reports whether a previous Run had started a pod.
func (m *manager) startedBefore(spec *corev1.Pod) bool {
	if spec.Status.StartTime != nil {
		return true
	}
	_, err := os.Stat(filepath.Join(m.podsDir(), string(spec.UID)))
	return err == nil
}

// cleanUpPod marks a pod whose processes have ended with a previous Run as failed, and
// deletes it if that was requested.
func (m *manager) cleanUpPod(spec *corev1.Pod) {
	p := m.newPod(spec, m.nodes[spec.Spec.NodeName])
	defer p.cancel()
	if spec.Status.Phase != corev1.PodSucceeded && spec.Status.Phase != corev1.PodFailed {
		status := spec.Status.DeepCopy()
		lostStatus(status)
		if !p.patch(status) {
			return
		}
	}
	if spec.DeletionTimestamp != nil {
		p.remove()
	}
}

// lostStatus changes a status to that of a lost pod.
func lostStatus(s *corev1.PodStatus) {
	s.Phase, s.Reason, s.Message = corev1.PodFailed, reasonLost, messageLost
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			c := &list[i]
			c.Ready, c.Started = false, nil
			if c.State.Terminated != nil {
				continue
			}
			end := &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "ContainerStatusUnknown", Message: messageLost, ContainerID: c.ContainerID,
			}
			if c.State.Running != nil {
				end.StartedAt = c.State.Running.StartedAt
			}
			c.State = corev1.ContainerState{Terminated: end}
		}
	}
	for i := range s.Conditions {
		if t := s.Conditions[i].Type; t == corev1.PodReady || t == corev1.ContainersReady {
			s.Conditions[i].Status, s.Conditions[i].Reason = corev1.ConditionFalse, "PodFailed"
		}
	}
}

// removeDirs removes the directories of pods that no longer exist.
func (m *manager) removeDirs(store cache.Store) {
	known := map[string]bool{}
	for _, obj := range store.List() {
		if p, ok := obj.(*corev1.Pod); ok {
			known[string(p.UID)] = true
		}
	}
	entries, err := os.ReadDir(m.podsDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		if !known[e.Name()] {
			_ = os.RemoveAll(filepath.Join(m.podsDir(), e.Name()))
		}
	}
}
