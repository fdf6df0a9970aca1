package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// unschedulableTimeout is how long kube-scheduler may reject a planned node before the job
// is requeued. It usually still counts a pod that has just ended.
const unschedulableTimeout = 10 * time.Second

// maxBackoff is how long kube-scheduler may pause after it has rejected a pod several times, as
// it does with pods of workloads while their nodes boot (PodMaxBackoffSeconds).
const maxBackoff = 10 * time.Second

// ThrottlePause is the interval in which a job that waits for its turn checks whether it may
// continue, in case it is not queued before.
const ThrottlePause = 5 * time.Second

// configuring is Next for a placed job. Every agent must report before the
// deadline, or the job is requeued. Its script has not started yet.
func (f *Facts) configuring() Action {
	switch {
	case f.Job.EndRequested():
		return endWith(v1alpha1.StateCancelled, "", "")
	case f.Job.RequeueRequested():
		return requeueRequested()
	}
	if a, ok := f.separated(); ok {
		return a
	}
	a, ready, ok := f.awaitNodes()
	if ok {
		return a
	}
	pulling := false
	var devicesDue time.Time
	for _, p := range f.attemptPods() {
		if hasEnded(p) {
			return f.failedStart(p)
		}
		if p.DeletionTimestamp != nil {
			return returnToQueue("pod " + p.Name + " was deleted")
		}
		if why := refusedFor(p, f.Now); why != "" {
			return returnToQueue(why)
		}
		if since := awaitsDevicesSince(p); !since.IsZero() {
			due := since.Add(f.Rules.StartTimeout)
			if !f.Now.Before(due) {
				return f.unpreparedDevices(p)
			}
			devicesDue = earliest(devicesDue, due)
		}
		pulling = pulling || isPulling(p)
	}
	patience := f.Rules.StartTimeout
	if pulling {
		patience = f.Rules.PullTimeout
	}
	deadline := latest(f.agentsAwaitedSince(), ready).Add(patience)
	switch {
	case !f.Progress.Created && f.StartThrottled:
		return Action{Kind: WaitStart, Wake: f.Now.Add(ThrottlePause)}
	case !f.Progress.Created && f.Progress.Queued:
		return Action{Kind: Create}
	case !f.Now.Before(deadline):
		return f.startTimedOut(patience)
	case !f.Progress.Created:
		return Action{Kind: Create}
	}
	return Action{Wake: earliest(earliest(deadline, devicesDue), f.unschedulableDue())}
}

// startTimedOut returns the action for a job whose agents have not all reported in time. The
// message names a pod whose container has not started, and why, if there is one.
func (f *Facts) startTimedOut(patience time.Duration) Action {
	a := returnToQueue(fmt.Sprintf("not every node reported within %s", patience))
	for _, p := range f.attemptPods() {
		if p.Spec.NodeName == "" || p.Status.Phase != corev1.PodPending {
			continue
		}
		a.Outcome.Message += fmt.Sprintf(": pod %s on %s has not started", p.Name, p.Spec.NodeName)
		if why := waitsFor(p); why != "" {
			a.Outcome.Message += ": " + why
		} else {
			a.Outcome.NotStarted = p
		}
		break
	}
	return a
}

// waitsFor returns why a container of the pod cannot start: the reason and the message of the
// kubelet, such as those of an image that cannot be pulled; "": the pod's status does not say.
func waitsFor(p *corev1.Pod) string {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
	}
	return ""
}

// unpreparedDevices returns the action for a job whose pod has waited too long for its devices.
func (f *Facts) unpreparedDevices(p *corev1.Pod) Action {
	a := returnToQueue(fmt.Sprintf("pod %s on %s: its devices were not prepared within %s", p.Name, p.Spec.NodeName,
		f.Rules.StartTimeout))
	a.Outcome.Refused, a.Outcome.ThisJobOnly, a.Outcome.Unprepared = p.Spec.NodeName, true, true
	a.Outcome.NotStarted = p
	return a
}

