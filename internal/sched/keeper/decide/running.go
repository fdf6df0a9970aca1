package decide

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// running is Next for a running job. It continues until its batch host ends, or until
// there is another reason to end it.
func (f *Facts) running() Action {
	pods := f.podsByIndex()
	batch := pods[0]
	if batch != nil && hasEnded(batch) {
		return f.batchEnded(batch)
	}
	switch limit, last := f.timeLimitEnds(), f.deadline(); {
	case f.Job.EndRequested():
		return endWith(v1alpha1.StateCancelled, "", "")
	case f.Job.RequeueRequested():
		return requeueRequested()
	case f.preemption() != nil:
		return f.preempted()
	case f.Job.Spec.Suspend != (f.Job.Status.State == v1alpha1.StateSuspended):
		return Action{Kind: Suspend}
	case f.timeLimitChanged():
		return Action{Kind: UpdateLimit}
	case !last.IsZero() && !f.Now.Before(last):
		return endWith(v1alpha1.StateDeadline, status.ReasonDeadline, "")
	case !limit.IsZero() && !f.Now.Before(limit):
		return endWith(v1alpha1.StateTimeout, status.ReasonTimeLimit, "")
	case !f.ReservationEnds.IsZero() && !f.Now.Before(f.ReservationEnds):
		return endWith(v1alpha1.StateTimeout, status.ReasonTimeLimit, "its reservation is over")
	}
	if a, ok := f.separated(); ok {
		return a
	}
	for i := range f.Job.Status.Allocation.Nodes {
		if i > 0 && f.Job.Spec.Job.Batch.NoKill { // only the batch host is needed
			if down := f.podsOnDownNodes(pods); len(down) > 0 {
				return Action{Kind: DeletePods, Deletions: down}
			}
			break
		}
		if pods[i] == nil && !f.Progress.PodsRead {
			return Action{Kind: ReadPods}
		}
		if why := f.nodeFailure(i, pods[i]); why != "" {
			return f.nodeFailed(why)
		}
		if p := pods[i]; i > 0 && p != nil && hasEnded(p) {
			return f.agentEnded(p)
		}
	}
	wake := earliest(earliest(f.timeLimitEnds(), f.deadline()), earliest(f.hetStartDue(), f.ReservationEnds))
	return f.nodeRemoved(wake)
}

// podsOnDownNodes returns the deletions of pods that run on nodes which an operator
// has set down, except that of the batch host.
func (f *Facts) podsOnDownNodes(pods map[int]*corev1.Pod) []PodDeletion {
	var out []PodDeletion
	for i := 1; i < len(f.Job.Status.Allocation.Nodes); i++ {
		n := f.Job.Status.Allocation.Nodes[i].ObjectName()
		if p := pods[i]; p != nil && !hasEnded(p) && p.DeletionTimestamp == nil && f.Down != nil && f.Down(n) {
			out = append(out, PodDeletion{Pod: p})
		}
	}
	return out
}

// preempted is Next for a job that is being preempted. After its grace time it is ended,
// or requeued if that is allowed.
func (f *Facts) preempted() Action {
	p := f.preemption()
	switch {
	case !f.Now.Before(p.Due.Time):
		if p.Mode == "REQUEUE" && f.requeueAllowed() {
			a := requeueRequested()
			a.Outcome.Reason = status.ReasonPreempted
			return a
		}
		return endWith(v1alpha1.StatePreempted, status.ReasonPreempted, "")
	case !f.Progress.Warned:
		return Action{Kind: WarnPreempted, Wake: p.Due.Time}
	}
	return Action{Wake: p.Due.Time}
}

// deadline returns when the job must have ended; zero: it has no deadline.
func (f *Facts) deadline() time.Time {
	if d := f.Job.Spec.Job.Time.Deadline; d != 0 {
		return time.Unix(d, 0)
	}
	return time.Time{}
}

// timeLimitEnds returns when the job reaches its time limit; zero: never.
func (f *Facts) timeLimitEnds() time.Time {
	end, ok := f.Job.Status.LimitEnds()
	if !ok {
		return time.Time{}
	}
	return end.Add(f.Rules.OverTimeLimit)
}

// timeLimitChanged reports whether somebody changed the limit while the job runs. A
// job with --time-min may have started with less than it requested.
func (f *Facts) timeLimitChanged() bool {
	l, st := f.Job.Spec.Job.Time.Limit, &f.Job.Status
	return l != 0 && l != st.TimeLimit && l != st.ShortenedFrom
}

