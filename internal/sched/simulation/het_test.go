package simulation

import (
	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
)

// isFurther reports whether the job is a further component of a heterogeneous job, which
// has no script.
func isFurther(b *v1alpha1.BatchJob) bool { return array.HetID(b) != 0 && b.Spec.Job.Het.Offset > 0 }

// components returns the components of a heterogeneous job that exist.
func (s *simulation) components(het int64) (all []*v1alpha1.BatchJob) {
	for _, o := range s.api.list(kindJob) {
		if b := o.(*v1alpha1.BatchJob); array.HetID(b) == het { //nolint:forcetypeassert // of that kind
			all = append(all, b)
		}
	}
	return all
}

// hasStarted reports whether the gang of the job is complete.
func hasStarted(b *v1alpha1.BatchJob) bool {
	return b.Status.State == v1alpha1.StateRunning && b.Status.Allocation != nil &&
		b.Status.Allocation.Nodes[0].Address != ""
}

// checkTogether checks that a component starts together with the others, or else one of
// them was ended at that moment.
func (t *truth) checkTogether(k runKey, b *v1alpha1.BatchJob) {
	id := array.HetID(b)
	if id == 0 || t.nodeFailed {
		return
	}
	all := t.sim.components(id)
	if len(all) != int(b.Spec.Job.Het.Size) {
		t.violate("component %s began, and %d of %d components exist", k, len(all), b.Spec.Job.Het.Size)
	}
	for _, c := range all {
		h := t.of(c.Spec.JobID)
		if !hasStarted(c) && !h.cancelled && !h.requeued && h.preempted[c.Status.Attempt] == "" && !c.HoldsAllocation() {
			t.violate("component %s began without component %d, which is %q", k, c.Spec.JobID, c.Status.State)
		}
	}
}

// isQueuedWithFirst reports whether a further component is queued again with the first one.
func (t *truth) isQueuedWithFirst(b *v1alpha1.BatchJob) bool {
	if !isFurther(b) {
		return false
	}
	first := t.sim.job(array.HetID(b))
	return first != nil && first.AwaitsStart() && first.Status.Restarts > 0
}

// endsWithOthers reports whether a further component ends in the state because the first
// one does.
func (t *truth) endsWithOthers(b *v1alpha1.BatchJob, state string) bool {
	if !isFurther(b) {
		return false
	}
	first := t.sim.job(array.HetID(b))
	if first == nil {
		return false
	}
	final := first.Status.State
	if final == v1alpha1.StateCompleting {
		final = first.Status.Final
	}
	// A component that was requeued alone never runs without the first one: it lost a node, or it was preempted at the
	// moment at which the first one ended by itself.
	h := t.of(b.Spec.JobID)
	waited := len(h.runs) == 0 || t.nodeFailed || h.preempted[b.Status.Attempt] != ""
	return final == state || first.IsFinal() && waited && state == v1alpha1.StateCancelled
}
