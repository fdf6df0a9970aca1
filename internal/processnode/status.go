package processnode

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/berth-hpc/berth/internal/processnode/probe"
)

// post requests a write of the status. Several changes may be written together.
func (p *pod) post() {
	select {
	case p.dirty <- struct{}{}:
	default:
	}
}

// postChanges writes the status after each change, until stop is closed.
func (p *pod) postChanges(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-p.dirty:
		}
		// finish writes the last status, which another write would only delay.
		if p.over.Load() {
			continue
		}
		p.patch(p.status(false))
	}
}

const (
	patchPause    = 100 * time.Millisecond
	patchPauseMax = 5 * time.Second
	patchRefused  = 5 // attempts if the API server reports a conflict or an invalid status
)

// patch writes a status and retries until it succeeds. It reports false if the pod was
// deleted, the API server refuses the status, or the node has stopped.
func (p *pod) patch(status *corev1.PodStatus) bool {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.spec.UID},
		"status":   status,
	})
	if err != nil {
		p.m.log("status of pod %s/%s: %v", p.spec.Namespace, p.spec.Name, err)
		return false
	}
	pause, refused := patchPause, 0
	for {
		_, err := p.m.cfg.Client.CoreV1().Pods(p.spec.Namespace).Patch(p.m.api, p.spec.Name,
			types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
		if err == nil {
			return true
		}
		if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
			refused++
		}
		if apierrors.IsNotFound(err) || p.m.api.Err() != nil {
			return false
		}
		if refused == patchRefused {
			p.m.log("status of pod %s/%s: %v", p.spec.Namespace, p.spec.Name, err)
			return false
		}
		if !probe.Sleep(p.m.api, pause) {
			return false
		}
		pause = min(2*pause, patchPauseMax)
	}
}

// remove deletes the pod from the API server. Only the first call has an effect.
func (p *pod) remove() {
	p.removing.Do(func() {
		options := metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0),
			Preconditions:      &metav1.Preconditions{UID: &p.spec.UID},
		}
		for pause := patchPause; ; pause = min(2*pause, patchPauseMax) {
			err := p.m.cfg.Client.CoreV1().Pods(p.spec.Namespace).Delete(p.m.api, p.spec.Name, options)
			if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || !probe.Sleep(p.m.api, pause) {
				return
			}
		}
	})
}

// status returns the pod's current status. last is true after all of its processes have
// ended.
func (p *pod) status(last bool) *corev1.PodStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &corev1.PodStatus{
		StartTime: &p.startTime,
		HostIP:    p.m.hostIP,
		HostIPs:   []corev1.HostIP{{IP: p.m.hostIP}},
	}
	if p.net != nil {
		s.PodIP = p.net.Address.String()
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	for _, c := range p.inits {
		s.InitContainerStatuses = append(s.InitContainerStatuses, c.status(last))
	}
	for _, c := range p.containers {
		s.ContainerStatuses = append(s.ContainerStatuses, c.status(last))
	}
	s.Phase = p.phase(s, last)
	s.Reason, s.Message = p.reason, p.message
	s.Conditions = p.conditions(s, last)
	if last && p.lost && s.Phase == corev1.PodFailed && p.reason == "" {
		s.Reason, s.Message = reasonLost, messageLost
	}
	return s
}

// phase returns the pod's phase, from the statuses of its containers. It is called with mu
// held.
func (p *pod) phase(s *corev1.PodStatus, last bool) corev1.PodPhase {
	if last {
		if p.reason != "" || p.lost || !p.started && len(p.containers) > 0 {
			return corev1.PodFailed
		}
		for _, c := range s.ContainerStatuses {
			if c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
				return corev1.PodFailed
			}
		}
		return corev1.PodSucceeded
	}
	for _, c := range s.ContainerStatuses {
		if c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil {
			return corev1.PodRunning
		}
	}
	return corev1.PodPending
}

// conditions returns the conditions of the pod with the times of their last transitions. It
// is called with mu held.
func (p *pod) conditions(s *corev1.PodStatus, last bool) []corev1.PodCondition {
	ready := p.started && !last
	unready := "ContainersNotReady"
	for _, c := range s.ContainerStatuses {
		ready = ready && c.Ready
	}
	if last {
		unready = "PodCompleted"
		if s.Phase == corev1.PodFailed {
			unready = "PodFailed"
		}
	}
	return []corev1.PodCondition{
		p.condition(corev1.PodReadyToStartContainers, p.net != nil && !last, ""),
		p.condition(corev1.PodInitialized, p.initDone, "ContainersNotInitialized"),
		p.condition(corev1.ContainersReady, ready, unready),
		p.condition(corev1.PodReady, ready, unready),
	}
}

func (p *pod) condition(kind corev1.PodConditionType, on bool, reason string) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.Now(),
	}
	if on {
		c.Status, c.Reason = corev1.ConditionTrue, ""
	}
	if old, ok := p.changes[kind]; ok && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	p.changes[kind] = c
	return c
}
