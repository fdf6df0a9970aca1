package dependency

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// jobOf returns a job of anna's in the state; change may be nil.
func jobOf(id int64, state string, change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: id, User: "anna"}}
	b.Spec.Job.Name = "job"
	if b.Status.State = state; state == v1alpha1.StateRunning {
		b.Status.StartTime = at(1000)
	}
	if change != nil {
		change(b)
	}
	return b
}

func at(seconds int64) *metav1.MicroTime {
	t := metav1.Unix(seconds, 0)
	m := metav1.NewMicroTime(t.Time)
	return &m
}

// arrayOf returns a change that makes a job an array.
func arrayOf(spec string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Spec.Job.Array = &job.Array{Spec: spec} }
}

// taskOf returns a change that makes a job a task of an array.
func taskOf(id int64, index int32) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		b.Spec.Origin, b.Spec.Task = &v1alpha1.Origin{JobID: id}, &v1alpha1.ArrayTask{Index: index}
	}
}

// waiting returns the pending job 100, which waits for these.
func waiting(separator string, items ...job.Dependency) *v1alpha1.BatchJob {
	return jobOf(100, v1alpha1.StatePending, func(b *v1alpha1.BatchJob) {
		b.Spec.Job.Dependencies = job.Dependencies{Any: separator == "?", Items: items}
	})
}

// indexOf returns an index of the jobs, and of b, at the time now.
func indexOf(now int64, jobs ...*v1alpha1.BatchJob) *Index {
	byID := map[int64]*v1alpha1.BatchJob{}
	for _, b := range jobs {
		byID[b.Spec.JobID] = b
	}
	return NewIndex(jobs, byID, now)
}

func index(i int32) *int32 { return &i }

const (
	never = status.ReasonDependencyNeverSatisfied
	later = status.ReasonDependency
)

// TestTypesOfDependencies: what each type makes of a job in each state.
func TestTypesOfDependencies(t *testing.T) {
	states := []string{
		v1alpha1.StatePending, v1alpha1.StateRunning, v1alpha1.StateCompleted, v1alpha1.StateFailed, v1alpha1.StateCancelled, "gone",
	}
	for kind, want := range map[string][6]string{
		"after":            {later, "", "", "", "", ""},
		"afterany":         {later, later, "", "", "", ""},
		"afterburstbuffer": {later, later, "", "", "", ""},
		"afterok":          {later, later, "", never, never, ""},
		"aftercorr":        {later, later, "", never, never, ""},
		"afternotok":       {later, later, never, "", "", ""},
		"expand":           {later, later, later, later, later, ""},
	} {
		for i, state := range states {
			b := waiting("", job.Dependency{Type: kind, JobID: 1})
			x := indexOf(2000, b)
			if state != "gone" {
				x = indexOf(2000, jobOf(1, state, nil), b)
			}
			if got := x.Reason(b); got != want[i] {
				t.Errorf("%s of a job that is %s: %q, want %q", kind, state, got, want[i])
			}
			if got, letter := x.Outcomes(b), map[string]string{"": "m", later: "u", never: "n"}[want[i]]; got != letter {
				t.Errorf("%s of a job that is %s: outcome %s, want %s", kind, state, got, letter)
			}
		}
	}
}

// TestSeveralDependencies: with commas all must be met, with question marks one.
// TestEndedBeforeItsRequeue: a job whose script ended while it was being requeued will run
// again, unless it was cancelled too.
func TestEndedBeforeItsRequeue(t *testing.T) {
	requeued := func(b *v1alpha1.BatchJob) { b.Spec.Requeues = 1 }
	cancelled := func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{} }
	for _, kind := range []string{"afterok", "afterany"} {
		b := waiting(",", job.Dependency{Type: kind, JobID: 1})
		other := jobOf(1, v1alpha1.StateCompleted, requeued)
		if got := indexOf(0, other, b).Reason(b); got != status.ReasonDependency {
			t.Errorf("%s, requeued: %q", kind, got)
		}
		cancelled(other)
		if got := indexOf(0, other, b).Reason(b); got != "" {
			t.Errorf("%s, requeued and cancelled: %q", kind, got)
		}
	}
}

