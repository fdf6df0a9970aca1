package keeper

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/keeper/decide"
	"github.com/berth-hpc/berth/internal/wire"
)

// The pods of a batch job may outlive it and run further jobs with the same reuse key.
// By name and label they belong to the first job, whose status.pods then names itself;
// the status.pods of the later jobs names the first. The first job deletes the pods
// when no job runs there any more.

// pods returns the pods that decisions about b concern: its own, without those that
// another job runs in, or those of another job that it runs in itself.
func (k *Keeper) pods(b *v1alpha1.BatchJob) []*corev1.Pod {
	if b.Spec.Workload != nil {
		return k.Cluster.MemberPods(b)
	}
	h := b.RunsIn()
	var out []*corev1.Pod
	if h.JobID != b.Spec.JobID {
		if b.IsFinal() {
			return nil
		}
		for _, p := range k.Cluster.JobPods(h.JobID) {
			if p.Labels[wire.LabelAttempt] == strconv.Itoa(int(h.Attempt)) {
				out = append(out, p)
			}
		}
		return out
	}
	for _, p := range k.Cluster.JobPods(b.Spec.JobID) {
		n, err := strconv.ParseInt(p.Labels[wire.LabelAttempt], 10, 32)
		if err == nil && k.podsReused(v1alpha1.PodsOf{JobID: b.Spec.JobID, Attempt: int32(n)}, b) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// podsReused reports whether a job other than b runs in the pods.
func (k *Keeper) podsReused(h v1alpha1.PodsOf, b *v1alpha1.BatchJob) bool {
	for _, t := range k.Cluster.InPods(h.JobID, h.Attempt) {
		if t.Spec.JobID != b.Spec.JobID && !t.IsFinal() {
			return true
		}
	}
	return false
}

// podsReusable reports whether the agent of b's pods waits for another job.
func (k *Keeper) podsReusable(b *v1alpha1.BatchJob) bool { return k.Pool != nil && k.Pool.IsWaiting(b) }

// leavePods sets the final status of a job whose pods remain for other jobs.
func (k *Keeper) leavePods(b *v1alpha1.BatchJob, s *v1alpha1.BatchJobStatus, o decide.Outcome) {
	h := b.RunsIn()
	decide.SetOutcome(b, s, o, k.Now())
	s.State, s.Final, s.Pods = o.Final, "", &h
}

// enqueueHost queues the job whose pods b ran in.
func (k *Keeper) enqueueHost(b *v1alpha1.BatchJob) {
	if p := b.Status.Pods; p != nil && p.JobID != b.Spec.JobID {
		k.queue.Add(p.JobID)
	}
}
