package snapshot

import (
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// preemptorPriority is the planner's priority of a job for which others are
// preempted: no other job starts in their place.
const preemptorPriority = math.MaxInt64 / 2

// IsPreemptor reports whether running jobs are being, or have just been, preempted
// for the pending job.
func (s *Snapshot) IsPreemptor(id int64) bool { return s.preemptors[id] }

// addPreemptors sets the preemptors: the given ones, and those that the running jobs
// which are being preempted name.
func (s *Snapshot) addPreemptors(given map[int64]bool) {
	s.preemptors = map[int64]bool{}
	for id := range given {
		s.preemptors[id] = true
	}
	for i := range s.Running {
		if p := s.jobs[s.Running[i].ID].Status.Preempt; p != nil {
			s.preemptors[p.By] = true
		}
	}
}

// RunningJobs iterates over the numbers of the running jobs, in ascending order.
func (s *Snapshot) RunningJobs() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := range s.Running {
			if !yield(s.Running[i].ID) {
				return
			}
		}
	}
}

// SelectVictims returns those of the candidates whose nodes the pending job needs to
// start now, after the jobs that the plan has started; none if that would not help.
// It calls candidates only if the job could start.
func (s *Snapshot) SelectVictims(
	id int64, candidates func() []int64, started []backfill.Running,
) []int64 {
	i := slices.IndexFunc(s.Pending, func(j backfill.Job) bool { return j.ID == id })
	if i < 0 || s.Pending[i].Blocked != "" || s.Pending[i].Begin > s.Now {
		return nil
	}
	after := s.Snapshot
	after.Running = slices.Concat(s.Running, started)
	return after.Victims(&s.Pending[i], candidates())
}

// notePreemptor records for which job a running job is being preempted.
func (x *Incremental) notePreemptor(b *v1alpha1.BatchJob) {
	if p := b.Status.Preempt; p != nil {
		x.preemptedFor[b.Spec.JobID] = p.By
	}
}

// SetPreemptors sets the preemptors beside those that running jobs name. The next
// Follow applies them.
func (x *Incremental) SetPreemptors(ids map[int64]bool) { x.otherPreemptor = maps.Clone(ids) }

// updatePreemptors updates the preemptors and adds those that changed to affected,
// because their place in the queue changes.
func (x *Incremental) updatePreemptors(affected map[int64]bool) {
	current := maps.Clone(x.otherPreemptor)
	if current == nil {
		current = map[int64]bool{}
	}
	for _, by := range x.preemptedFor {
		current[by] = true
	}
	for id := range current {
		if !x.preemptors[id] {
			affected[id] = true
		}
	}
	for id := range x.preemptors {
		if !current[id] {
			affected[id] = true
		}
	}
	x.preemptors = current
}
