// Package dependency evaluates --dependency: which of the jobs that a job waits
// for have started, ended, completed or failed, and whether it can still start.
// It is pure.
package dependency

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

// Index is the jobs of the queue, by what dependencies refer to. Not safe for
// concurrent use.
type Index struct {
	// Now is the instant, in Unix seconds, at which delays (after:ID+N) are
	// evaluated.
	Now int64

	jobs map[int64]*v1alpha1.BatchJob
	// leaders holds, by user and job name, the lowest number of the jobs that
	// are not final. It is filled if any job has a singleton dependency.
	leaders map[string]int64
	// split holds the jobs split off an array or a heterogeneous job, tasks
	// those of them that are tasks of an array, by index.
	split map[int64][]*v1alpha1.BatchJob
	tasks map[int64]map[int32]*v1alpha1.BatchJob
	// unsplit caches the indexes of an array that no job of its own has.
	unsplit map[int64]array.Set
}

// NewIndex returns an index of the jobs, which are ordered by number. byID holds
// the same jobs; the index reads it, and its owner keeps it up to date.
func NewIndex(jobs []*v1alpha1.BatchJob, byID map[int64]*v1alpha1.BatchJob, now int64) *Index {
	x := &Index{
		Now: now, jobs: byID, leaders: map[string]int64{},
		split:   map[int64][]*v1alpha1.BatchJob{},
		tasks:   map[int64]map[int32]*v1alpha1.BatchJob{},
		unsplit: map[int64]array.Set{},
	}
	if slices.ContainsFunc(jobs, HasSingleton) {
		for _, b := range jobs {
			if k := SingletonKey(b); !b.IsFinal() && x.leaders[k] == 0 {
				x.leaders[k] = originID(b)
			}
		}
	}
	for _, b := range jobs {
		if o := b.Spec.Origin; o != nil {
			x.split[o.JobID] = append(x.split[o.JobID], b)
			x.setTask(b)
		}
	}
	return x
}

// setTask records the job if it is a task of an array.
func (x *Index) setTask(b *v1alpha1.BatchJob) {
	t := b.Spec.Task
	if t == nil {
		return
	}
	id := b.Spec.Origin.JobID
	if x.tasks[id] == nil {
		x.tasks[id] = map[int32]*v1alpha1.BatchJob{}
	}
	x.tasks[id][t.Index] = b
}

// Add records a job that is new.
func (x *Index) Add(b *v1alpha1.BatchJob) {
	o := b.Spec.Origin
	delete(x.unsplit, b.Spec.JobID)
	if o == nil {
		return
	}
	delete(x.unsplit, o.JobID)
	list := x.split[o.JobID]
	i, _ := slices.BinarySearchFunc(list, b.Spec.JobID, func(other *v1alpha1.BatchJob, id int64) int {
		return cmp.Compare(other.Spec.JobID, id)
	})
	x.split[o.JobID] = slices.Insert(slices.Clone(list), i, b)
	x.setTask(b)
}

// Remove forgets a job.
func (x *Index) Remove(b *v1alpha1.BatchJob) {
	o, t := b.Spec.Origin, b.Spec.Task
	delete(x.unsplit, b.Spec.JobID)
	if o == nil {
		return
	}
	delete(x.unsplit, o.JobID)
	x.split[o.JobID] = slices.DeleteFunc(slices.Clone(x.split[o.JobID]), func(other *v1alpha1.BatchJob) bool {
		return other == b
	})
	if t != nil && x.tasks[o.JobID][t.Index] == b {
		delete(x.tasks[o.JobID], t.Index)
	}
}

// SplitOff returns the jobs split off an array or a heterogeneous job, ordered by
// number: its tasks or further components.
func (x *Index) SplitOff(id int64) []*v1alpha1.BatchJob { return x.split[id] }

// originID returns the number of the job that b was split off from, or b's own.
func originID(b *v1alpha1.BatchJob) int64 {
	if o := b.Spec.Origin; o != nil {
		return o.JobID
	}
	return b.Spec.JobID
}

// SingletonKey returns a key that the jobs share of which a singleton dependency
// lets one run at a time: those of one user with one name.
func SingletonKey(b *v1alpha1.BatchJob) string { return b.Spec.User + "\x00" + b.Spec.Job.Name }

// HasSingleton reports whether the job has a singleton dependency.
func HasSingleton(b *v1alpha1.BatchJob) bool {
	return slices.ContainsFunc(b.Spec.Job.Dependencies.Items, IsSingleton)
}

// IsSingleton reports whether the term is a singleton dependency.
func IsSingleton(d job.Dependency) bool { return d.Type == "singleton" }