// nodeFailure returns why the node with that index is no longer usable for the job, or
// "".
func (f *Facts) nodeFailure(index int, p *corev1.Pod) string {
	n := f.Job.Status.Allocation.Nodes[index].ObjectName()
	switch {
	case f.Lost(n):
		return "node " + n + " was lost"
	case f.Down != nil && f.Down(n):
		return "node " + n + " was set down"
	case p == nil:
		return "the pod on node " + n + " vanished"
	}
	return ""
}

// nodeFailed ends or requeues the job after a failure of a node.
func (f *Facts) nodeFailed(why string) Action {
	if f.requeueAllowed() {
		return returnToQueue(why)
	}
	return endWith(v1alpha1.StateNodeFail, status.ReasonNodeDown, why)
}

// batchEnded returns the outcome of the job from the batch host's pod, which has
// ended.
func (f *Facts) batchEnded(p *corev1.Pod) Action {
	r, reported := reportOf(p)
	if reported && r.Kind == wire.ReportEnded && r.Status == 0 && r.Signal == 0 &&
		(f.Job.Status.Pods == nil || r.JobID == f.Job.Spec.JobID) {
		return Action{Kind: End, Outcome: FromReport(r)}
	}
	if f.Job.Status.Pods != nil && r.JobID != f.Job.Spec.JobID { // the report is about an earlier task
		reported = false
	}
	if evicted(p) || p.DeletionTimestamp != nil || f.Job.Status.Pods != nil && !reported && !isOOMKilled(p) {
		return f.nodeFailed("pod " + p.Name + " was removed: " + p.Status.Reason + " " + p.Status.Message)
	}
	if !reported && isContainerLost(p) {
		return f.nodeFailed("node " + p.Spec.NodeName + " was started again")
	}
	if !reported && isAgentKilled(p) && f.Job.Spec.Job.Batch.Client == "" {
		return f.nodeFailed("the agent on node " + p.Spec.NodeName + " was killed")
	}
	if reported {
		return f.OutcomeOfReport(r, terminatedState(p).FinishedAt.Time)
	}
	return Action{Kind: End, Outcome: outcomeOfContainer(p)}
}

// isContainerLost reports whether the node does not know how the pod's container ended,
// because the node, or its container runtime with all containers, was started again meanwhile.
func isContainerLost(p *corev1.Pod) bool {
	t := terminatedState(p)
	// The first is what containerd and CRI-O report, the second what the kubelet does.
	return t != nil && (t.Reason == "Unknown" || t.Reason == "ContainerStatusUnknown")
}

// killedExitCode is that of a container whose first process got SIGKILL.
const killedExitCode = 128 + 9

// isAgentKilled reports whether the pod's first process, the agent, got SIGKILL. Slurm treats a
// batch job whose slurmstepd is gone like one whose node has failed.
func isAgentKilled(p *corev1.Pod) bool {
	t := terminatedState(p)
	return t != nil && t.ExitCode == killedExitCode && !isOOMKilled(p)
}

// isOOMKilled reports whether the kernel killed the pod's container because it
// was out of memory.
func isOOMKilled(p *corev1.Pod) bool {
	t := terminatedState(p)
	return t != nil && t.Reason == "OOMKilled"
}

// agentEnded returns the outcome of a job after the agent of a node other than the batch
// host ended, and with it the processes of the job on that node.
func (f *Facts) agentEnded(p *corev1.Pod) Action {
	if isOOMKilled(p) {
		return Action{Kind: End, Outcome: outcomeOfContainer(p)}
	}
	return f.nodeFailed("the agent on node " + p.Spec.NodeName + " ended")
}

// attemptPods returns the pods of the job's present attempt.
func (f *Facts) attemptPods() []*corev1.Pod {
	h := f.Job.RunsIn()
	attempt := strconv.Itoa(int(h.Attempt))
	var out []*corev1.Pod
	for _, p := range f.Pods {
		if p.Labels[wire.LabelAttempt] == attempt {
			out = append(out, p)
		}
	}
	return out
}

// missesPods reports whether pods are not known in which the job has run. Agents report
// by themselves, so a job can run before the watch has delivered its pods.
func (f *Facts) missesPods() bool {
	a := f.Job.Status.Allocation
	return !f.Progress.PodsRead && a != nil && a.Nodes[0].Address != "" && len(f.podsByIndex()) < len(a.Nodes)
}

// podsByIndex returns the pods of the present attempt by their index in the job.
func (f *Facts) podsByIndex() map[int]*corev1.Pod {
	out := map[int]*corev1.Pod{}
	for _, p := range f.attemptPods() {
		if i, err := control.PodIndex(p); err == nil {
			out[i] = p
		}
	}
	return out
}
