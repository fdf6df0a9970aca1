package tasks

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

// anArray returns job 7, an array with the tasks in spec.
func anArray(t *testing.T, spec string) *control.Cluster {
	t.Helper()
	c := fake.Cluster(interceptor.Funcs{Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetUID() == "" {
			o.SetUID(types.UID(o.GetName()))
		}
		return w.Create(ctx, o, opts...)
	}})
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "user-anna", Name: "j", UID: "u"},
		Spec: v1alpha1.BatchJobSpec{JobID: 7, User: "anna", Job: job.Job{Array: &job.Array{Spec: spec}}}}
	if err := c.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	c.ApplyJob(b)
	var id atomic.Int64
	c.NextID = func(context.Context) (int64, error) { return 7 + id.Add(1), nil }
	return c
}

func stored(t *testing.T, c *control.Cluster, b *v1alpha1.BatchJob) *v1alpha1.BatchJob {
	t.Helper()
	live := &v1alpha1.BatchJob{}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(b), live); err != nil {
		t.Fatal(err)
	}
	return live
}

// A task that is created with its status is running for all readers, with one write.
// The first status that is written is complete.
func TestTasksAreCreatedWithTheirStatus(t *testing.T) {
	c := anArray(t, "1-3")
	host := v1alpha1.PodsOf{JobID: 5, Attempt: 1}
	begun := map[int32]*v1alpha1.BatchJobStatus{2: {State: v1alpha1.StateRunning, Attempt: 1, Partition: "main", Pods: &host}}
	jobs, err := Split(t.Context(), c, 7, []int32{1, 2}, begun)
	if err != nil || len(jobs) != 2 {
		t.Fatal(jobs, err)
	}
	if s := jobs[0].Status; s.State != "" || c.Jobs.IsAssumed(jobs[0]) {
		t.Errorf("a task that only was split off: %+v", s)
	}
	two := jobs[1]
	if s := two.Status; s.State != v1alpha1.StateRunning || !c.Jobs.IsAssumed(two) || *s.Pods != host {
		t.Errorf("the task that began: %+v", s)
	}
	if in := c.InPods(5, 1); len(in) != 1 || in[0] != two {
		t.Errorf("in the pods: %v", in)
	}
	if s := stored(t, c, two).Status; s.State != "" {
		t.Fatalf("stored as %+v: the API server takes no status with a new object", s)
	}
	complete := func(st *v1alpha1.BatchJobStatus) { st.State = v1alpha1.StateCompleted }
	if _, err := c.WriteStatus(t.Context(), two, time.Now(), complete); err != nil {
		t.Fatal(err)
	}
	live := stored(t, c, two)
	if s := live.Status; s.State != v1alpha1.StateCompleted || s.Partition != "main" || s.Attempt != 1 || s.Pods == nil || *s.Pods != host {
		t.Errorf("after its end %+v", s)
	}
	if s := live.CurrentStatus(); s.State != v1alpha1.StateCompleted {
		t.Errorf("read again: %+v", s)
	}
	if known, _ := c.Job(two.Spec.JobID); c.Jobs.IsAssumed(known) || known.Status.State != v1alpha1.StateCompleted {
		t.Errorf("in the store: %+v", known.Status)
	}
}

// A few split-off tasks are not recorded in the array: their objects count.
func TestTheArraysRecordFollows(t *testing.T) {
	c := anArray(t, "1-200")
	split := func(from, to int32) {
		t.Helper()
		var indexes []int32
		for i := from; i <= to; i++ {
			indexes = append(indexes, i)
		}
		if _, err := Split(t.Context(), c, 7, indexes, nil); err != nil {
			t.Fatal(err)
		}
	}
	rest := func() string {
		b, _ := c.Job(7)
		return array.Rest(b, c.SplitOff(7)).String()
	}
	split(1, recordAfter-1)
	if b, _ := c.Job(7); b.Status.Array != nil || rest() != "64-200" {
		t.Errorf("after a few: %+v, left %s", b.Status.Array, rest())
	}
	split(recordAfter, recordAfter)
	if b, _ := c.Job(7); b.Status.Array == nil || b.Status.Array.Pending != "65-200" || rest() != "65-200" {
		t.Errorf("after enough: %+v, left %s", b.Status.Array, rest())
	}
	if _, err := Split(t.Context(), c, 7, []int32{64}, nil); !errors.Is(err, ErrGone) {
		t.Errorf("a task twice: %v", err)
	}
}

// A task whose object was created is found, although the answer was lost and the API server
// does not respond at first when the object is read.
func TestATaskWhoseAnswerIsLostIsFound(t *testing.T) {
	c := anArray(t, "1-3")
	creates, reads := 0, 0
	c.Client = interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if creates++; creates > 1 {
				return w.Create(ctx, o, opts...)
			}
			return errors.Join(errors.New("connection reset"), w.Create(ctx, o.DeepCopyObject().(client.Object), opts...))
		},
		Get: func(ctx context.Context, w client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if reads++; reads == 1 {
				return errors.New("connection reset")
			}
			return w.Get(ctx, k, o, opts...)
		},
	})
	jobs, err := Split(t.Context(), c, 7, []int32{1}, nil)
	if err != nil || len(jobs) != 1 || jobs[0].Spec.Task == nil || reads != 2 {
		t.Errorf("%v, %v after %d reads", jobs, err, reads)
	}
}
