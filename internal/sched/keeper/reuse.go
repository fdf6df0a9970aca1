package keeper

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/wire"
)

// The pods of a batch job may outlive it and run further jobs of its kin: they
// are its own by name and label (status.pods says so, of itself), and the
// later jobs' by their status.pods. The job whose pods they are sweeps them
// when nobody runs there any more.

// lingerPause is when to look again at pods that wait for another job.
const lingerPause = 500 * time.Millisecond

// host names the pods that b runs in.
func host(b *v1alpha1.BatchJob) v1alpha1.PodsOf { return agentapi.HostOf(b) }

// podsLeft tells whether the job's own pods have outlived it.
func (f *Facts) podsLeft() bool {
	p := f.Job.Status.Pods
	return p != nil && p.JobID == f.Job.Spec.JobID
}

// leftovers: the job is over; its pods go when they are of no more use.
func (f *Facts) leftovers() Action {
	live := f.live()
	switch {
	case f.Taken:
		return Action{Wake: f.Now.Add(time.Minute)}
	case f.Lingering:
		return Action{Wake: f.Now.Add(lingerPause)}
	case !f.Memory.Swept, len(live) > 0 && f.undeleted(live):
		return Action{Kind: Sweep, Kill: f.kills(live), Wake: f.Now.Add(killMargin)}
	case len(live) > 0:
		return Action{Wake: f.Now.Add(killMargin)}
	}
	return Action{Kind: Unlink}
}

// undeleted tells whether a pod is not yet told to go, or will never go.
func (f *Facts) undeleted(live []*corev1.Pod) bool {
	for _, k := range f.kills(live) {
		if k.Force || k.Pod.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

// pods are those that decisions about b are about: its own, less those that
// another job has taken over, or those it has taken over itself.
func (k *Keeper) pods(b *v1alpha1.BatchJob) []*corev1.Pod {
	if b.Spec.Workload != nil {
		return k.Cluster.MemberPods(b)
	}
	h := host(b)
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
		if err == nil && k.taken(v1alpha1.PodsOf{JobID: b.Spec.JobID, Attempt: int32(n)}, b) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// taken tells whether another job than b runs in the pods.
func (k *Keeper) taken(h v1alpha1.PodsOf, b *v1alpha1.BatchJob) bool {
	for _, t := range k.Cluster.InPods(h.JobID, h.Attempt) {
		if t.Spec.JobID != b.Spec.JobID && !t.IsFinal() {
			return true
		}
	}
	return false
}

// lingers tells whether the agent of b's pods waits for another job.
func (k *Keeper) lingers(b *v1alpha1.BatchJob) bool { return k.Pool != nil && k.Pool.Lingers(b) }

// leaves tells whether a job that ends so may leave its pods to another one.
func leaves(o *Outcome) bool {
	return o.Final == v1alpha1.StateCompleted || o.Final == v1alpha1.StateFailed
}

// leave is the status of a job that is over and leaves its pods behind.
func (k *Keeper) leave(b *v1alpha1.BatchJob, s *v1alpha1.BatchJobStatus, o Outcome) {
	h := host(b)
	k.ended(b, s, o)
	s.State, s.Final, s.Pods = o.Final, "", &h
}

// tellHost has another look at the job whose pods b ran in, and at those who
// run in b's.
func (k *Keeper) tellHost(b *v1alpha1.BatchJob) {
	if p := b.Status.Pods; p != nil && p.JobID != b.Spec.JobID {
		k.queue.Add(p.JobID)
	}
}
