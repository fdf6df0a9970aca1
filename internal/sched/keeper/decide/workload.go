package decide

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/translate/status"
)

// A workload's job represents pods that others created: it has no objects and no agent.
// It runs when all of its pods are bound, and ends with them. If the job is ended, its
// pods are deleted; their controllers create new ones, which are queued again.

// replacementTimeout is how long a group without pods waits for its controllers to create
// new ones.
const replacementTimeout = 30 * time.Second

// decideWorkload is Next for the job of a workload.
func (f *Facts) decideWorkload() Action {
	switch f.Job.Status.State {
	case "", v1alpha1.StatePending:
		return f.workloadPending()
	case v1alpha1.StateConfiguring:
		return f.orWriteAssumed(f.workloadConfiguring())
	case v1alpha1.StateRunning, v1alpha1.StateSuspended:
		return f.orWriteAssumed(f.workloadRunning())
	case v1alpha1.StateCompleting:
		return f.workloadCompleting()
	}
	if kill := f.missingDeletions(f.livePods()); len(kill) > 0 {
		return Action{Kind: CleanUp, Deletions: kill, Wake: f.Now.Add(killMargin)}
	}
	return f.final()
}

// workloadPending is Next for a pending workload.
func (f *Facts) workloadPending() Action {
	if control.IsSinglePod(f.Job) && len(f.Pods) == 1 && f.Pods[0].Spec.NodeName != "" && !f.Job.EndRequested() {
		return Action{Kind: Adopt}
	}
	if len(f.remainingPods()) == 0 && !f.Job.EndRequested() {
		due := f.lastChange().Add(replacementTimeout)
		if f.Job.Spec.Workload.Group == "" || !f.Now.Before(due) {
			return endWith(v1alpha1.StateCancelled, "", "its pods are gone")
		}
		return Action{Wake: due}
	}
	return f.orCreateObject(f.pending())
}

// A job that the newest plan leaves pending gets its object after createDelay, others
// after maxCreateDelay: most are placed immediately, and writing the placement also
// creates the object.
const (
	createDelay    = time.Second
	maxCreateDelay = 10 * time.Second
)

// orCreateObject returns a, or CreateObject if a is Wait and the pending job should have
// an object by now.
func (f *Facts) orCreateObject(a Action) Action {
	if a.Kind != Wait || control.IsCreated(f.Job) || f.Job.Spec.SubmitTime == nil {
		return a
	}
	due, last := f.Job.Spec.SubmitTime.Add(createDelay), f.Job.Spec.SubmitTime.Add(maxCreateDelay)
	switch {
	case !f.Now.Before(last), !f.Now.Before(due) && f.PlanReason != "":
		return Action{Kind: CreateObject}
	case !f.Now.Before(due):
		due = earliest(f.Now.Add(createDelay), last)
	}
	a.Wake = earliest(a.Wake, due)
	return a
}

