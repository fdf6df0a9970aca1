package acct

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// open opens the database if it is not open.
func (r *Recorder) open(ctx context.Context) (*Store, error) {
	if s := r.store.Load(); s != nil {
		return s, nil
	}
	s, err := Open(ctx, r.Address)
	if err != nil {
		return nil, err
	}
	if r.ReadOnly {
		r.store.Store(s)
		return s, nil
	}
	if err := r.usage.load(ctx, s, r.Now()); err != nil {
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
	if err := s.Moved(); err != nil {
		return err
	}
	if err := r.writeLedger(ctx, s); err != nil {
		return err
	}
	for {
		jobs, steps := r.take()
		if len(jobs) == 0 && len(steps) == 0 {
			return nil
		}
		entries := r.entries(jobs)
		newer, err := put(ctx, s, entries, steps)
		if err != nil {
			r.putBack(jobs, steps)
			return err
		}
		if len(newer) > 0 {
			r.Log.Warn("records are kept as a newer version of Berth wrote them; their jobs stay in the queue", "jobs", len(newer))
			jobs = slices.DeleteFunc(jobs, func(b *v1alpha1.BatchJob) bool { return newer[string(b.UID)] })
		}
		r.done(jobs, entries)
	}
}

func put(ctx context.Context, s *Store, entries []Entry, steps []StepEntry) (newer map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	return s.Put(ctx, entries, steps)
}

// take takes at most a batch of marks.
func (r *Recorder) take() (jobs []*v1alpha1.BatchJob, steps []StepEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, b := range r.dirty {
		if len(jobs) == batchSize {
			break
		}
		jobs = append(jobs, b)
		delete(r.dirty, uid)
	}
	for id, e := range r.steps {
		if len(steps) == batchSize {
			break
		}
		steps = append(steps, e)
		delete(r.steps, id)
	}
	return jobs, steps
}

// putBack marks again what was not written, unless something newer is marked.
func (r *Recorder) putBack(jobs []*v1alpha1.BatchJob, steps []StepEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range jobs {
		if _, newer := r.dirty[b.UID]; !newer {
			r.dirty[b.UID] = b
		}
	}
	for _, e := range steps {
		id := stepID{e.UID, e.Restarts, e.Step.Step}
		if _, newer := r.steps[id]; !newer {
			r.steps[id] = e
		}
	}
}

func (r *Recorder) entries(jobs []*v1alpha1.BatchJob) []Entry {
	cluster := ClusterName(r.Cluster.Parameters())
	var out []Entry
	for _, b := range jobs {
		rev := r.revision(b)
		row := r.Row(b)
		for _, rec := range Records(b, &row, cluster, r.Who) {
			out = append(out, Entry{Record: rec, Rev: rev})
		}
	}
	return out
}

// done notes what is stored now, and tells who waits for it.
func (r *Recorder) done(jobs []*v1alpha1.BatchJob, entries []Entry) {
	for i := range entries {
		r.usage.Add(&entries[i].Record)
	}
	var released []int64
	r.mu.Lock()
	for _, b := range jobs {
		if !b.IsFinal() {
			continue
		}
		if now, ok := r.Cluster.Jobs.ByUID(b.UID); !ok {
			delete(r.stored, b.UID)
			continue
		} else if now.Status.Restarts == b.Status.Restarts {
			r.stored[b.UID] = b.Status.Restarts
			released = append(released, b.Spec.JobID)
		}
	}
	if len(r.stored) > 2*r.Cluster.Jobs.Len()+1000 {
		for uid := range r.stored {
			if _, ok := r.Cluster.Jobs.ByUID(uid); !ok {
				delete(r.stored, uid)
			}
		}
	}
	r.mu.Unlock()
	if r.Released != nil {
		for _, id := range released {
			r.Released(id)
		}
	}
}
