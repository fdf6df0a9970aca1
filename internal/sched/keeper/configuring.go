package keeper

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// unschedulableFor is how long kube-scheduler may refuse a planned node
// before the placement is given back: what it still counts there is usually a
// pod that has just ended.
const unschedulableFor = 10 * time.Second

// configuring: every agent must report before the deadline, or the whole
// placement is given back. Nothing of the job's script has run yet.
func (f *Facts) configuring() Action {
	switch {
	case f.cancelled():
		return end(v1alpha1.StateCancelled, "", "")
	case f.requeueAsked():
		return requested()
	}
	if a, ok := f.apart(); ok {
		return a
	}
	for i := range f.Job.Status.Allocation.Nodes {
		if n := nodeObject(&f.Job.Status.Allocation.Nodes[i]); f.Lost(n) {
			return giveBack("node " + n + " was lost")
		}
	}
	pulling := false
	for _, p := range f.current() {
		if over(p) {
			return f.failedStart(p)
		}
		if p.DeletionTimestamp != nil {
			return giveBack("pod " + p.Name + " was deleted")
		}
		if why := refused(p, f.Now); why != "" {
			return giveBack(why)
		}
		pulling = pulling || isPulling(p)
	}
	patience := f.Rules.StartTimeout
	if pulling {
		patience = f.Rules.PullTimeout
	}
	deadline := f.began().Add(patience)
	switch {
	case !f.Memory.Created && f.Crowded:
		return Action{Kind: Line, Wake: f.Now.Add(linePause)}
	case !f.Memory.Created && f.Memory.InLine:
		return Action{Kind: Create}
	case !f.Now.Before(deadline):
		return giveBack(fmt.Sprintf("not every node reported within %s", patience))
	case !f.Memory.Created:
		return Action{Kind: Create}
	}
	return Action{Wake: earliestOf(deadline, f.refusalDue())}
}

// failedStart: a pod ended before the job began. Its agent may say that the
// job itself is at fault; else another try may go better.
func (f *Facts) failedStart(p *corev1.Pod) Action {
	if r, ok := reportOf(p); ok && r.Kind == reportFailed {
		return Action{Kind: End, Outcome: FromReport(r)}
	}
	why := p.Status.Reason
	if why == "" {
		why = "ended before the job began"
	}
	a := giveBack(fmt.Sprintf("pod %s on %s: %s %s", p.Name, p.Spec.NodeName, why, p.Status.Message))
	if turnedAway(p) != "" {
		a.Outcome.Refused = p.Spec.NodeName
	}
	return a
}

func giveBack(why string) Action {
	return end(v1alpha1.StatePending, "", why)
}

func requested() Action {
	a := end(v1alpha1.StatePending, "", "")
	a.Outcome.Requested = true
	return a
}

// refused says that kube-scheduler has not found the planned node good enough
// for a while.
func refused(p *corev1.Pod, now time.Time) string {
	if c := unschedulable(p); c != nil && now.Sub(c.LastTransitionTime.Time) >= unschedulableFor {
		return "pod " + p.Name + ": " + c.Message
	}
	return ""
}

// refusalDue is when refused will say so of some pod at the earliest; zero: of none.
func (f *Facts) refusalDue() time.Time {
	var t time.Time
	for _, p := range f.current() {
		if c := unschedulable(p); c != nil {
			t = earliestOf(t, c.LastTransitionTime.Add(unschedulableFor))
		}
	}
	return t
}

func unschedulable(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c
		}
	}
	return nil
}

// isPulling: the pod has its node, which has not started its container yet.
func isPulling(p *corev1.Pod) bool {
	for i := range p.Status.ContainerStatuses {
		if w := p.Status.ContainerStatuses[i].State.Waiting; w != nil {
			return w.Reason == "ContainerCreating" || w.Reason == "PodInitializing"
		}
	}
	return false
}

// earliestOf ignores zero times.
func earliestOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
