package keeper

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/translate/status"
)

// A workload's job stands for pods that others made: there are no objects to
// make for it and no agent to ask. It runs when all of its pods are bound, ends
// with them, and whoever ends it ends them; their controllers make new ones,
// which queue anew.

// replacementTime is how long a group whose pods are gone waits for its
// controllers to make others.
const replacementTime = 30 * time.Second

// workload is Decide for a job of that kind.
func (f *Facts) workload() Action {
	switch f.Job.Status.State {
	case "", v1alpha1.StatePending:
		return f.queued()
	case v1alpha1.StateConfiguring:
		return f.settled(f.binding())
	case v1alpha1.StateRunning, v1alpha1.StateSuspended:
		return f.settled(f.serving())
	case v1alpha1.StateCompleting:
		return f.leaving()
	}
	if kill := f.undead(f.live()); len(kill) > 0 {
		return Action{Kind: Sweep, Kill: kill, Wake: f.Now.Add(killMargin)}
	}
	return f.over()
}

func (f *Facts) queued() Action {
	if control.IsSinglePod(f.Job) && len(f.Pods) == 1 && f.Pods[0].Spec.NodeName != "" && !f.cancelled() {
		return Action{Kind: Adopt}
	}
	if len(f.staying()) == 0 && !f.cancelled() {
		due := f.emptied().Add(replacementTime)
		if f.Job.Spec.Workload.Group == "" || !f.Now.Before(due) {
			return end(v1alpha1.StateCancelled, "", "its pods are gone")
		}
		return Action{Wake: due}
	}
	return f.objected(f.pending())
}

// Pods that the newest plan leaves waiting have an object for their job after
// madeAfter, others after mostMade: most are placed at once, and a job whose
// placement is about to be written has its object made by that.
const (
	madeAfter = time.Second
	mostMade  = 10 * time.Second
)

// objected is a, unless nothing is to be done and the job, which waits, should have
// an object by now.
func (f *Facts) objected(a Action) Action {
	if a.Kind != Wait || control.IsCreated(f.Job) || f.Job.Spec.SubmitTime == nil {
		return a
	}
	due, last := f.Job.Spec.SubmitTime.Add(madeAfter), f.Job.Spec.SubmitTime.Add(mostMade)
	switch {
	case !f.Now.Before(last), !f.Now.Before(due) && f.Verdict != "":
		return Action{Kind: Make}
	case !f.Now.Before(due):
		due = earliestOf(f.Now.Add(madeAfter), last)
	}
	a.Wake = earliestOf(a.Wake, due)
	return a
}

