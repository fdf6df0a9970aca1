package keeper_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// While the API server is slow to accept the statuses of pods' jobs, which can
// wait, jobs are still cancelled; and when it recovers all are written.
func TestDeferredStatusesDoNotOccupyTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		recovered := make(chan struct{})
		w.patchStatus = func(ctx context.Context, o client.Object) {
			if strings.HasPrefix(o.GetName(), "w-") {
				select {
				case <-recovered:
				case <-ctx.Done():
				}
			}
		}
		w.submit(1, 1, false)
		w.settle()
		pods := []string{"a", "b", "c", "d"}
		jobs := make([]*v1alpha1.BatchJob, len(pods))
		for i, name := range pods {
			var p *corev1.Pod
			p, jobs[i] = w.singlePod(name, int64(10+i), "")
			time.Sleep(time.Second)
			synctest.Wait()
			known, _ := w.Job(int64(10 + i))
			p = p.DeepCopy()
			p.Spec.NodeName, p.Status.Phase = known.Status.Allocation.Nodes[0].Name, corev1.PodRunning
			fake.Feed(w.Cluster, p)
		}
		w.advance(time.Minute)
		b, _ := w.Job(1)
		if b.Status.State != v1alpha1.StateRunning {
			t.Fatalf("job 1 is %q", b.Status.State)
		}
		w.update(b, func(s *v1alpha1.BatchJobSpec) { s.Cancel = &v1alpha1.CancelRequest{By: "a"} })
		w.advance(time.Minute)
		if b, _ = w.Job(1); b.Status.State != v1alpha1.StateCancelled && b.Status.State != v1alpha1.StateCompleting {
			t.Errorf("job 1 is %q a minute after it was cancelled", b.Status.State)
		}
		close(recovered)
		w.advance(time.Minute)
		for _, b := range jobs {
			if s := w.stored(b); s.State != v1alpha1.StateRunning {
				t.Errorf("job %d is stored as %q", b.Spec.JobID, s.State)
			}
		}
	})
}
