package simulation

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
)

// noteForDependencies notes what dependencies on the job refer to. Its objects may be gone
// when a job that depends on it starts.
func (t *truth) noteForDependencies(b *v1alpha1.BatchJob) {
	if b.Spec.Task == nil {
		return
	}
	array := t.of(b.Spec.Origin.JobID)
	if !slices.Contains(array.tasks, b.Spec.JobID) {
		array.tasks = append(array.tasks, b.Spec.JobID)
	}
}

// checkDependencies checks the dependencies of a job that starts.
func (t *truth) checkDependencies(k runKey, b *v1alpha1.BatchJob) {
	for _, d := range b.Spec.Job.Dependencies.Items {
		if !t.isSatisfied(d) {
			t.violate("job %s began with its dependency %s:%d in states %q", k, d.Type, d.JobID, t.finals(d.JobID))
		}
	}
}

// isSatisfied reports whether a dependency is satisfied. One on an array is satisfied by
// all of its tasks together; the array's own job is the last of them.
func (t *truth) isSatisfied(d job.Dependency) bool {
	finals := t.finals(d.JobID)
	ended := !slices.Contains(finals, "")
	failed := slices.ContainsFunc(finals, func(s string) bool { return s != v1alpha1.StateCompleted })
	switch d.Type {
	case "afterok":
		return ended && !failed
	case "afternotok":
		return ended && failed
	case "afterany":
		return ended
	case "after":
		return !slices.ContainsFunc(t.withTasks(d.JobID), func(id int64) bool {
			return len(t.of(id).placed) == 0 && t.of(id).final == ""
		})
	}
	return false
}

// withTasks returns the id of the job and, if it is an array, those of the jobs that were
// split off.
func (t *truth) withTasks(id int64) []int64 { return append([]int64{id}, t.of(id).tasks...) }

// finals returns the final states of the job and of the tasks that were split off; "" is
// that of a job that has not ended.
func (t *truth) finals(id int64) (all []string) {
	for _, id := range t.withTasks(id) {
		all = append(all, t.of(id).final)
	}
	return all
}

// after returns a running job that depends on another one.
func after(s *simulation, kind string, other *v1alpha1.BatchJob) *v1alpha1.BatchJob {
	return aJob(s, func(b *v1alpha1.BatchJob) {
		b.Spec.Job.Dependencies.Items = []job.Dependency{{Type: kind, JobID: other.Spec.JobID}}
	})
}

// anArray stores an array of two running tasks, and returns its own job, which is the last
// task, and the other one.
func anArray(s *simulation) (array, task *v1alpha1.BatchJob) {
	array = aJob(s, func(b *v1alpha1.BatchJob) {
		b.Spec.Job.Array = &job.Array{Spec: "0-1", Indexes: []int32{0, 1}}
	})
	task = aJob(s, func(b *v1alpha1.BatchJob) {
		b.Spec.Origin, b.Spec.Task = &v1alpha1.Origin{JobID: array.Spec.JobID}, &v1alpha1.ArrayTask{}
		b.Status.Allocation.Nodes[0].Node = "n2"
	})
	s.api.put(array)
	s.api.put(task)
	return array, task
}

// end lets a job of the API server run and end with that exit code and state.
func (s *simulation) end(b *v1alpha1.BatchJob, status int32, state string) {
	s.runs(b)
	s.ends(b, status)
	s.becomes(b, state)
}

// A job depends on all tasks of an array, also after their objects were deleted.
func TestDependencyOnAnArrayThatIsGone(t *testing.T) {
	s := newSimulation(t, 0, parameters{nodes: 2})
	array, task := anArray(s)
	s.end(task, 1, v1alpha1.StateFailed)
	s.end(array, 0, v1alpha1.StateCompleted)
	s.api.remove(keyOf(task))
	s.api.remove(keyOf(array))
	s.truth.checkDependencies(runKey{3, 1}, after(s, "afternotok", array))
	isReport := func(v string) bool { return strings.Contains(v, "dependency") }
	if slices.ContainsFunc(s.truth.violations, isReport) {
		t.Errorf("reported %q", s.truth.violations)
	}
}
