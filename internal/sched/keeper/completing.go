package keeper

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// killMargin is what an agent may take beyond KillWait to end a job before
// its pod is deleted.
const killMargin = 5 * time.Second

// completing: the outcome is decided; the pods must go. A job that did not
// end by itself is ended by its agent, which knows its processes; deleting
// the pods is the backstop.
func (f *Facts) completing() Action {
	live := f.live()
	if !f.Memory.Swept {
		if due := f.graceEnds(); f.batchAlive() && f.Now.Before(due) {
			if !f.Memory.Terminated {
				return Action{Kind: Terminate, Command: wire.Command{Kind: wire.CommandTerminate, Reason: f.why()}}
			}
			return Action{Wake: due}
		}
		return Action{Kind: Sweep, Kill: f.kills(live)}
	}
	for _, k := range f.kills(live) {
		if k.Force || k.Pod.DeletionTimestamp == nil {
			return Action{Kind: Sweep, Kill: f.kills(live), Wake: f.Now.Add(killMargin)}
		}
	}
	if len(live) == 0 {
		return Action{Kind: Finish}
	}
	return Action{Wake: f.Now.Add(killMargin)}
}

// live are the pods that may still run something.
func (f *Facts) live() []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range f.Pods {
		if !over(p) {
			out = append(out, p)
		}
	}
	return out
}

// kills are the deletions that live pods need: a pod on a lost node is
// forced, since nobody there will ever confirm.
func (f *Facts) kills(live []*corev1.Pod) []Kill {
	var out []Kill
	for _, p := range live {
		out = append(out, Kill{p, p.Spec.NodeName != "" && f.Lost(p.Spec.NodeName)})
	}
	return out
}

// batchAlive: the batch host's agent runs, was welcomed, and has something to
// end that has not ended by itself.
func (f *Facts) batchAlive() bool {
	if f.Job.Status.Allocation == nil || f.Job.Status.StartTime == nil || f.Job.Status.Allocation.Nodes[0].Address == "" {
		return false
	}
	switch f.Job.Status.Final {
	case v1alpha1.StateCompleted, v1alpha1.StateFailed, v1alpha1.StateOutOfMemory:
		return false
	}
	p := f.byIndex()[0]
	return p != nil && !over(p) && p.Spec.NodeName != "" && !f.Lost(p.Spec.NodeName) && f.Job.Status.ExitCode == nil
}

func (f *Facts) graceEnds() time.Time {
	if f.Job.Status.EndTime == nil {
		return time.Time{}
	}
	return f.Job.Status.EndTime.Add(f.Rules.KillWait + killMargin)
}

// why is the reason of a terminate command.
func (f *Facts) why() string {
	switch f.Job.Status.Final {
	case v1alpha1.StatePending:
		switch {
		case f.cancelled():
			return v1alpha1.StateCancelled
		case f.Job.Status.Preempt != nil:
			return v1alpha1.StatePreempted
		}
		return "REQUEUE"
	default:
		return f.Job.Status.Final
	}
}
