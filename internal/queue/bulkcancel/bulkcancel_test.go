package bulkcancel

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
)

// pendingJob returns a job in the queue.
func pendingJob(id int64) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "user-anna", Name: fmt.Sprint("j-", id), UID: types.UID(fmt.Sprint("uid-", id)), ResourceVersion: "5"}}
	b.Spec.JobID, b.Spec.User = id, "anna"
	return b
}

// leader returns the Canceller of a process that leads, with the jobs in its store.
func leader(t *testing.T, c *control.Cluster, jobs ...*v1alpha1.BatchJob) *Canceller {
	t.Helper()
	x := New(c, time.Now, slog.New(slog.DiscardHandler))
	if err := x.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, b := range jobs {
		c.ApplyJob(b)
	}
	return x
}

func stored(t *testing.T, c *control.Cluster) string {
	t.Helper()
	m := &corev1.ConfigMap{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: wire.SystemNamespace, Name: objectName}, m); err != nil {
		t.Fatal(err)
	}
	return m.Data[dataKey]
}

func get(t *testing.T, c *control.Cluster, id int64) *v1alpha1.BatchJob {
	t.Helper()
	b, ok := c.Job(id)
	if !ok {
		t.Fatalf("no job %d", id)
	}
	return b
}

// Jobs are cancelled at once, for the next leader as well, and stay so when their own
// objects have the cancellation.
func TestJobsAreCancelledBeforeTheirObjects(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	x := leader(t, c, pendingJob(1), pendingJob(2), pendingJob(3))
	if err := x.Cancel(t.Context(), []*v1alpha1.BatchJob{get(t, c, 1), get(t, c, 2)}, "anna"); err != nil {
		t.Fatal(err)
	}
	next := fake.Cluster(interceptor.Funcs{})
	next.Client = c.Client
	y := leader(t, next, pendingJob(1), pendingJob(2), pendingJob(3))
	for _, in := range []*control.Cluster{c, next} {
		for id, want := range map[int64]string{1: v1alpha1.StateCancelled, 2: v1alpha1.StateCancelled, 3: ""} {
			b := get(t, in, id)
			if b.Status.State != want || (b.Spec.Cancel != nil) != (want != "") || in.Jobs.IsAssumed(b) != (want != "") {
				t.Errorf("job %d: %q, cancelled by %v", id, b.Status.State, b.Spec.Cancel)
			}
		}
		if b := get(t, in, 1); b.Spec.Cancel.By != "anna" || b.Status.EndTime == nil || len(b.Status.History) != 1 {
			t.Errorf("%+v", b.Status)
		}
	}
	written := get(t, next, 1).DeepCopy()
	written.ResourceVersion, written.Spec.Cancel = "6", nil
	next.ApplyJob(written)
	next.Jobs.Remove(get(t, next, 2), time.Now())
	if err := y.prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := stored(t, next); text != "" {
		t.Errorf("left: %q", text)
	}
	if b := get(t, next, 1); b.Spec.Cancel == nil || b.Spec.Cancel.By != "anna" {
		t.Errorf("the user who cancelled the job is lost: %+v", b.Spec.Cancel)
	}
	// A requeue requested later counts.
	again := written.DeepCopy()
	again.ResourceVersion, again.Spec.Requeues, again.Spec.Cancel = "7", 1, nil
	next.ApplyJob(again)
	if b := get(t, next, 1); b.Spec.Cancel != nil {
		t.Error("a job that was requeued is cancelled")
	}
}

