package workload

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
)

// boundFor returns a pod that an earlier process bound for a job.
func boundFor(name, job string, change ...func(*corev1.Pod)) *corev1.Pod {
	return aPod(name, append([]func(*corev1.Pod){annotated(wire.AnnotationJob, job), func(p *corev1.Pod) {
		p.Spec.NodeName, p.CreationTimestamp = "n1", metav1.Unix(900, 0)
	}}, change...)...)
}

func over(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

// objects returns the ids of the jobs that have objects, by pod.
func (b *bench) objects() map[string]int64 {
	b.Helper()
	var list v1alpha1.BatchJobList
	if err := b.cluster.Client.List(b.Context(), &list); err != nil {
		b.Fatal(err)
	}
	out := map[string]int64{}
	for i := range list.Items {
		out[list.Items[i].Spec.Job.Name] = list.Items[i].Spec.JobID
	}
	return out
}

// The jobs of pods have no objects at first.
func TestJobsOfPodsHaveNoObjectsAtFirst(t *testing.T) {
	b := newBench(t)
	b.feed(aPod("p"), aGroup("g", 2, nil), aPod("g-0", grouped("g")), aPod("g-1", grouped("g")))
	if jobs, made := b.jobs(), b.objects(); len(jobs) != 2 || len(made) != 0 {
		t.Errorf("%d jobs, objects %v; events: %s", len(jobs), made, b.events())
	}
	if j, _, _ := b.cluster.WorkloadOf("uid-p"); j == nil || control.IsCreated(j) {
		t.Errorf("%+v", j)
	}
}

// A change of the annotations of a pending pod changes its job, which gets an object then.
func TestChangedPodGetsAnObject(t *testing.T) {
	b := newBench(t)
	b.feed(aPod("p"))
	b.feed(aPod("p", annotated("berth.hpc/partition", "gpu")))
	if len(b.objects()) != 1 || b.jobs()[0].Spec.Partition != "gpu" {
		t.Errorf("%v %+v", b.objects(), b.jobs()[0].Spec)
	}
}

// The jobs of pods that an earlier process bound are found by the annotation of the binding.
func TestBoundPodsAreFoundAgain(t *testing.T) {
	b := newBench(t)
	b.ids = 40
	known := map[int64]bool{9: true, 10: true}
	b.Recorded = func(_ context.Context, id int64) (bool, error) { return known[id], nil }
	other := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "user-b", Name: "other"}, Spec: v1alpha1.BatchJobSpec{JobID: 7}}
	fake.Feed(b.cluster, client.Object(other))
	late := func(p *corev1.Pod) {
		over(p)
		p.CreationTimestamp = metav1.NewTime(time.Unix(1000, 0).Add(-25 * time.Hour))
	}
	b.feed(boundFor("runs", "5"), boundFor("ended", "6", over), boundFor("taken", "7"), boundFor("unknown", "4000"),
		boundFor("recorded", "9", over), boundFor("forged", "10"), boundFor("long-ago", "11", late), boundFor("odd", "x"),
		boundFor("elsewhere", "12", func(p *corev1.Pod) { p.Namespace = "user-b" }), aPod("another's", func(p *corev1.Pod) { p.Spec.NodeName = "n1" }))
	if made := b.objects(); len(made) != 0 {
		t.Fatalf("before this process leads: %v", made)
	}
	b.queueBound()
	b.settle()
	made := b.objects()
	if len(made) != 5 || made["runs"] != 5 || made["ended"] != 6 {
		t.Errorf("%v", made)
	}
	for _, pod := range []string{"taken", "unknown", "forged"} {
		if made[pod] <= 40 {
			t.Errorf("pod %s has the job id %d", pod, made[pod])
		}
	}
	if j, ok := b.cluster.Job(5); !ok || j.Spec.SubmitTime.Unix() != 900 || !control.IsCreated(j) {
		t.Errorf("%+v", j)
	}
	b.queueBound()
	if b.settle(); len(b.objects()) != 5 {
		t.Errorf("again: %v", b.objects())
	}
}

// Without accounting, an ended pod gets no job again.
func TestEndedPodsWithoutAccounting(t *testing.T) {
	b := newBench(t)
	b.feed(boundFor("ended", "6", over), boundFor("runs", "0005"))
	b.queueBound()
	b.settle()
	if made := b.objects(); len(made) != 1 || made["runs"] == 0 {
		t.Errorf("%v", made)
	}
}
