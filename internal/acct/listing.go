package acct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// List returns the records that q selects, of the queue and of the database, by
// job id. The queue's record of a job replaces the stored one. If the database
// does not answer, the list has what is in the queue, and warning says so.
func (r *Recorder) List(ctx context.Context, q *status.RecordQuery) (list []status.Record, warning string, err error) {
	live := r.live(q)
	s, err := r.database()
	switch {
	case err == nil:
		if list, err = s.Find(ctx, q); err != nil {
			if errors.Is(err, store.ErrNewer) {
				return nil, "", err
			}
			list, warning = nil, onlyLive(err)
		}
	case len(q.Jobs) == 0 && q.Start == 0 && q.End == 0 && len(live) == 0:
		return nil, "", err
	default:
		warning = onlyLive(err)
	}
	list = merge(list, live, q)
	for i := range list {
		if q.NoSteps {
			list[i].Steps = nil
		} else {
			record.CompleteSteps(&list[i])
		}
	}
	return list, warning, nil
}

func onlyLive(err error) string {
	return fmt.Sprintf("%v: only jobs that are still in the queue are listed", err)
}

// live returns the records of the jobs in the queue that q may select, with
// steps that are not stored yet.
func (r *Recorder) live(q *status.RecordQuery) []status.Record {
	f := record.NewFilter(q)
	jobs := r.Cluster.Jobs.List()
	tasks := tasksByArray(jobs)
	var out []status.Record
	for _, b := range jobs {
		if b.Spec.JobID == 0 || !f.MayMatchUser(b.Spec.User) {
			continue
		}
		row := r.Row(b)
		if split := tasks[b.Spec.JobID]; len(split) > 0 && array.Whole(b) {
			row.ArrayTaskID = value.ArraySpec(array.Rest(b, split), b.Spec.Job.Array.Max)
		}
		out = append(out, r.records(b, &row)...)
	}
	if !q.NoSteps {
		r.addUnwrittenSteps(out)
	}
	return out
}

// addUnwrittenSteps adds the steps that are not stored yet to their records.
func (r *Recorder) addUnwrittenSteps(records []status.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steps) == 0 {
		return
	}
	index := indexByRun(records)
	for k, s := range r.steps {
		if i, ok := index[k.run]; ok {
			records[i].Steps = append(records[i].Steps, s)
		}
	}
}

func indexByRun(records []status.Record) map[record.RunKey]int {
	index := make(map[record.RunKey]int, len(records))
	for i := range records {
		index[record.KeyOf(&records[i])] = i
	}
	return index
}

// tasksByArray returns the jobs of tasks by the id of their array.
func tasksByArray(jobs []*v1alpha1.BatchJob) map[int64][]*v1alpha1.BatchJob {
	out := map[int64][]*v1alpha1.BatchJob{}
	for _, b := range jobs {
		if b.Spec.Task != nil && b.Spec.Origin != nil {
			out[b.Spec.Origin.JobID] = append(out[b.Spec.Origin.JobID], b)
		}
	}
	return out
}

// merge returns the stored records and those of the queue. A record of the queue
// replaces the stored one of its run, and gets its steps.
func merge(stored, live []status.Record, q *status.RecordQuery) []status.Record {
	f := record.NewFilter(q)
	index := indexByRun(stored)
	drop := map[int]bool{}
	var added []status.Record
	for i := range live {
		l := &live[i]
		k, isStored := index[record.KeyOf(l)]
		if isStored {
			l.DBIndex, l.Steps = stored[k].DBIndex, record.MergeSteps(stored[k].Steps, l.Steps)
		}
		switch match := f.Match(l); {
		case isStored && match:
			stored[k] = *l
		case isStored:
			drop[k] = true // it has changed since it was stored
		case match:
			added = append(added, *l)
		}
	}
	out := make([]status.Record, 0, len(stored)+len(added))
	for i := range stored {
		if !drop[i] {
			out = append(out, stored[i])
		}
	}
	out = append(out, added...)
	slices.SortStableFunc(out, func(a, b status.Record) int { return compare(&a, &b) })
	if !q.Duplicates {
		out = record.Newest(out)
	}
	return out
}

// compare is sacct's order of records: by the second of submission, arrays behind other jobs,
// by job, task and run.
func compare(a, b *status.Record) int {
	return cmp.Or(
		cmp.Compare(a.Submit, b.Submit), cmp.Compare(a.ArrayJobID, b.ArrayJobID),
		cmp.Compare(taskOrder(a), taskOrder(b)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Restarts, b.Restarts),
	)
}

// taskOrder is the order of the tasks of an array: by index, then those that
// have no job of their own.
func taskOrder(r *status.Record) int {
	if n, err := strconv.Atoi(r.ArrayTaskID); err == nil || r.ArrayTaskID == "" {
		return n
	}
	return math.MaxInt
}