func TestSeveralDependencies(t *testing.T) {
	terms := map[byte]job.Dependency{
		'm': {Type: "afterok", JobID: 1}, 'u': {Type: "afterok", JobID: 2}, 'n': {Type: "afterok", JobID: 3},
	}
	for outcomes, want := range map[string][2]string{ // all, any
		"": {"", ""}, "m": {"", ""}, "mm": {"", ""}, "mu": {later, ""}, "mn": {never, ""}, "un": {never, later}, "uu": {later, later},
		"nn": {never, never}, "mun": {never, ""},
	} {
		var items []job.Dependency
		for i := range outcomes {
			items = append(items, terms[outcomes[i]])
		}
		for i, separator := range []string{",", "?"} {
			b := waiting(separator, items...)
			x := indexOf(0, jobOf(1, v1alpha1.StateCompleted, nil), jobOf(2, v1alpha1.StateRunning, nil), jobOf(3, v1alpha1.StateFailed, nil), b)
			if got := x.Reason(b); got != want[i] || x.Outcomes(b) != outcomes {
				t.Errorf("%s with %q: %q, %s; want %q", outcomes, separator, got, x.Outcomes(b), want[i])
			}
		}
	}
}

// TestDelays: after:ID+N counts from the start of the job, or from its end if it never
// started.
func TestDelays(t *testing.T) {
	ended := jobOf(3, v1alpha1.StateCancelled, func(b *v1alpha1.BatchJob) { b.Status.EndTime = at(1600) })
	jobs := []*v1alpha1.BatchJob{jobOf(1, v1alpha1.StateRunning, nil), jobOf(2, v1alpha1.StatePending, nil), ended, jobOf(4, v1alpha1.StateCancelled, nil)}
	for _, tt := range []struct {
		id, now int64
		want    string
		end     int64
	}{
		{1, 1299, later, 1300}, {1, 1300, "", 0}, {2, 9999, later, 0}, {3, 1899, later, 1900}, {3, 1900, "", 0}, {4, 0, "", 0}, {9, 0, "", 0},
	} {
		b := waiting("", job.Dependency{Type: "after", JobID: tt.id, Delay: 5})
		x := indexOf(tt.now, append(slices.Clone(jobs), b)...)
		if got, end := x.Reason(b), x.DelayEnd(b); got != tt.want || end != tt.end {
			t.Errorf("job %d at %d: %q until %d, want %q until %d", tt.id, tt.now, got, end, tt.want, tt.end)
		}
	}
	b := waiting("", job.Dependency{Type: "after", JobID: 3, Delay: 5}, job.Dependency{Type: "after", JobID: 1, Delay: 5},
		job.Dependency{Type: "afterok", JobID: 2})
	if end := indexOf(1200, append(slices.Clone(jobs), b)...).DelayEnd(b); end != 1300 {
		t.Errorf("the first of two delays ends at %d", end)
	}
}