// staying are the pods that neither are over nor were told to go.
func (f *Facts) staying() []*corev1.Pod {
	return slices.DeleteFunc(f.live(), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// emptied is when the job last changed its state.
func (f *Facts) emptied() time.Time {
	if h := f.Job.Status.History; len(h) > 0 {
		return h[len(h)-1].At.Time
	}
	if t := f.Job.Spec.SubmitTime; t != nil {
		return t.Time
	}
	return f.Now
}

// binding: kube-scheduler binds every pod, or the placement is given back.
func (f *Facts) binding() Action {
	if f.cancelled() {
		return end(v1alpha1.StateCancelled, "", "")
	}
	bound := 0
	for _, p := range f.Pods {
		if p.Spec.NodeName != "" {
			bound++
		}
	}
	if bound == len(f.Job.Spec.Workload.Pods) {
		return Action{Kind: Begin}
	}
	for i := range f.Job.Status.Allocation.Nodes {
		if n := nodeObject(&f.Job.Status.Allocation.Nodes[i]); f.Lost(n) {
			return giveBack("node " + n + " was lost")
		}
	}
	if len(f.staying()) < len(f.Job.Spec.Workload.Pods) {
		return giveBack("a pod was deleted")
	}
	placed := f.Job.Status.StartTime.Time
	due := placed.Add(f.Rules.StartTimeout)
	for _, p := range f.Pods {
		c := unschedulable(p)
		if c == nil {
			continue
		}
		since := c.LastTransitionTime.Time
		if since.Before(placed) { // of an earlier placement, so far as one knows
			since = placed
		}
		if !f.Now.Before(since.Add(unschedulableFor)) {
			return giveBack("pod " + p.Name + ": " + c.Message)
		}
		due = earliestOf(due, since.Add(unschedulableFor))
	}
	if !f.Now.Before(due) {
		return giveBack("not every pod was bound within " + f.Rules.StartTimeout.String())
	}
	return Action{Wake: due}
}

// serving: the job goes on as long as one of its pods does.
func (f *Facts) serving() Action {
	for _, p := range f.Pods {
		if why := turnedAway(p); why != "" {
			return f.bounced(p, why)
		}
	}
	live := f.live()
	switch limit, last := f.limit(), f.mustEnd(); {
	case len(live) == 0:
		return Action{Kind: End, Outcome: f.podsOutcome()}
	case f.cancelled():
		return end(v1alpha1.StateCancelled, "", "")
	case f.Job.Status.Preempt != nil:
		return f.preempted()
	case f.limitChanged():
		return Action{Kind: Adjust}
	case !last.IsZero() && !f.Now.Before(last):
		return end(v1alpha1.StateDeadline, status.ReasonDeadline, "")
	case !limit.IsZero() && !f.Now.Before(limit):
		return end(v1alpha1.StateTimeout, status.ReasonTimeLimit, "")
	}
	for i := range f.Job.Status.Allocation.Nodes {
		n := nodeObject(&f.Job.Status.Allocation.Nodes[i])
		if f.Lost(n) || f.Down != nil && f.Down(n) {
			return end(v1alpha1.StateNodeFail, status.ReasonNodeDown, "node "+n+" was lost")
		}
	}
	return Action{Wake: earliestOf(f.limit(), f.mustEnd())}
}

// bounced: a kubelet refused a pod. A group goes back to the queue as a whole,
// where its controllers will bring other pods; a single pod is over for good.
func (f *Facts) bounced(p *corev1.Pod, why string) Action {
	if f.Job.Spec.Workload.Group != "" {
		a := giveBack("pod " + p.Name + " on " + p.Spec.NodeName + ": " + why)
		a.Outcome.Refused = p.Spec.NodeName
		return a
	}
	a := end(v1alpha1.StateFailed, status.ReasonLaunchFailure, why)
	a.Outcome.Exit, a.Outcome.Refused = &v1alpha1.ExitCode{Status: 1}, p.Spec.NodeName
	return a
}

// turnedAway says why the kubelet refused the pod, which it did before any
// container ran; "" if it did not.
func turnedAway(p *corev1.Pod) string {
	if p.Status.Phase != corev1.PodFailed || len(p.Status.ContainerStatuses) > 0 {
		return ""
	}
	switch r := p.Status.Reason; {
	case strings.HasPrefix(r, "OutOf"), r == "UnexpectedAdmissionError", r == "NodeAffinity", strings.HasPrefix(r, "Topology"):
		return strings.TrimSpace(r + " " + p.Status.Message)
	}
	return ""
}

// podsOutcome is how a workload ended whose pods are all over: the first failure
// counts. Pods that somebody deleted cancel it.
func (f *Facts) podsOutcome() Outcome {
	o := Outcome{Final: v1alpha1.StateCompleted, Exit: &v1alpha1.ExitCode{}, Derived: &v1alpha1.ExitCode{}}
	if len(f.Pods) < len(f.Job.Spec.Workload.Pods) {
		o = Outcome{Final: v1alpha1.StateCancelled, Message: "its pods were deleted"}
	}
	for _, p := range f.Pods {
		switch {
		case p.Status.Phase == corev1.PodFailed && p.DeletionTimestamp == nil:
			return fromContainer(p)
		case p.Status.Phase != corev1.PodSucceeded:
			o = Outcome{Final: v1alpha1.StateCancelled, Message: "its pods were deleted"}
		}
	}
	return o
}

// leaving: what holds places goes. A job that returns to the queue leaves the
// pods alone that have no node yet.
func (f *Facts) leaving() Action {
	var live []*corev1.Pod
	for _, p := range f.Pods {
		waits := p.Spec.NodeName == "" && f.Job.Status.Final == v1alpha1.StatePending && !f.cancelled()
		if !over(p) && !waits {
			live = append(live, p)
		}
	}
	if kill := f.undead(live); len(kill) > 0 {
		return Action{Kind: Sweep, Kill: kill, Wake: f.Now.Add(killMargin)}
	}
	if len(live) > 0 {
		return Action{Wake: f.Now.Add(killMargin)}
	}
	return Action{Kind: Finish}
}

// undead are the pods that nobody has told to go, or that never will.
func (f *Facts) undead(live []*corev1.Pod) []Kill {
	var out []Kill
	for _, k := range f.kills(live) {
		if k.Force || k.Pod.DeletionTimestamp == nil {
			out = append(out, k)
		}
	}
	return out
}
