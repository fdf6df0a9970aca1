package tasks

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

// left returns the tasks that are not split off the array 7, as Slurm shows them; "own"
// and an index if the array's job has become its last task.
func left(t *testing.T, c *control.Cluster) string {
	t.Helper()
	b, ok := c.Job(7)
	if !ok {
		t.Fatal("the array is gone")
	}
	if s := b.Status.Array; s != nil && s.Own != nil {
		return "own " + array.Set{*s.Own}.String()
	}
	return array.Rest(b, c.SplitOff(7)).String()
}

// indexes returns the task indexes of jobs; -1 stands for the array's own job.
func indexes(jobs []*v1alpha1.BatchJob) []int32 {
	var out []int32
	for _, b := range jobs {
		if b.Spec.Task == nil {
			out = append(out, -1)
			continue
		}
		out = append(out, b.Spec.Task.Index)
	}
	return out
}

// TestLastTaskIsTheJobOfTheArray: which tasks become jobs of their own, and which is the
// array's job.
func TestLastTaskIsTheJobOfTheArray(t *testing.T) {
	start := map[int32]*v1alpha1.BatchJobStatus{}
	for name, tt := range map[string]struct {
		spec  string
		split []int32
		start bool // they are split off because they start
		want  []int32
		left  string
	}{
		"some to change":          {"1-4", []int32{3, 1}, false, []int32{3, 1}, "2,4"},
		"all but one to change":   {"1-3", []int32{1, 2}, false, []int32{1, 2}, "own 3"},
		"all but one to start":    {"1-3", []int32{1, 2}, true, []int32{1, 2}, "3"},
		"all to start":            {"1-3", []int32{2, 3, 1}, true, []int32{2, -1, 1}, "own 3"},
		"all to change":           {"1-3", []int32{1, 2, 3}, false, []int32{1, 2, -1}, "own 3"},
		"the only one":            {"5", []int32{5}, true, []int32{-1}, "own 5"},
		"one twice":               {"1-3", []int32{1, 1}, false, []int32{1, 1}, "2-3"},
		"one as often as the two": {"1-2", []int32{1, 1}, false, []int32{1, 1}, "own 2"},
		"one as often as all":     {"1-3", []int32{2, 2, 2}, true, []int32{2, 2, 2}, "1,3"},
		"none":                    {"1-3", nil, false, nil, "1-3"},
	} {
		c := anArray(t, tt.spec)
		initial := start
		if !tt.start {
			initial = nil
		}
		jobs, err := Split(t.Context(), c, 7, tt.split, initial)
		if err != nil || !slices.Equal(indexes(jobs), tt.want) || left(t, c) != tt.left {
			t.Errorf("%s: %v, %v, left %q; want %v, left %q", name, indexes(jobs), err, left(t, c), tt.want, tt.left)
		}
	}
}

// TestSplitRefuses: nothing is split off an array that is not pending, nor a task that is
// not pending in it.
func TestSplitRefuses(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.BatchJob){
		"an array that runs":             func(b *v1alpha1.BatchJob) { b.Status.State = v1alpha1.StateRunning },
		"an array that is cancelled":     func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{} },
		"a job without array":            func(b *v1alpha1.BatchJob) { b.Spec.Job.Array = nil },
		"an array that is being deleted": func(b *v1alpha1.BatchJob) { b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
	} {
		c := anArray(t, "1-3")
		known, _ := c.Job(7)
		b := known.DeepCopy()
		change(b)
		fake.Feed(c, b)
		if jobs, err := Split(t.Context(), c, 7, []int32{1}, nil); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v, %v", name, indexes(jobs), err)
		}
		if _, err := Drop(t.Context(), c, 7, []int32{1}); !errors.Is(err, ErrGone) {
			t.Errorf("%s: drop: %v", name, err)
		}
	}
	c := anArray(t, "1-3")
	for _, index := range []int32{0, 4, -1} {
		if _, err := Split(t.Context(), c, 7, []int32{1, index}, nil); !errors.Is(err, ErrGone) {
			t.Errorf("task %d: %v", index, err)
		}
	}
	if _, err := Split(t.Context(), c, 8, []int32{1}, nil); !errors.Is(err, ErrGone) {
		t.Errorf("an unknown job: %v", err)
	}
	if left(t, c) != "1-3" {
		t.Errorf("a refused split has split off tasks: left %s", left(t, c))
	}
}

