// Package array interprets the objects of job arrays and heterogeneous jobs. An
// array is one BatchJob until one of its tasks starts or is changed. That task is
// then split off: it becomes a BatchJob with an id of its own, whose Origin is the
// array. The last task is never split off; the array's own BatchJob becomes that
// task. Job ids are thus the same as in Slurm.
package array

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/value"
)

// Set is a set of task indexes, ascending.
type Set []int32

// Parse parses a set in the syntax of --array. The result is empty if it is invalid.
func Parse(spec string) Set {
	if spec == "" {
		return nil
	}
	a, err := value.Array(spec)
	if err != nil {
		return nil
	}
	return a.Indexes
}

// String returns the set as Slurm shows it.
func (s Set) String() string { return value.ArraySpec(s, 0) }

// Has reports whether the index is in the set.
func (s Set) Has(index int32) bool {
	_, found := slices.BinarySearch(s, index)
	return found
}

// Without returns the set without the indexes for which removed returns true.
func (s Set) Without(removed func(int32) bool) Set {
	return slices.DeleteFunc(slices.Clone(s), removed)
}

// With returns the union of both sets.
func (s Set) With(o Set) Set {
	all := append(slices.Clone(s), o...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Whole reports whether b stands for tasks of an array that are not split off.
func Whole(b *v1alpha1.BatchJob) bool {
	return b.Spec.Job.Array != nil && (b.Status.Array == nil || b.Status.Array.Own == nil)
}

// Rest returns the indexes of the tasks that the array b stands for; tasks are the
// jobs that were split off from it.
func Rest(b *v1alpha1.BatchJob, tasks []*v1alpha1.BatchJob) Set {
	if !Whole(b) {
		return nil
	}
	rest := recorded(b)
	var known Set // usually few, as the status records most of them
	for _, t := range tasks {
		if t.Spec.Task != nil && rest.Has(t.Spec.Task.Index) {
			known = append(known, t.Spec.Task.Index)
		}
	}
	if len(known) == 0 {
		return rest
	}
	slices.Sort(known)
	return rest.Without(known.Has)
}

// Unrecorded returns how many tasks were split off since the array's status was
// written; left are those that were not.
func Unrecorded(b *v1alpha1.BatchJob, left Set) int { return len(recorded(b)) - len(left) }

// recorded returns the tasks that are not split off by the array's status.
func recorded(b *v1alpha1.BatchJob) Set {
	if b.Status.Array != nil {
		return Parse(b.Status.Array.Pending)
	}
	return Parse(b.Spec.Job.Array.Spec)
}

// Task returns the array of the task b, and the task itself; ok is false for other
// jobs, and for an array that stands for several tasks.
func Task(b *v1alpha1.BatchJob) (arrayJobID int64, task v1alpha1.ArrayTask, ok bool) {
	switch {
	case b.Spec.Task != nil && b.Spec.Origin != nil:
		return b.Spec.Origin.JobID, *b.Spec.Task, true
	case b.Spec.Job.Array != nil && !Whole(b):
		return b.Spec.JobID, taskOf(b, *b.Status.Array.Own), true
	}
	return 0, v1alpha1.ArrayTask{}, false
}

// ID returns the job id of the array that b is or is a task of, or 0.
func ID(b *v1alpha1.BatchJob) int64 {
	switch {
	case b.Spec.Task != nil && b.Spec.Origin != nil:
		return b.Spec.Origin.JobID
	case b.Spec.Job.Array != nil:
		return b.Spec.JobID
	}
	return 0
}

// taskOf returns the task of the array b with the given index.
func taskOf(b *v1alpha1.BatchJob, index int32) v1alpha1.ArrayTask {
	all := Parse(b.Spec.Job.Array.Spec)
	t := v1alpha1.ArrayTask{Index: index, Count: int32(len(all)), Step: 1}
	if len(all) == 0 {
		return t
	}
	t.Min, t.Max = all[0], all[len(all)-1]
	if len(all) > 1 {
		t.Step = all[1] - all[0]
		for i := range all[1:] {
			if all[i+1]-all[i] != t.Step {
				t.Step = 1
				break
			}
		}
	}
	return t
}

// Component returns the object of component i+1 of the heterogeneous job b, with
// the job id that admission reserved for it.
func Component(b *v1alpha1.BatchJob, i int) *v1alpha1.BatchJob {
	c := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: Name(b.UID, int32(i+1)), Annotations: traceOf(b)},
		Spec: v1alpha1.BatchJobSpec{
			JobID: b.Spec.JobID + 1 + int64(i), User: b.Spec.User, SubmitTime: b.Spec.SubmitTime,
			Job:    *b.Spec.Components[i].DeepCopy(),
			Origin: &v1alpha1.Origin{Name: b.Name, UID: b.UID, JobID: b.Spec.JobID},
		},
	}
	if len(c.Spec.Job.Partitions) > 0 {
		c.Spec.Partition = c.Spec.Job.Partitions[0]
	}
	return c
}

// traceOf returns the annotation by which the jobs that are split off b are part of its
// trace; nil if it is in none.
func traceOf(b *v1alpha1.BatchJob) map[string]string {
	if t := b.Annotations[wire.AnnotationTraceparent]; t != "" {
		return map[string]string{wire.AnnotationTraceparent: t}
	}
	return nil
}

// HetID returns the job id of the heterogeneous job that b is a component of, or
// 0.
func HetID(b *v1alpha1.BatchJob) int64 {
	switch {
	case b.Spec.Job.Het == nil || b.Spec.Task != nil:
		return 0
	case b.Spec.Origin != nil:
		return b.Spec.Origin.JobID
	}
	return b.Spec.JobID
}

// NamePrefix is the prefix of the names of BatchJobs that are split off, which only
// the scheduler creates.
const NamePrefix = "of-"

// Name returns the name of the object of a task or component of the job with the
// given UID. It is deterministic, so that no task is created twice.
func Name(of types.UID, index int32) string {
	return NamePrefix + string(of) + "-" + strconv.Itoa(int(index))
}

// Split returns the object of one task of the array b. Script and environment stay
// with b. Admission sets the job id.
func Split(b *v1alpha1.BatchJob, index int32) *v1alpha1.BatchJob {
	task := taskOf(b, index)
	t := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: Name(b.UID, index), Annotations: traceOf(b)},
		Spec: v1alpha1.BatchJobSpec{
			User: b.Spec.User, Partition: b.Spec.Partition, SubmitTime: b.Spec.SubmitTime,
			Job:    *b.Spec.Job.DeepCopy(),
			Origin: &v1alpha1.Origin{Name: b.Name, UID: b.UID, JobID: b.Spec.JobID},
			Task:   &task,
		},
	}
	t.Spec.Job.Array = nil
	return t
}
