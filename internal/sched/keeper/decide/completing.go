package decide

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// killMargin is the time after KillWait for an agent to end a job, before its pod is
// deleted.
const killMargin = 5 * time.Second

// completing is Next for a job whose outcome is decided and whose pods must be deleted.
// The agent ends the processes of a job that has not ended by itself; deleting the pods is
// the fallback.
func (f *Facts) completing() Action {
	live := f.livePods()
	if !f.Progress.CleanedUp {
		if f.missesPods() {
			return Action{Kind: ReadPods}
		}
		if due := f.killDue(); f.batchHostAlive() && f.Now.Before(due) {
			if !f.Progress.Terminated {
				return Action{
					Kind:    Terminate,
					Command: wire.Command{Kind: wire.CommandTerminate, Reason: f.terminateReason()},
				}
			}
			return Action{Wake: due}
		}
		return Action{Kind: CleanUp, Deletions: f.deletions(live)}
	}
	if len(f.missingDeletions(live)) > 0 {
		return Action{Kind: CleanUp, Deletions: f.deletions(live), Wake: f.Now.Add(killMargin)}
	}
	if len(live) == 0 {
		return Action{Kind: Finish}
	}
	return Action{Wake: f.Now.Add(killMargin)}
}

// livePods returns the pods that may still run something.
func (f *Facts) livePods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range f.Pods {
		if !hasEnded(p) {
			out = append(out, p)
		}
	}
	return out
}

// deletions returns the deletions that live pods need. A pod on a lost node is
// deleted by force, as its kubelet cannot confirm the deletion.
func (f *Facts) deletions(live []*corev1.Pod) []PodDeletion {
	var out []PodDeletion
	for _, p := range live {
		out = append(out, PodDeletion{p, p.Spec.NodeName != "" && f.Lost(p.Spec.NodeName)})
	}
	return out
}

// batchHostAlive reports whether the batch host's agent runs, has received the job, and
// has processes to end.
func (f *Facts) batchHostAlive() bool {
	if f.Job.Status.Allocation == nil || f.Job.Status.StartTime == nil ||
		f.Job.Status.Allocation.Nodes[0].Address == "" {
		return false
	}
	switch f.Job.Status.Final {
	case v1alpha1.StateCompleted, v1alpha1.StateFailed, v1alpha1.StateOutOfMemory:
		return false
	}
	p := f.podsByIndex()[0]
	return p != nil && !hasEnded(p) && p.Spec.NodeName != "" && !f.Lost(p.Spec.NodeName) && f.Job.Status.ExitCode == nil
}

// killDue returns when the pods are deleted if the agent has not ended the job by
// then.
func (f *Facts) killDue() time.Time {
	if f.Job.Status.EndTime == nil {
		return time.Time{}
	}
	return f.Job.Status.EndTime.Add(f.Rules.KillWait + killMargin)
}

// terminateReason returns the reason in the terminate command.
func (f *Facts) terminateReason() string {
	switch f.Job.Status.Final {
	case v1alpha1.StatePending:
		switch {
		case f.Job.EndRequested():
			return v1alpha1.StateCancelled
		case f.Job.Status.Preempt != nil:
			return v1alpha1.StatePreempted
		}
		return "REQUEUE"
	default:
		return f.Job.Status.Final
	}
}

// missingDeletions returns the deletions of live pods that were not requested yet, or that
// will never be confirmed.
func (f *Facts) missingDeletions(live []*corev1.Pod) []PodDeletion {
	var out []PodDeletion
	for _, k := range f.deletions(live) {
		if k.Force || k.Pod.DeletionTimestamp == nil {
			out = append(out, k)
		}
	}
	return out
}