// A job that is requeued after its cancellation stays in the queue, for the next leader
// as well, until it is cancelled again.
func TestRequeueAfterACancellationCounts(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	x := leader(t, c, pendingJob(1))
	add := func() {
		t.Helper()
		if err := x.Cancel(t.Context(), []*v1alpha1.BatchJob{get(t, c, 1)}, "anna"); err != nil {
			t.Fatal(err)
		}
	}
	add()
	requeued := pendingJob(1)
	requeued.ResourceVersion, requeued.Spec.Requeues, requeued.Status.State = "6", 1, v1alpha1.StateCancelled
	c.ApplyJob(requeued)
	back := requeued.DeepCopy()
	back.ResourceVersion, back.Status.Requeues, back.Status.State = "7", 1, v1alpha1.StatePending
	c.ApplyJob(back)
	next := fake.Cluster(interceptor.Funcs{})
	next.Client = c.Client
	leader(t, next, back)
	for _, in := range []*control.Cluster{c, next} {
		if b := get(t, in, 1); b.Status.State != v1alpha1.StatePending || b.Spec.Cancel != nil {
			t.Errorf("%q, cancelled by %v", b.Status.State, b.Spec.Cancel)
		}
	}
	if err := x.Load(t.Context()); err != nil { // the first process leads again
		t.Fatal(err)
	}
	add()
	if b := get(t, c, 1); b.Status.State != v1alpha1.StateCancelled {
		t.Errorf("cancelled again it is %q", b.Status.State)
	}
	back.ResourceVersion, back.Spec.Requeues, back.Status.Requeues = "8", 2, 2
	c.ApplyJob(back)
	if err := x.prune(t.Context()); err != nil || stored(t, c) != "" {
		t.Errorf("left: %q, %v", stored(t, c), err)
	}
}

// A job that was placed at the same moment only gets the request; the keeper ends it.
func TestJobPlacedAtTheSameMomentIsNotFinal(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	x := leader(t, c, pendingJob(1))
	b := get(t, c, 1)
	placed := pendingJob(1)
	placed.ResourceVersion, placed.Status.State = "6", v1alpha1.StateConfiguring
	c.ApplyJob(placed)
	if err := x.Cancel(t.Context(), []*v1alpha1.BatchJob{b}, "anna"); err != nil {
		t.Fatal(err)
	}
	if b := get(t, c, 1); b.Status.State != v1alpha1.StateConfiguring || b.Spec.Cancel == nil {
		t.Errorf("%q, %v", b.Status.State, b.Spec.Cancel)
	}
	if err := x.prune(t.Context()); err != nil || stored(t, c) == "" {
		t.Errorf("the request was removed before the job has ended: %v", err)
	}
}

// A process that no longer leads cancels nothing.
func TestFormerLeaderCannotCancel(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	x := leader(t, c, pendingJob(1))
	next := fake.Cluster(interceptor.Funcs{})
	next.Client = c.Client
	leader(t, next)
	if err := x.Cancel(t.Context(), []*v1alpha1.BatchJob{get(t, c, 1)}, "anna"); err == nil {
		t.Error("its request was written")
	}
	if b := get(t, c, 1); b.Spec.Cancel != nil {
		t.Error("the job is cancelled in memory")
	}
}

func TestEncodeAndDecode(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(1, 5000))
	one, two := &v1alpha1.CancelRequest{By: "anna", At: &at}, &v1alpha1.CancelRequest{By: `b "c"`, At: &at}
	requests := map[int64]entry{1: {request: one}, 2: {request: one}, 3: {request: one}, 7: {request: two}, 9: {request: one}, 10: {one, 2}}
	text := encode(requests)
	got, err := decode(text)
	if err != nil || len(got) != len(requests) {
		t.Fatalf("%v %v", got, err)
	}
	for id, e := range requests {
		if r := got[id].request; r.By != e.request.By || !r.At.Equal(e.request.At) || got[id].requeues != e.requeues {
			t.Errorf("%d: %+v", id, got[id])
		}
	}
	for _, bad := range []string{"x", "1970-01-01T00:00:00Z anna 1", `1970-01-01T00:00:00Z "anna" 2-1`, `1970-01-01T00:00:00Z "anna" 1-99999999999`, `1970-01-01T00:00:00Z "anna"`, `1970-01-01T00:00:00Z "anna" 1 x`} {
		if _, err := decode(bad + "\n"); err == nil {
			t.Errorf("%q was decoded", bad)
		}
	}
}
