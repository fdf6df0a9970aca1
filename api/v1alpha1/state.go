package v1alpha1

import "github.com/berth-hpc/berth/translate/status"

// IsPending reports whether the job waits in the queue.
func (s *BatchJobStatus) IsPending() bool { return s.State == "" || s.State == StatePending }

// IsFinal reports whether the job has its final state: nothing of it runs, and it
// holds no nodes. The state changes only if the job is requeued.
func (s *BatchJobStatus) IsFinal() bool { return status.JobState(s.State).IsFinal() }

// HasOutcome reports whether the outcome of the attempt is decided: the job has its final
// state, or is COMPLETING. A COMPLETING job may return to the queue.
func (s *BatchJobStatus) HasOutcome() bool { return s.State == StateCompleting || s.IsFinal() }

// IsPending reports whether the job waits in the queue.
func (b *BatchJob) IsPending() bool { return b.Status.IsPending() }

// IsFinal reports whether the job has its final state.
func (b *BatchJob) IsFinal() bool { return b.Status.IsFinal() }

// RequeueRequested reports whether a requested requeue of the job is not done yet.
func (b *BatchJob) RequeueRequested() bool { return b.Spec.Requeues > b.Status.Requeues }

// EndRequested reports whether the job was cancelled or deleted.
func (b *BatchJob) EndRequested() bool { return b.Spec.Cancel != nil || b.DeletionTimestamp != nil }

// AwaitsStart reports whether the planner may start the job: it is pending, and was not
// cancelled or deleted.
func (b *BatchJob) AwaitsStart() bool {
	return b.IsPending() && !b.EndRequested()
}

// HoldsAllocation reports whether the job has the nodes, CPUs and devices of its
// allocation.
func (b *BatchJob) HoldsAllocation() bool {
	switch b.Status.State {
	case StateConfiguring, StateRunning, StateCompleting, StateSuspended:
		return b.Status.Allocation != nil
	}
	return false
}