// remainingPods returns the live pods that are not being deleted.
func (f *Facts) remainingPods() []*corev1.Pod {
	return slices.DeleteFunc(f.livePods(), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// lastChange returns when the job last changed its state.
func (f *Facts) lastChange() time.Time {
	if h := f.Job.Status.History; len(h) > 0 {
		return h[len(h)-1].At.Time
	}
	if t := f.Job.Spec.SubmitTime; t != nil {
		return t.Time
	}
	return f.Now
}

// workloadConfiguring is Next for a placed workload: kube-scheduler binds every
// pod, or the job returns to the queue.
func (f *Facts) workloadConfiguring() Action {
	if f.Job.EndRequested() {
		return endWith(v1alpha1.StateCancelled, "", "")
	}
	bound := 0
	for _, p := range f.Pods {
		if p.Spec.NodeName != "" {
			bound++
		}
	}
	if bound == len(f.Job.Spec.Workload.Pods) {
		return Action{Kind: MarkRunning}
	}
	a, ready, ok := f.awaitNodes()
	if ok && (a.Kind != Wait || len(f.remainingPods()) == len(f.Job.Spec.Workload.Pods)) {
		return a
	}
	if len(f.remainingPods()) < len(f.Job.Spec.Workload.Pods) {
		return returnToQueue("a pod was deleted")
	}
	placed := latest(f.Job.Status.StartTime.Time, ready)
	due := placed.Add(f.Rules.StartTimeout)
	patience := unschedulableTimeout
	if ready.After(f.Job.Status.StartTime.Time) {
		patience += maxBackoff
	}
	for _, p := range f.Pods {
		c := unschedulable(p)
		if c == nil {
			continue
		}
		since := c.LastTransitionTime.Time
		if since.Before(placed) { // probably of an earlier placement
			since = placed
		}
		if !f.Now.Before(since.Add(patience)) {
			return returnToQueue("pod " + p.Name + ": " + c.Message)
		}
		due = earliest(due, since.Add(patience))
	}
	if !f.Now.Before(due) {
		return returnToQueue("not every pod was bound within " + f.Rules.StartTimeout.String())
	}
	return Action{Wake: due}
}

// workloadRunning is Next for a running workload, which continues as long as one of
// its pods does.
func (f *Facts) workloadRunning() Action {
	for _, p := range f.Pods {
		if why := kubeletRefusal(p); why != "" {
			return f.refusedByNode(p, why)
		}
	}
	live := f.livePods()
	switch limit, last := f.timeLimitEnds(), f.deadline(); {
	case len(live) == 0:
		return Action{Kind: End, Outcome: f.outcomeOfPods()}
	case f.Job.EndRequested():
		return endWith(v1alpha1.StateCancelled, "", "")
	case f.Job.Status.Preempt != nil:
		return f.preempted()
	case f.timeLimitChanged():
		return Action{Kind: UpdateLimit}
	case !last.IsZero() && !f.Now.Before(last):
		return endWith(v1alpha1.StateDeadline, status.ReasonDeadline, "")
	case !limit.IsZero() && !f.Now.Before(limit):
		return endWith(v1alpha1.StateTimeout, status.ReasonTimeLimit, "")
	}
	for i := range f.Job.Status.Allocation.Nodes {
		n := f.Job.Status.Allocation.Nodes[i].ObjectName()
		if f.Lost(n) || f.Down != nil && f.Down(n) {
			return endWith(v1alpha1.StateNodeFail, status.ReasonNodeDown, "node "+n+" was lost")
		}
	}
	return Action{Wake: earliest(f.timeLimitEnds(), f.deadline())}
}

// refusedByNode returns the action for a workload if a kubelet rejected one of its pods.
// A group is requeued as a whole, and its controllers create new pods; a single pod has
// failed.
func (f *Facts) refusedByNode(p *corev1.Pod, why string) Action {
	if f.Job.Spec.Workload.Group != "" {
		a := returnToQueue("pod " + p.Name + " on " + p.Spec.NodeName + ": " + why)
		a.Outcome.Refused, a.Outcome.ThisJobOnly = p.Spec.NodeName, isMisaligned(p)
		return a
	}
	a := endWith(v1alpha1.StateFailed, status.ReasonLaunchFailure, why)
	a.Outcome.Exit, a.Outcome.Refused = &v1alpha1.ExitCode{Status: 1}, p.Spec.NodeName
	a.Outcome.ThisJobOnly = isMisaligned(p)
	return a
}

// isMisaligned reports whether the kubelet refused the pod because it cannot give it the CPUs,
// or other resources, together that belong together.
func isMisaligned(p *corev1.Pod) bool {
	return strings.HasPrefix(p.Status.Reason, "Topology") || p.Status.Reason == "SMTAlignmentError"
}

// kubeletRefusal returns why the kubelet refused the pod before any container ran;
// "": it did not.
func kubeletRefusal(p *corev1.Pod) string {
	if p.Status.Phase != corev1.PodFailed || len(p.Status.ContainerStatuses) > 0 {
		return ""
	}
	switch r := p.Status.Reason; {
	case strings.HasPrefix(r, "OutOf"), r == "UnexpectedAdmissionError", r == "NodeAffinity",
		r == "EmptyPodSharedPoolError", isMisaligned(p):
		return strings.TrimSpace(r + " " + p.Status.Message)
	}
	return ""
}

// outcomeOfPods returns the outcome of a workload whose pods have all ended: that of the
// first pod that failed. If pods were deleted, the workload is cancelled.
func (f *Facts) outcomeOfPods() Outcome {
	o := Outcome{Final: v1alpha1.StateCompleted, Exit: &v1alpha1.ExitCode{}, Derived: &v1alpha1.ExitCode{}}
	if len(f.Pods) < len(f.Job.Spec.Workload.Pods) {
		o = Outcome{Final: v1alpha1.StateCancelled, Message: "its pods were deleted"}
	}
	for _, p := range f.Pods {
		switch {
		case p.Status.Phase == corev1.PodFailed && p.DeletionTimestamp == nil:
			return outcomeOfContainer(p)
		case p.Status.Phase != corev1.PodSucceeded:
			o = Outcome{Final: v1alpha1.StateCancelled, Message: "its pods were deleted"}
		}
	}
	return o
}

// workloadCompleting is Next for a workload whose outcome is decided: the pods on
// nodes are deleted. When the job returns to the queue, pods without a node stay.
func (f *Facts) workloadCompleting() Action {
	returns := f.Job.Status.Final == v1alpha1.StatePending && !f.Job.EndRequested()
	boundLate := returns && f.mayBeBoundLate()
	var live []*corev1.Pod
	for _, p := range f.Pods {
		stays := returns && p.Spec.NodeName == "" || boundLate
		if !hasEnded(p) && !stays {
			live = append(live, p)
		}
	}
	if kill := f.missingDeletions(live); len(kill) > 0 {
		return Action{Kind: CleanUp, Deletions: kill, Wake: f.Now.Add(killMargin)}
	}
	if len(live) > 0 {
		return Action{Wake: f.Now.Add(killMargin)}
	}
	return Action{Kind: Finish}
}

// mayBeBoundLate reports whether the job is a single pod that had not been bound in time. If
// kube-scheduler has bound it meanwhile, it runs, and the pending job adopts it: nobody would
// create it again.
func (f *Facts) mayBeBoundLate() bool {
	if !control.IsSinglePod(f.Job) || f.Job.Status.Preempt != nil {
		return false
	}
	h := f.Job.Status.History
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].State != v1alpha1.StateCompleting {
			return h[i].State == v1alpha1.StateConfiguring
		}
	}
	return false
}