// TestSplitAfterACrash: a task whose object exists is not created again, and keeps its id.
func TestSplitAfterACrash(t *testing.T) {
	c := anArray(t, "1-5")
	jobs, err := Split(t.Context(), c, 7, []int32{2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A new process that has not seen the task's object yet.
	restarted := fake.Stores(c.Client)
	whole, _ := c.Job(7)
	restarted.ApplyJob(whole)
	restarted.NextID = func(context.Context) (int64, error) { return 99, nil }
	again, err := Split(t.Context(), restarted, 7, []int32{2}, nil)
	if err != nil || again[0].UID != jobs[0].UID || again[0].Spec.JobID != jobs[0].Spec.JobID {
		t.Errorf("%v, %v; first job %d", again, err, jobs[0].Spec.JobID)
	}
}

// TestForeignObjectWithNameOfTask: an object of that name that was not split off this
// array is neither used nor changed.
func TestForeignObjectWithNameOfTask(t *testing.T) {
	for name, origin := range map[string]*v1alpha1.Origin{
		"a user's":         nil,
		"another array's":  {Name: "j", UID: "other", JobID: 7},
		"of an old object": {Name: "j", JobID: 7},
	} {
		c := anArray(t, "1-5")
		b := fake.Job(50, "anna", func(b *v1alpha1.BatchJob) {
			b.Name, b.Spec.Origin = array.Name("u", 2), origin
		})
		if err := c.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if _, err := Split(t.Context(), c, 7, []int32{2}, nil); err == nil || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%s: %v", name, err)
		}
		if left(t, c) != "1-5" {
			t.Errorf("%s: left %s", name, left(t, c))
		}
	}
}

// TestSplitReportsEveryFailure: if some objects cannot be created, the others exist and
// count, and the error names what failed.
func TestSplitReportsEveryFailure(t *testing.T) {
	c := anArray(t, "1-5")
	hooks := interceptor.Funcs{Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetName() != array.Name("u", 2) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "batchjobs"}, o.GetName(), errors.New("quota"))
		}
		o.SetUID("two")
		return w.Create(ctx, o, opts...)
	}}
	c.Client = interceptor.NewClient(c.Client.(client.WithWatch), hooks)
	_, err := Split(t.Context(), c, 7, []int32{1, 2, 3}, nil)
	if err == nil || !strings.Contains(err.Error(), array.Name("u", 1)) || !strings.Contains(err.Error(), array.Name("u", 3)) {
		t.Errorf("%v", err)
	}
	if left(t, c) != "1,3-5" {
		t.Errorf("left %s", left(t, c))
	}
	c.NextID = func(context.Context) (int64, error) { return 0, errors.New("no ids") }
	if _, err := Split(t.Context(), c, 7, []int32{4}, nil); err == nil || left(t, c) != "1,3-5" {
		t.Errorf("without an id: %v, left %s", err, left(t, c))
	}
}

