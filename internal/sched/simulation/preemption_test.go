package simulation

import (
	"maps"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/preemption"
	"github.com/berth-hpc/berth/translate/array"
)

// mayPreempt reports whether jobs of one class preempt those of the other.
func (s *simulation) mayPreempt(by, victim string) bool {
	return modes[victim] != "" && (by == classUrgent || by == "debug" && s.preemptType == preemptByPartition)
}

// job returns the object of a job, or nil.
func (s *simulation) job(id int64) *v1alpha1.BatchJob {
	for _, o := range s.api.list(kindJob) {
		if b := o.(*v1alpha1.BatchJob); b.Spec.JobID == id { //nolint:forcetypeassert // of that kind
			return b
		}
	}
	return nil
}

// checkPreemption checks the decision to preempt a job.
func (t *truth) checkPreemption(old, now *v1alpha1.BatchJob) {
	p := now.Status.Preempt
	if p == nil || old != nil && old.Status.Preempt != nil {
		return
	}
	h, id := t.of(now.Spec.JobID), now.Spec.JobID
	t.seen["jobs preempted with "+p.Mode]++
	by := t.sim.job(p.By)
	class := t.sim.classOf(now)
	switch {
	case old != nil && old.Status.State != v1alpha1.StateRunning:
		t.violate("job %d was %q and was preempted", id, old.Status.State)
	case by != nil && !t.sim.mayPreempt(t.sim.classOf(by), class):
		t.violate("job %d of class %q was preempted by job %d of class %q", id, class, p.By, t.sim.classOf(by))
	case p.Mode != modes[class]:
		t.violate("job %d of class %q was preempted with %s", id, class, p.Mode)
	case h.preempted[now.Status.Attempt] != "":
		t.violate("attempt %d of job %d was preempted twice", now.Status.Attempt, id)
	}
	h.preempted[now.Status.Attempt] = p.Mode
}

// mayRunAgain reports whether the last run of the job was preempted so that it runs again,
// or any run of another component of it.
func (t *truth) mayRunAgain(b *v1alpha1.BatchJob) bool {
	return t.of(b.Spec.JobID).lastMode() == preemption.ModeRequeue ||
		slices.Contains(t.modesOfOthers(b), preemption.ModeRequeue)
}

// modesOfOthers returns how other components of a heterogeneous job were preempted.
func (t *truth) modesOfOthers(b *v1alpha1.BatchJob) (all []string) {
	if array.HetID(b) == 0 {
		return nil
	}
	for id := range t.family(b) {
		if id != b.Spec.JobID {
			all = slices.AppendSeq(all, maps.Values(t.of(id).preempted))
		}
	}
	return all
}

// lastMode returns how the last run was preempted; "": it was not.
func (h *history) lastMode() string {
	if len(h.runs) == 0 {
		return ""
	}
	return h.preempted[h.runs[len(h.runs)-1].attempt]
}

// endsPreempted reports whether the job may end as PREEMPTED.
func (t *truth) endsPreempted(b *v1alpha1.BatchJob) bool {
	all := t.modesOfOthers(b)
	if mode := t.of(b.Spec.JobID).preempted[b.Status.Attempt]; mode != "" {
		all = append(all, mode)
	}
	return slices.Contains(all, preemption.ModeCancel) || len(all) > 0 && !*b.Spec.Job.Batch.Requeue
}