// TestDependenciesOnArrays: a dependency on an array waits for all its tasks, also for those
// that have been deleted after a failure; one on a task only for that one.
func TestDependenciesOnArrays(t *testing.T) {
	whole := jobOf(10, v1alpha1.StatePending, arrayOf("1-4"))
	own := jobOf(10, v1alpha1.StateCompleted, func(b *v1alpha1.BatchJob) {
		arrayOf("1-4")(b)
		b.Status.Array = &v1alpha1.ArrayStatus{Own: index(4)}
	})
	lost := own.DeepCopy()
	lost.Status.Array.Failed = true
	one, two := jobOf(11, v1alpha1.StateCompleted, taskOf(10, 1)), jobOf(12, v1alpha1.StateFailed, taskOf(10, 2))
	for name, tt := range map[string]struct {
		d    job.Dependency
		jobs []*v1alpha1.BatchJob
		want string
	}{
		"tasks are pending":            {job.Dependency{Type: "afterany", JobID: 10}, []*v1alpha1.BatchJob{whole, one, two}, later},
		"all have ended":               {job.Dependency{Type: "afterany", JobID: 10}, []*v1alpha1.BatchJob{own, one, two}, ""},
		"one has failed":               {job.Dependency{Type: "afterok", JobID: 10}, []*v1alpha1.BatchJob{own, one, two}, never},
		"none has failed":              {job.Dependency{Type: "afterok", JobID: 10, AllTask: true}, []*v1alpha1.BatchJob{own, one}, ""},
		"a deleted one has failed":     {job.Dependency{Type: "afterok", JobID: 10}, []*v1alpha1.BatchJob{lost, one}, never},
		"it is what is waited for":     {job.Dependency{Type: "afternotok", JobID: 10}, []*v1alpha1.BatchJob{lost, one}, ""},
		"a task that has completed":    {job.Dependency{Type: "afterok", JobID: 10, Task: index(1)}, []*v1alpha1.BatchJob{whole, one, two}, ""},
		"a task that has failed":       {job.Dependency{Type: "afterok", JobID: 10, Task: index(2)}, []*v1alpha1.BatchJob{whole, one, two}, never},
		"a task that is pending":       {job.Dependency{Type: "afterok", JobID: 10, Task: index(3)}, []*v1alpha1.BatchJob{whole, one, two}, later},
		"the array's own task":         {job.Dependency{Type: "afterok", JobID: 10, Task: index(4)}, []*v1alpha1.BatchJob{own, two}, ""},
		"a task that does not exist":   {job.Dependency{Type: "afterok", JobID: 10, Task: index(9)}, []*v1alpha1.BatchJob{whole, two}, ""},
		"a deleted task of those left": {job.Dependency{Type: "afterok", JobID: 10, Task: index(2)}, []*v1alpha1.BatchJob{own, one}, ""},
	} {
		b := waiting("", tt.d)
		if got := indexOf(0, append(tt.jobs, b)...).Reason(b); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestCorrespondingTasks: with aftercorr each task waits for the task with its index, and one
// without a counterpart for the whole array.
func TestCorrespondingTasks(t *testing.T) {
	b := waiting("", job.Dependency{Type: "aftercorr", JobID: 10})
	arrayOf("1-3,7")(b)
	x := indexOf(0, jobOf(10, v1alpha1.StatePending, arrayOf("1-4")), jobOf(11, v1alpha1.StateCompleted, taskOf(10, 1)),
		jobOf(12, v1alpha1.StateFailed, taskOf(10, 2)), b)
	if got := x.Reason(b); got != "" {
		t.Errorf("the array as a whole waits: %q", got)
	}
	for tasks, want := range map[string]struct{ ready, reason string }{
		"1-3,7": {"1", later}, "1": {"1", ""}, "2": {"", never}, "2-3": {"", later}, "7": {"", later},
	} {
		ready, reason := x.ReadyTasks(b, array.Parse(tasks))
		if ready.String() != want.ready || reason != want.reason {
			t.Errorf("of %s %q are ready, the others wait for %q; want %+v", tasks, ready, reason, want)
		}
	}
	split := jobOf(101, v1alpha1.StatePending, func(c *v1alpha1.BatchJob) {
		taskOf(100, 2)(c)
		c.Spec.Job.Dependencies = b.Spec.Job.Dependencies
	})
	if got := x.Reason(split); got != never {
		t.Errorf("a task that was split off: %q", got)
	}
	plain := waiting("", job.Dependency{Type: "afterok", JobID: 10})
	if ready, reason := x.ReadyTasks(plain, array.Parse("1-3")); ready.String() != "1-3" || reason != "" {
		t.Errorf("without aftercorr: %s, %q", ready, reason)
	}
}

// TestSingletons: of the jobs of a user with one name, the one with the lowest ID runs
// first, and the tasks of one array together.
func TestSingletons(t *testing.T) {
	single := func(id int64, change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
		return jobOf(id, v1alpha1.StatePending, func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Dependencies.Items = []job.Dependency{{Type: "singleton"}}
			if change != nil {
				change(b)
			}
		})
	}
	first, second := single(5, nil), single(6, nil)
	other := single(7, func(b *v1alpha1.BatchJob) { b.Spec.User = "ben" })
	named := single(8, func(b *v1alpha1.BatchJob) { b.Spec.Job.Name = "other" })
	jobs := []*v1alpha1.BatchJob{jobOf(1, v1alpha1.StateCompleted, nil), first, second, other, named}
	x := indexOf(0, jobs...)
	for b, want := range map[*v1alpha1.BatchJob]string{first: "", second: later, other: "", named: ""} {
		if got := x.Reason(b); got != want {
			t.Errorf("job %d of %s: %q, want %q", b.Spec.JobID, b.Spec.User, got, want)
		}
	}
	running := jobOf(2, v1alpha1.StateRunning, nil) // without a dependency of its own
	if got := indexOf(0, append([]*v1alpha1.BatchJob{running}, jobs...)...).Reason(first); got != later {
		t.Errorf("while a job of that name runs: %q", got)
	}
	whole, task := single(20, arrayOf("1-3")), single(21, taskOf(20, 1))
	x = indexOf(0, whole, task, single(22, nil))
	if x.Reason(whole) != "" || x.Reason(task) != "" || x.Reason(single(22, nil)) != later {
		t.Errorf("array %q, task %q, job %q", x.Reason(whole), x.Reason(task), x.Reason(single(22, nil)))
	}
}

// TestIndexFollowsChanges: after any sequence of additions and removals, the index equals
// one that is built of the same jobs.
func TestIndexFollowsChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	byID := map[int64]*v1alpha1.BatchJob{}
	x := NewIndex(nil, byID, 0)
	questions := []*v1alpha1.BatchJob{}
	for id := range int64(4) {
		for task := range int32(4) {
			questions = append(questions, waiting("", job.Dependency{Type: "afterok", JobID: id + 1, Task: index(task)}))
		}
		questions = append(questions, waiting("", job.Dependency{Type: "afterok", JobID: id + 1}))
	}
	for range 3000 {
		id := r.Int64N(40) + 1
		if old := byID[id]; old != nil {
			delete(byID, id)
			x.Remove(old)
		} else {
			b := jobOf(id, []string{v1alpha1.StatePending, v1alpha1.StateCompleted, v1alpha1.StateFailed}[r.IntN(3)], nil)
			if id <= 4 {
				arrayOf("0-3")(b)
			} else {
				taskOf(r.Int64N(4)+1, r.Int32N(4))(b)
			}
			if slices.ContainsFunc(slices.Collect(maps.Values(byID)), func(o *v1alpha1.BatchJob) bool { return sameTask(o, b) }) {
				continue // an array has no two jobs of one task
			}
			byID[id] = b
			x.Add(b)
		}
		fresh := NewIndex(slices.SortedFunc(maps.Values(byID), func(a, b *v1alpha1.BatchJob) int { return int(a.Spec.JobID - b.Spec.JobID) }), byID, 0)
		for _, q := range questions {
			if got, want := x.Reason(q), fresh.Reason(q); got != want {
				t.Fatalf("%+v: %q, a new index has %q", q.Spec.Job.Dependencies.Items, got, want)
			}
		}
		for id := range int64(5) {
			if got, want := numbers(x.SplitOff(id)), numbers(fresh.SplitOff(id)); got != want {
				t.Fatalf("split off %d: %s, a new index has %s", id, got, want)
			}
		}
	}
}

func sameTask(a, b *v1alpha1.BatchJob) bool {
	return a.Spec.Task != nil && b.Spec.Task != nil && a.Spec.Origin.JobID == b.Spec.Origin.JobID && a.Spec.Task.Index == b.Spec.Task.Index
}

func numbers(jobs []*v1alpha1.BatchJob) string {
	var out []int64
	for _, b := range jobs {
		out = append(out, b.Spec.JobID)
	}
	return fmt.Sprint(out)
}
