package v1alpha1

import "github.com/berth-hpc/berth/translate/status"

// AwaitsStart reports whether the planner decides about the job: it is pending,
// and nobody has cancelled or deleted it.
func (b *BatchJob) AwaitsStart() bool {
	return (b.Status.State == "" || b.Status.State == StatePending) &&
		b.Spec.Cancel == nil && b.DeletionTimestamp == nil
}

// HoldsAllocation reports whether the job holds the nodes, CPUs and devices of
// its allocation.
func (b *BatchJob) HoldsAllocation() bool {
	switch b.Status.State {
	case StateConfiguring, StateRunning, StateCompleting, StateSuspended:
		return b.Status.Allocation != nil
	}
	return false
}

// IsFinal reports whether the job has its final state.
func (b *BatchJob) IsFinal() bool { return status.JobState(b.Status.State).IsFinal() }