// TestSplitAdmitsTasks: a task that this process admits has the labels and the finalizer
// of an admitted job.
func TestSplitAdmitsTasks(t *testing.T) {
	c := anArray(t, "1-5")
	jobs, err := Split(t.Context(), c, 7, []int32{2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := stored(t, c, jobs[0])
	if b.Labels[wire.LabelUser] != "anna" || b.Labels[wire.LabelJobID] != "8" || b.Spec.JobID != 8 ||
		!slices.Equal(b.Finalizers, []string{wire.Finalizer}) {
		t.Errorf("id %d, labels %v, finalizers %v", b.Spec.JobID, b.Labels, b.Finalizers)
	}
}

// TestSplitWaitsForTheArray: a split does not begin while another one works on the array,
// and ends with its context.
func TestSplitWaitsForTheArray(t *testing.T) {
	c := anArray(t, "1-5")
	unlock, err := c.LockArray(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Split(ctx, c, 7, []int32{1}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("split: %v", err)
	}
	if _, err := Drop(ctx, c, 7, []int32{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("drop: %v", err)
	}
	unlock()
	if _, err := Split(t.Context(), c, 7, []int32{1}, nil); err != nil || left(t, c) != "2-5" {
		t.Errorf("after the lock was released: %v, left %s", err, left(t, c))
	}
}

// TestDrop: dropped tasks never run, and the whole array counts as failed for jobs that
// depend on it.
func TestDrop(t *testing.T) {
	c := anArray(t, "1-4")
	drop := func(want int, wantLeft string, tasks ...int32) {
		t.Helper()
		n, err := Drop(t.Context(), c, 7, tasks)
		if err != nil || n != want || left(t, c) != wantLeft {
			t.Errorf("%v: %d remain, %v, left %s; want %d, %s", tasks, n, err, left(t, c), want, wantLeft)
		}
	}
	drop(4, "1-4", 9)
	if b, _ := c.Job(7); b.Status.Array != nil {
		t.Errorf("a drop of no task was written: %+v", b.Status.Array)
	}
	drop(2, "2,4", 1, 3, 9)
	if b := fake.StoredJob(t, c, 7); b.Status.Array == nil || !b.Status.Array.Failed || b.Status.Array.Pending != "2,4" {
		t.Errorf("%+v", b.Status.Array)
	}
	drop(0, "2,4", 2, 4) // the caller cancels the array
	if _, err := Split(t.Context(), c, 7, []int32{1}, nil); !errors.Is(err, ErrGone) {
		t.Errorf("a dropped task was split off: %v", err)
	}
}

// TestForget: before the object of a task is deleted, the array records that the task was
// split off, and whether it failed.
func TestForget(t *testing.T) {
	for name, tt := range map[string]struct {
		state  string
		failed bool
	}{
		"completed": {v1alpha1.StateCompleted, false},
		"failed":    {v1alpha1.StateFailed, true},
		"cancelled": {v1alpha1.StateCancelled, true},
	} {
		c := anArray(t, "1-5")
		jobs, err := Split(t.Context(), c, 7, []int32{2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		task := jobs[0].DeepCopy()
		task.Status.State = tt.state
		if err := Forget(t.Context(), c, task); err != nil {
			t.Fatal(err)
		}
		c.Jobs.Remove(task, time.Unix(1, 0))
		b, _ := c.Job(7)
		if s := b.Status.Array; s == nil || s.Failed != tt.failed || left(t, c) != "1,3-5" {
			t.Errorf("%s: %+v, left %s", name, s, left(t, c))
		}
		version := b.ResourceVersion
		if err := Forget(t.Context(), c, task); err != nil {
			t.Fatal(err)
		}
		if b, _ = c.Job(7); b.ResourceVersion != version {
			t.Errorf("%s: recorded twice", name)
		}
	}
}

// TestForgetKeepsTheFailure: a task that completed does not undo the failure of another,
// and nothing is written for an array that is gone or no array.
func TestForgetKeepsTheFailure(t *testing.T) {
	c := anArray(t, "1-5")
	jobs, err := Split(t.Context(), c, 7, []int32{2, 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{v1alpha1.StateFailed, v1alpha1.StateCompleted} {
		task := jobs[i].DeepCopy()
		task.Status.State = state
		if err := Forget(t.Context(), c, task); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ := c.Job(7); !b.Status.Array.Failed || left(t, c) != "1,4-5" {
		t.Errorf("%+v", b.Status.Array)
	}
	for _, origin := range []int64{8, 70} {
		task := jobs[0].DeepCopy()
		task.Spec.Origin = &v1alpha1.Origin{JobID: origin}
		if err := Forget(t.Context(), c, task); err != nil {
			t.Errorf("origin %d: %v", origin, err)
		}
	}
}

// TestComponents: each further component becomes a job of its own, once, with the id that
// was reserved for it.
func TestComponents(t *testing.T) {
	creates := 0
	c := fake.Cluster(interceptor.Funcs{Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		creates++
		o.SetUID(types.UID(o.GetName()))
		return w.Create(ctx, o, opts...)
	}})
	c.NextID = func(context.Context) (int64, error) { return 0, errors.New("an id was drawn") }
	whole := fake.Job(10, "anna", func(b *v1alpha1.BatchJob) {
		b.Spec.Components = []job.Job{{Name: "two", Partitions: []string{"gpu"}}, {Name: "three"}}
	})
	c.Jobs.Apply(whole)
	for range 2 {
		if err := Components(t.Context(), c, whole); err != nil {
			t.Fatal(err)
		}
	}
	if creates != 2 {
		t.Errorf("%d objects were created", creates)
	}
	for id, want := range map[int64]string{11: "two gpu", 12: "three "} {
		b, ok := c.Job(id)
		if !ok || b.Spec.Job.Name+" "+b.Spec.Partition != want || b.Spec.Origin.JobID != 10 {
			t.Errorf("job %d: %+v", id, b)
		}
	}
}

// TestComponentsFail: a component that cannot be created is an error.
func TestComponentsFail(t *testing.T) {
	refused := apierrors.NewGenericServerResponse(http.StatusForbidden, "create", schema.GroupResource{}, "x", "no", 0, true)
	c := fake.Cluster(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return refused
	}})
	whole := fake.Job(10, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Components = []job.Job{{Name: "two"}} })
	c.Jobs.Apply(whole)
	if err := Components(t.Context(), c, whole); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
}
