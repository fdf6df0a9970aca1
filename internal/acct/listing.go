package acct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
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
	// What is not stored yet is read first: it may be stored, and gone, before the
	// database has answered.
	live := r.liveJobs(q)
	s, err := r.database()
	switch {
	case err == nil:
		if list, err = s.Find(ctx, q); err != nil {
			if errors.Is(err, store.ErrNewer) {
				return nil, "", err
			}
			list, warning = nil, onlyLive(err)
		}
	case len(q.Jobs) == 0 && q.Start == 0 && q.End == 0 && len(live.jobs) == 0:
		return nil, "", err
	default:
		warning = onlyLive(err)
	}
	list = merge(list, r.liveRecords(live), q)
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

// liveJobs is what has not reached the database yet.
type liveJobs struct {
	jobs  []*v1alpha1.BatchJob                  // in the queue
	split map[int64][]*v1alpha1.BatchJob        // jobs of tasks, by the id of their array
	steps map[record.RunKey][]status.StepRecord // steps that are not stored
}

// liveJobs returns the jobs of the queue that q may select, and their steps.
func (r *Recorder) liveJobs(q *status.RecordQuery) liveJobs {
	f := record.NewFilter(q)
	jobs := r.Cluster.Jobs.List()
	live := liveJobs{split: tasksByArray(jobs)}
	for _, b := range jobs {
		if b.Spec.JobID != 0 && f.MayMatchUser(b.Spec.User) && f.MayMatchID(b.Spec.JobID, array.ID(b), array.HetID(b)) {
			live.jobs = append(live.jobs, b)
		}
	}
	if !q.NoSteps {
		live.steps = r.unwrittenSteps()
	}
	return live
}

// unwrittenSteps returns the steps that are not stored yet.
func (r *Recorder) unwrittenSteps() map[record.RunKey][]status.StepRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	steps := make(map[record.RunKey][]status.StepRecord, len(r.steps)+len(r.writing))
	for k, s := range r.writing {
		if _, newer := r.steps[k]; !newer {
			steps[k.run] = append(steps[k.run], s)
		}
	}
	for k, s := range r.steps {
		steps[k.run] = append(steps[k.run], s)
	}
	return steps
}

// liveRecords returns the records of the jobs, one at a time: there may be many,
// of which the query selects few. The loop may keep a record's parts.
func (r *Recorder) liveRecords(live liveJobs) iter.Seq[*status.Record] {
	return func(yield func(*status.Record) bool) {
		for _, b := range live.jobs {
			row := r.Row(b)
			if split := live.split[b.Spec.JobID]; len(split) > 0 && array.Whole(b) {
				row.ArrayTaskID = value.ArraySpec(array.Rest(b, split), b.Spec.Job.Array.Max)
			}
			records := r.records(b, &row)
			for i := range records {
				rec := &records[i]
				rec.Steps = append(rec.Steps, live.steps[record.KeyOf(rec)]...)
				if !yield(rec) {
					return
				}
			}
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
func merge(stored []status.Record, live iter.Seq[*status.Record], q *status.RecordQuery) []status.Record {
	f := record.NewFilter(q)
	index := indexByRun(stored)
	drop := map[int]bool{}
	var added []status.Record
	for l := range live {
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
	kept := make([]*status.Record, 0, len(stored)+len(added)) // a record is large to move
	for i := range stored {
		if !drop[i] {
			kept = append(kept, &stored[i])
		}
	}
	for i := range added {
		kept = append(kept, &added[i])
	}
	slices.SortStableFunc(kept, compare)
	out := make([]status.Record, len(kept))
	for i, rec := range kept {
		out[i] = *rec
	}
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
