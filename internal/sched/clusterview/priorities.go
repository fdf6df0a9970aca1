package clusterview

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/status"
)

// Priorities returns the terms of the priority of every job that waits for nodes,
// ordered by number: as in Slurm, not of jobs that may not start yet. It is not safe for
// concurrent use of one snapshot.
func Priorities(s *snapshot.Snapshot) *status.PriorityList {
	list := &status.PriorityList{Items: []status.Priority{}}
	list.Weights, list.WeightTRES = s.Priorities().Weights()
	for _, id := range s.WaitingJobs() {
		if item, ok := priorityRow(s, id); ok {
			list.Items = append(list.Items, item)
		}
	}
	slices.SortFunc(list.Items, func(a, b status.Priority) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

func priorityRow(s *snapshot.Snapshot, id int64) (row status.Priority, ok bool) {
	b := s.Job(id)
	if b == nil {
		return status.Priority{}, false
	}
	if n := b.Spec.Job.Priority; n != nil && b.Spec.Job.Hold == "" {
		return status.Priority{
			ID: id, User: b.Spec.User, Account: b.Spec.Job.Account,
			Partition: s.Info(id).Partition, QOS: b.Spec.Job.QOS,
			Priority: *n, Direct: true, Nice: int64(b.Spec.Job.Nice),
		}, true
	}
	j, ok := s.PriorityJob(id)
	if !ok {
		return status.Priority{}, false
	}
	return s.Priorities().Explain(id, &j), true
}
