package planner

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/translate/job"
)

// bench is a Planner over a cluster in memory: one partition of one node of
// four CPUs.
type bench struct {
	*testing.T
	*Planner
	cluster *control.Cluster

	mu    sync.Mutex
	hook  func(attempt int) error // called for every placement written
	wrote int
	split int64 // tasks
}

// benchThreshold is how long a plan takes from which on the planner follows changes.
var benchThreshold = incrementalThreshold

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, hook: func(int) error { return nil }}
	b.cluster = fake.Cluster(interceptor.Funcs{SubResourcePatch: b.patch, Create: b.create})
	b.Planner = New(b.cluster, starter.New(b.cluster, nil, time.Now), time.Now, slog.New(slog.DiscardHandler))
	b.incrementalFrom = benchThreshold
	fake.Feed(
		b.cluster,
		aNode(),
		fake.Partition("debug", func(p *v1alpha1.PartitionSpec) { p.Default, p.Nodes = true, "ALL" }),
	)
	return b
}

// create assigns ids to tasks that are split off, as admission does.
func (b *bench) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	if j, ok := o.(*v1alpha1.BatchJob); ok && j.Spec.JobID == 0 {
		b.mu.Lock()
		b.split++
		j.Spec.JobID = 100 + b.split
		b.mu.Unlock()
		j.UID = types.UID(strconv.FormatInt(j.Spec.JobID, 10))
	}
	return c.Create(ctx, o, opts...)
}

func (b *bench) patch(
	ctx context.Context,
	c client.Client,
	sub string,
	o client.Object,
	p client.Patch,
	opts ...client.SubResourcePatchOption,
) error {
	b.mu.Lock()
	b.wrote++
	n := b.wrote
	b.mu.Unlock()
	if err := b.hook(n); err != nil {
		return err
	}
	return c.SubResource(sub).Patch(ctx, o, p, opts...)
}

// run plans until the test ends, within a synctest bubble.
func (b *bench) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { b.Planner.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

// submit creates a job in the API server and in the store.
func (b *bench) submit(id int64, cpus int32, change ...func(*job.Job)) {
	b.Helper()
	j := job.Job{Shape: job.Shape{CPUsPerTask: cpus}, Time: job.Time{Limit: 5}}
	for _, c := range change {
		c(&j)
	}
	o := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "user-a",
			Name:      fmt.Sprintf("j-%d", id),
			UID:       types.UID(fmt.Sprint(id)),
		},
		Spec: v1alpha1.BatchJobSpec{JobID: id, User: "a", Partition: "debug", Job: j},
	}
	if err := b.cluster.Client.Create(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	b.cluster.ApplyJob(o)
}

// end ends a job as the keeper does.
func (b *bench) end(id int64) {
	b.Helper()
	b.setStatus(id, func(s *v1alpha1.BatchJobStatus) { s.State, s.Allocation = v1alpha1.StateCompleted, nil })
}

// setStatus writes a job's status to the API server and the store.
func (b *bench) setStatus(id int64, change func(*v1alpha1.BatchJobStatus)) {
	b.Helper()
	known, _ := b.cluster.Job(id)
	o := known.DeepCopy()
	change(&o.Status)
	if err := b.cluster.Client.Status().Update(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	b.cluster.ApplyJob(o)
}

// state returns the job's state in the store. It fails the test unless the API server has the
// same.
func (b *bench) state(id int64) string {
	b.Helper()
	known, _ := b.cluster.Job(id)
	o := &v1alpha1.BatchJob{}
	if err := b.cluster.Client.Get(b.Context(), client.ObjectKeyFromObject(known), o); err != nil {
		b.Fatal(err)
	}
	if o.Status.State != known.Status.State {
		b.Errorf("job %d: the store has %q, the API server %q", id, known.Status.State, o.Status.State)
	}
	return o.Status.State
}

func (b *bench) want(states ...string) {
	b.Helper()
	for i, want := range states {
		if got := b.state(int64(i + 1)); got != want {
			b.Errorf("job %d is %q, want %q", i+1, got, want)
		}
	}
}

func aNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("4"),
				corev1.ResourceMemory: resource.MustParse("4000Mi"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// settle waits until the planner has nothing to do now. Its pauses are at most maxPause.
func settle() {
	time.Sleep(2 * maxPause)
	synctest.Wait()
}
