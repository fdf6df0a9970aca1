package snapshot

import (
	"cmp"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/dependency"
	"github.com/berth-hpc/berth/translate/array"
)

// appendTasks appends a pending job to the list. An array becomes an entry for the
// tasks that may start and others for those that may not.
func (s *Snapshot) appendTasks(
	list []backfill.Job, one *backfill.Job, b *v1alpha1.BatchJob, info *JobInfo,
) []backfill.Job {
	id := array.ID(b)
	if id == 0 {
		return append(list, *one)
	}
	free := s.freeTaskSlots(id)
	if !array.Whole(b) {
		if one.Blocked == "" && free < unlimitedTasks && !s.isAmongNextTasks(b, id, free) {
			one.Blocked = backfill.ReasonArrayTaskLimit
		}
		return append(list, *one)
	}
	unsplit := array.Rest(b, s.dependencies.SplitOff(id))
	if len(unsplit) == 0 {
		return list
	}
	if one.Blocked != "" {
		return append(list, *one)
	}
	appendBlocked := func(reason string) {
		blocked := *one
		blocked.Blocked = reason
		list = append(list, blocked)
	}
	ready, reason := s.dependencies.ReadyTasks(b, unsplit)
	// Tasks that are jobs of their own, after a requeue, come first.
	free -= s.countReadyTasks(id)
	if n := min(len(ready), max(0, free)); n > 0 {
		one.Copies, info.ownChoices().tasks = n, ready[:n]
		list = append(list, *one)
	}
	switch {
	case len(ready) > max(0, free):
		appendBlocked(backfill.ReasonArrayTaskLimit)
	case reason != "":
		appendBlocked(reason)
	}
	return list
}

// unlimitedTasks is more than any array has.
const unlimitedTasks = 1 << 30

// freeTaskSlots returns how many more tasks of the array may run at the same time:
// those of its limit (%N), or one if it has a singleton dependency.
func (s *Snapshot) freeTaskSlots(id int64) int {
	whole := s.jobs[id]
	if whole == nil || whole.Spec.Job.Array == nil {
		return unlimitedTasks
	}
	free := int(whole.Spec.Job.Array.Max)
	if dependency.HasSingleton(whole) {
		free = 1
	}
	if free == 0 {
		return unlimitedTasks
	}
	if whole.HoldsAllocation() {
		free--
	}
	for _, t := range s.dependencies.SplitOff(id) {
		if t.HoldsAllocation() {
			free--
		}
	}
	return free
}

// isAmongNextTasks reports whether b is one of the first n of the tasks that are jobs of their
// own and may start, now or later. Several of them wait if they were requeued. Their order does
// not depend on the present time.
func (s *Snapshot) isAmongNextTasks(b *v1alpha1.BatchJob, id int64, n int) bool {
	for _, t := range s.dependencies.SplitOff(id) {
		precedes := cmp.Or(cmp.Compare(earliestStart(t), earliestStart(b)),
			cmp.Compare(t.Spec.JobID, b.Spec.JobID)) < 0
		if precedes && t.AwaitsStart() && t.Spec.Job.Hold == "" && s.dependencies.Reason(t) == "" {
			n--
		}
		if n <= 0 {
			break
		}
	}
	return n > 0
}

// countReadyTasks returns the number of tasks that are jobs of their own and could
// start.
func (s *Snapshot) countReadyTasks(id int64) (n int) {
	for _, t := range s.dependencies.SplitOff(id) {
		if t.AwaitsStart() && t.Spec.Job.Hold == "" && earliestStart(t) <= s.dependencies.Now &&
			s.dependencies.Reason(t) == "" {
			n++
		}
	}
	return n
}