// failedStart returns the outcome of a job if one of its pods ended before the job started.
// The job has failed if the agent reports an error of the job, or ran out of the job's
// memory; otherwise another attempt may succeed.
func (f *Facts) failedStart(p *corev1.Pod) Action {
	if r, ok := reportOf(p); ok && r.Kind == reportFailed {
		return Action{Kind: End, Outcome: FromReport(r)}
	}
	if isOOMKilled(p) {
		return Action{Kind: End, Outcome: FromReport(wire.Report{OutOfMemory: true})}
	}
	why := p.Status.Reason
	if why == "" {
		why = "ended before the job began"
	}
	a := returnToQueue(fmt.Sprintf("pod %s on %s: %s %s", p.Name, p.Spec.NodeName, why, p.Status.Message))
	if kubeletRefusal(p) != "" {
		a.Outcome.Refused, a.Outcome.ThisJobOnly = p.Spec.NodeName, isMisaligned(p)
	}
	return a
}

// returnToQueue returns the action that requeues the job after a failure.
func returnToQueue(why string) Action {
	return endWith(v1alpha1.StatePending, "", why)
}

// requeueRequested returns the action that requeues the job by request.
func requeueRequested() Action {
	a := endWith(v1alpha1.StatePending, "", "")
	a.Outcome.Requested = true
	return a
}

// refusedFor returns why kube-scheduler has rejected the planned node for
// unschedulableTimeout; "": it has not.
func refusedFor(p *corev1.Pod, now time.Time) string {
	if c := unschedulable(p); c != nil && now.Sub(c.LastTransitionTime.Time) >= unschedulableTimeout {
		return "pod " + p.Name + ": " + c.Message
	}
	return ""
}

// unschedulableDue returns the earliest time at which refusedFor will return a reason for
// a pod; zero: never.
func (f *Facts) unschedulableDue() time.Time {
	var t time.Time
	for _, p := range f.attemptPods() {
		if c := unschedulable(p); c != nil {
			t = earliest(t, c.LastTransitionTime.Add(unschedulableTimeout))
		}
	}
	return t
}

// unschedulable returns the condition with which kube-scheduler reports that it cannot
// place the pod, or nil.
func unschedulable(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable {
			return c
		}
	}
	return nil
}

// isPulling reports whether the pod is bound, but its container has not started.
func isPulling(p *corev1.Pod) bool {
	if isSandboxLost(p) {
		return false
	}
	for i := range p.Status.ContainerStatuses {
		if w := p.Status.ContainerStatuses[i].State.Waiting; w != nil {
			return w.Reason == "ContainerCreating" || w.Reason == "PodInitializing"
		}
	}
	return false
}

// awaitsDevicesSince returns since when the pod, which is bound, may wait for a driver to
// prepare its devices; zero: it does not. A kubelet prepares them before it makes the pod's
// sandbox, and so before it pulls images.
func awaitsDevicesSince(p *corev1.Pod) time.Time {
	if p.Status.ExtendedResourceClaimStatus == nil || p.Status.Phase != corev1.PodPending || isSandboxLost(p) {
		return time.Time{}
	}
	var bound time.Time
	for i := range p.Status.Conditions {
		switch c := &p.Status.Conditions[i]; {
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue:
			bound = c.LastTransitionTime.Time
		case c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue:
			return time.Time{}
		}
	}
	return bound
}

// isSandboxLost reports whether the pod had a sandbox, in which a container has run, and has none
// now, because its node was started again. Kubelets do not always make another one: then the
// pod stays as it is.
func isSandboxLost(p *corev1.Pod) bool {
	ran := slices.ContainsFunc(p.Status.InitContainerStatuses,
		func(c corev1.ContainerStatus) bool { return c.State.Terminated != nil })
	return ran && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionFalse
	})
}

// earliest returns the earlier of two times; zero times do not count.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// AllBound reports whether each node of the job's attempt has its pod.
func (f *Facts) AllBound() bool {
	bound := 0
	for _, p := range f.attemptPods() {
		if p.Spec.NodeName != "" {
			bound++
		}
	}
	return bound >= len(f.Job.Status.Allocation.Nodes)
}

// agentsAwaitedSince returns the time since which the job's agents are expected: not
// before its objects were created.
func (f *Facts) agentsAwaitedSince() time.Time {
	at := f.Job.Status.StartTime.Time
	if f.Progress.CreatedAt.After(at) {
		return f.Progress.CreatedAt
	}
	return at
}
