package keeper_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/job"
)

// advance moves the clock on by d, in steps after each of which the cluster is idle.
func (w *world) advance(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		time.Sleep(20 * time.Second)
		synctest.Wait()
	}
}

// A finished job stays for as long as another one's dependency names it, also
// if the dependency was added, changed or removed after the other was submitted.
func TestFinalJobStaysWhileADependencyNamesIt(t *testing.T) {
	after := func(ids ...int64) func(*v1alpha1.BatchJobSpec) {
		return func(s *v1alpha1.BatchJobSpec) {
			s.Job.Hold, s.Job.Dependencies.Items = "user", nil
			for _, id := range ids {
				s.Job.Dependencies.Items = append(s.Job.Dependencies.Items, job.Dependency{Type: "afterok", JobID: id})
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		age := int32(300)
		fake.Feed(w.Cluster, fake.Settings(v1alpha1.ClusterSpec{MinJobAge: &age}))
		known := func(want ...bool) {
			t.Helper()
			for i, want := range want {
				if _, ok := w.Job(int64(i + 1)); ok != want {
					t.Errorf("job %d is known: %v, want %v", i+1, ok, want)
				}
			}
		}
		w.submit(1, 1, false)
		w.submit(1, 1, false)
		w.submit(1, 1, false)
		waiting, _ := w.Job(3)
		w.update(waiting, after(1))
		w.settle()
		for id := range int64(2) {
			if b, _ := w.Job(id + 1); b.Status.State != v1alpha1.StateRunning {
				t.Fatalf("job %d is %q", b.Spec.JobID, b.Status.State)
			}
		}
		waiting, _ = w.Job(3)
		w.update(waiting, after(2))
		for id := range int64(2) {
			b, _ := w.Job(id + 1)
			w.finish(b, 1)
		}
		w.advance(20 * time.Minute)
		known(false, true, true)
		waiting, _ = w.Job(3)
		if !waiting.AwaitsStart() {
			t.Fatalf("job 3 is %q after the failure of job 2", waiting.Status.State)
		}
		w.update(waiting, after())
		w.advance(5 * time.Minute)
		known(false, false, true)
	})
}

// A singleton dependency names no other job: finished jobs are deleted while one waits.
func TestFinalJobIsDeletedWhileASingletonWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		age := int32(300)
		fake.Feed(w.Cluster, fake.Settings(v1alpha1.ClusterSpec{MinJobAge: &age}))
		w.submit(1, 1, false)
		w.submit(1, 1, false)
		waiting, _ := w.Job(2)
		w.update(waiting, func(s *v1alpha1.BatchJobSpec) {
			s.Job.Hold, s.Job.Dependencies.Items = "user", []job.Dependency{{Type: "singleton"}}
		})
		w.settle()
		b, _ := w.Job(1)
		w.finish(b, 0)
		w.advance(10 * time.Minute)
		if _, ok := w.Job(1); ok {
			t.Error("the finished job stays")
		}
	})
}
