package acct

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/acct/usage"
	"github.com/berth-hpc/berth/translate/status"
)

// open returns the database, which it opens if it is not open. A process that
// writes reads past usage from it.
func (r *Recorder) open(ctx context.Context) (*store.Store, error) {
	if s := r.store.Load(); s != nil {
		return s, nil
	}
	s, err := store.Open(ctx, r.Address)
	if err != nil {
		return nil, err
	}
	if r.ReadOnly {
		r.store.Store(s)
		return s, nil
	}
	since := r.Now().Add(-usage.Horizon).Unix()
	if err := s.EachFinishedRun(ctx, since, r.usage.Add); err != nil {
		_ = s.Close()
		return nil, err
	}
	r.store.Store(s)
	r.purge(ctx)
	return s, nil
}

// flush writes everything that is marked.
func (r *Recorder) flush(ctx context.Context) error {
	s, err := r.open(ctx)
	if err != nil {
		return err
	}
	if err := s.CheckMoved(); err != nil {
		return err
	}
	if err := r.writeLedger(ctx, s); err != nil {
		return err
	}
	for {
		b := r.nextBatch()
		if len(b.jobs) == 0 && len(b.steps) == 0 {
			return nil
		}
		err := r.write(ctx, s, b)
		r.written(b, err)
		if err != nil {
			return err
		}
	}
}

// batch is what one transaction writes.
type batch struct {
	jobs  []*v1alpha1.BatchJob
	steps []store.StepEntry
}

func (r *Recorder) write(ctx context.Context, s *store.Store, b batch) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	entries := r.entries(b.jobs)
	newer, err := s.Put(ctx, entries, b.steps)
	if err != nil {
		return err
	}
	stored := b.jobs
	if len(newer) > 0 {
		r.Log.Warn(
			"records that a newer version of Berth wrote are not replaced; their jobs stay in the queue",
			"jobs",
			len(newer),
		)
		stored = slices.DeleteFunc(
			slices.Clone(b.jobs),
			func(j *v1alpha1.BatchJob) bool { return newer[string(j.UID)] },
		)
	}
	for i := range entries {
		r.usage.Add(&entries[i].Record)
	}
	r.release(stored)
	return nil
}

// nextBatch removes at most a batch of marks. Its steps remain visible in r.writing until
// written is called.
func (r *Recorder) nextBatch() batch {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b batch
	for uid, j := range r.dirty {
		if len(b.jobs) == batchSize {
			break
		}
		b.jobs = append(b.jobs, j)
		delete(r.dirty, uid)
	}
	for k, s := range r.steps {
		if len(b.steps) == batchSize {
			break
		}
		b.steps = append(b.steps, store.StepEntry{Run: k.run, Step: s})
		r.writing[k] = s
		delete(r.steps, k)
	}
	return b
}

// written ends the writing of a batch. If it has failed, what was not written is marked again,
// unless something newer is marked.
func (r *Recorder) written(b batch, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.writing)
	if failure == nil {
		return
	}
	for _, j := range b.jobs {
		if _, newer := r.dirty[j.UID]; !newer {
			r.dirty[j.UID] = j
		}
	}
	for _, e := range b.steps {
		k := stepKey{e.Run, e.Step.Step}
		if _, newer := r.steps[k]; !newer {
			r.steps[k] = e.Step
		}
	}
}

// entries returns the records of all runs of the jobs.
func (r *Recorder) entries(jobs []*v1alpha1.BatchJob) []store.Entry {
	var out []store.Entry
	for _, b := range jobs {
		rev := r.revision(b)
		row := r.Row(b)
		for _, rec := range r.records(b, &row) {
			out = append(out, store.Entry{Record: rec, Rev: rev})
		}
	}
	return out
}

// records returns the records of a job with the row.
func (r *Recorder) records(b *v1alpha1.BatchJob, row *status.Job) []status.Record {
	return record.OfJob(b, row, record.Cluster{
		Name: ClusterName(r.Cluster.Parameters()), Users: r.Users, Billing: r.Billing,
	})
}

// release marks finished jobs as stored, and calls Released for them.
func (r *Recorder) release(jobs []*v1alpha1.BatchJob) {
	var released []int64
	r.mu.Lock()
	for _, b := range jobs {
		if !b.IsFinal() {
			continue
		}
		now, exists := r.Cluster.Jobs.ByUID(b.UID)
		switch {
		case !exists:
			delete(r.stored, b.UID)
		case now.Status.Restarts == b.Status.Restarts:
			r.stored[b.UID] = b.Status.Restarts
			released = append(released, b.Spec.JobID)
		}
	}
	r.pruneStored()
	r.mu.Unlock()
	if r.Released == nil {
		return
	}
	for _, id := range released {
		r.Released(id)
	}
}

// pruneStored forgets jobs that no longer exist, when there are many. The
// recorder is locked.
func (r *Recorder) pruneStored() {
	if len(r.stored) <= 2*r.Cluster.Jobs.Len()+1000 {
		return
	}
	for uid := range r.stored {
		if _, exists := r.Cluster.Jobs.ByUID(uid); !exists {
			delete(r.stored, uid)
		}
	}
}
