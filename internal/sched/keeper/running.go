package keeper

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// running: the job goes on until its batch host ends, or a reason to end it
// comes first.
func (f *Facts) running() Action {
	pods := f.byIndex()
	batch := pods[0]
	if batch != nil && over(batch) {
		return f.batchEnded(batch)
	}
	switch limit, last := f.limit(), f.mustEnd(); {
	case f.cancelled():
		return end(v1alpha1.StateCancelled, "", "")
	case f.requeueAsked():
		return requested()
	case f.Job.Status.Preempt != nil:
		return f.preempted()
	case f.Job.Spec.Suspend != (f.Job.Status.State == v1alpha1.StateSuspended):
		return Action{Kind: Suspend}
	case f.limitChanged():
		return Action{Kind: Adjust}
	case !last.IsZero() && !f.Now.Before(last):
		return end(v1alpha1.StateDeadline, status.ReasonDeadline, "")
	case !limit.IsZero() && !f.Now.Before(limit):
		return end(v1alpha1.StateTimeout, status.ReasonTimeLimit, "")
	case !f.Expires.IsZero() && !f.Now.Before(f.Expires):
		return end(v1alpha1.StateTimeout, status.ReasonTimeLimit, "its reservation is over")
	}
	if a, ok := f.apart(); ok {
		return a
	}
	for i := range f.Job.Status.Allocation.Nodes {
		if i > 0 && f.Job.Spec.Job.Batch.NoKill { // what is beside the batch host is not missed
			if down := f.down(pods); len(down) > 0 {
				return Action{Kind: Drop, Kill: down}
			}
			break
		}
		if why := f.nodeGone(i, pods[i]); why != "" {
			return f.nodeFailed(why)
		}
		if p := pods[i]; i > 0 && p != nil && over(p) {
			return f.agentEnded(p)
		}
	}
	return Action{Wake: earliestOf(earliestOf(f.limit(), f.mustEnd()), earliestOf(f.togetherDue(), f.Expires))}
}

// down are pods beside the batch host that run on nodes which an operator has
// set down.
func (f *Facts) down(pods map[int]*corev1.Pod) []Kill {
	var out []Kill
	for i := 1; i < len(f.Job.Status.Allocation.Nodes); i++ {
		n := nodeObject(&f.Job.Status.Allocation.Nodes[i])
		if p := pods[i]; p != nil && !over(p) && p.DeletionTimestamp == nil && f.Down != nil && f.Down(n) {
			out = append(out, Kill{Pod: p})
		}
	}
	return out
}

// preempted: the job has its grace, and then it goes, back to the queue where
// that is allowed.
func (f *Facts) preempted() Action {
	p := f.Job.Status.Preempt
	switch {
	case !f.Now.Before(p.Due.Time):
		if p.Mode == "REQUEUE" && f.requeueAllowed() {
			a := requested()
			a.Outcome.Reason = status.ReasonPreempted
			return a
		}
		return end(v1alpha1.StatePreempted, status.ReasonPreempted, "")
	case !f.Memory.Warned:
		return Action{Kind: Warn, Wake: p.Due.Time}
	}
	return Action{Wake: p.Due.Time}
}

// mustEnd is the job's deadline; zero: it has none.
func (f *Facts) mustEnd() time.Time {
	if d := f.Job.Spec.Job.Time.Deadline; d != 0 {
		return time.Unix(d, 0)
	}
	return time.Time{}
}

// limit is the instant at which the job's time is over; zero: never.
func (f *Facts) limit() time.Time {
	end, ok := f.Job.Status.LimitEnds()
	if !ok {
		return time.Time{}
	}
	return end.Add(f.Rules.OverTimeLimit)
}

// limitChanged: somebody changed the limit while the job runs.
func (f *Facts) limitChanged() bool {
	l := f.Job.Spec.Job.Time.Limit
	return l != 0 && l != f.Job.Status.TimeLimit
}

// nodeGone says why the node with that index cannot serve the job any more;
// "" if it can.
func (f *Facts) nodeGone(index int, p *corev1.Pod) string {
	n := nodeObject(&f.Job.Status.Allocation.Nodes[index])
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

// nodeFailed ends the job for no fault of its own.
func (f *Facts) nodeFailed(why string) Action {
	if f.requeueAllowed() {
		return giveBack(why)
	}
	return end(v1alpha1.StateNodeFail, status.ReasonNodeDown, why)
}

// batchEnded reads the end of the job from a pod that is over.
func (f *Facts) batchEnded(p *corev1.Pod) Action {
	r, reported := reportOf(p)
	if reported && r.Kind == wire.ReportEnded && r.Status == 0 && r.Signal == 0 && (f.Job.Status.Pods == nil || r.JobID == f.Job.Spec.JobID) {
		return Action{Kind: End, Outcome: FromReport(r)}
	}
	if f.Job.Status.Pods != nil && r.JobID != f.Job.Spec.JobID { // the pod's word is about an earlier task
		reported = false
	}
	if evicted(p) || p.DeletionTimestamp != nil || f.Job.Status.Pods != nil && !reported && !outOfMemory(p) {
		return f.nodeFailed("pod " + p.Name + " was removed: " + p.Status.Reason + " " + p.Status.Message)
	}
	if reported {
		return f.judge(r, terminated(p).FinishedAt.Time)
	}
	return Action{Kind: End, Outcome: fromContainer(p)}
}

func outOfMemory(p *corev1.Pod) bool {
	t := terminated(p)
	return t != nil && t.Reason == "OOMKilled"
}

// agentEnded: the agent of a node beside the batch host is gone, and with it
// whatever the job ran there.
func (f *Facts) agentEnded(p *corev1.Pod) Action {
	if t := terminated(p); t != nil && t.Reason == "OOMKilled" {
		return Action{Kind: End, Outcome: fromContainer(p)}
	}
	return f.nodeFailed("the agent on node " + p.Spec.NodeName + " ended")
}

// current are the pods of the job's present attempt.
func (f *Facts) current() []*corev1.Pod {
	h := host(f.Job)
	attempt := strconv.Itoa(int(h.Attempt))
	var out []*corev1.Pod
	for _, p := range f.Pods {
		if p.Labels[wire.LabelAttempt] == attempt {
			out = append(out, p)
		}
	}
	return out
}

// byIndex are the current pods by their place in the job.
func (f *Facts) byIndex() map[int]*corev1.Pod {
	out := map[int]*corev1.Pod{}
	for _, p := range f.current() {
		if i, err := control.PodIndex(p); err == nil {
			out[i] = p
		}
	}
	return out
}

func nodeObject(a *v1alpha1.NodeAllocation) string {
	if a.Node != "" {
		return a.Node
	}
	return a.Name
}
