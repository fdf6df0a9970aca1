package keeper_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// singlePod is a pod and the job that represents it, as in the API server.
func (w *world) singlePod(pod string, id int64, node string) (*corev1.Pod, *v1alpha1.BatchJob) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: pod}, Spec: corev1.PodSpec{SchedulerName: wire.SchedulerName, NodeName: node}}
	fake.Feed(w.Cluster, p)
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w-" + pod, UID: types.UID("w-" + pod)}, Spec: v1alpha1.BatchJobSpec{
		JobID: id, User: "k8s_ml", Partition: "debug", Job: job.Job{Shape: job.Shape{Tasks: 1, CPUsPerTask: 2}},
		Workload: &v1alpha1.Workload{Kind: "Pod", Pods: []v1alpha1.WorkloadPod{{Name: p.Name, UID: p.UID}}}}}
	if err := w.Client.Create(w.Context(), b); err != nil {
		w.Fatal(err)
	}
	w.ApplyJob(b)
	return p, b
}

// stored is the job's status as the API server has it.
func (w *world) stored(b *v1alpha1.BatchJob) v1alpha1.BatchJobStatus {
	n := &v1alpha1.BatchJob{}
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(b), n); err != nil {
		w.Fatal(err)
	}
	return n.Status
}

// A single pod is placed and runs before its object has that status, which is
// written in the end.
func TestStatusOfASinglePodIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, b := w.singlePod("p", 5, "")
		time.Sleep(time.Second)
		synctest.Wait()
		known, _ := w.Job(5)
		if known.Status.State != v1alpha1.StateConfiguring || w.stored(b).State != "" {
			t.Fatalf("%+v, stored %+v", known.Status, w.stored(b))
		}
		p = p.DeepCopy()
		p.Spec.NodeName, p.Status.Phase = known.Status.Allocation.Nodes[0].Name, corev1.PodRunning
		fake.Feed(w.Cluster, p)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if known, _ = w.Job(5); known.Status.State != v1alpha1.StateRunning || w.stored(b).State != "" {
			t.Fatalf("%+v, stored %+v", known.Status, w.stored(b))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := w.stored(b); s.State != v1alpha1.StateRunning || len(s.History) != 2 || s.Allocation == nil {
			t.Errorf("later: %+v", s)
		}
	})
}

// An earlier process had the pod bound, and took with it that it had: the job
// runs where the pod does, on CPUs that no other job has.
func TestBoundPodOfAnEarlierProcessIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i, pod := range []string{"p", "q"} {
			_, b := w.singlePod(pod, int64(5+i), "n2")
			time.Sleep(time.Second)
			synctest.Wait()
			known, _ := w.Job(b.Spec.JobID)
			s := known.Status
			if s.State != v1alpha1.StateRunning || len(s.Allocation.Nodes) != 1 {
				t.Fatalf("%+v", s)
			}
			if a := s.Allocation.Nodes[0]; a.Name != "n2" || a.CPUs != 2 || a.CPUIDs != []string{"0-1", "2-3"}[i] {
				t.Errorf("%+v", a)
			}
		}
	})
}

// assumeJob adds a pod and its job, which has no object yet.
func (w *world) assumeJob(pod string, id int64) (*corev1.Pod, *v1alpha1.BatchJob) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: pod}, Spec: corev1.PodSpec{SchedulerName: wire.SchedulerName}}
	fake.Feed(w.Cluster, p)
	now := metav1.NowMicro()
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w-" + pod}, Spec: v1alpha1.BatchJobSpec{
		JobID: id, User: "k8s_ml", Partition: "debug", SubmitTime: &now, Job: job.Job{Shape: job.Shape{Tasks: 1, CPUsPerTask: 2}},
		Workload: &v1alpha1.Workload{Kind: "Pod", Pods: []v1alpha1.WorkloadPod{{Name: p.Name, UID: p.UID}}}}}
	w.Jobs.AssumeJob(b)
	return p, b
}

// hasObject reports whether the job has an object.
func (w *world) hasObject(b *v1alpha1.BatchJob) bool {
	err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(b), &v1alpha1.BatchJob{})
	return client.IgnoreNotFound(err) == nil && err == nil
}

// A single pod is bound before its job has an object, which gets everything that was
// assumed when it is created.
func TestObjectOfASinglePodIsCreatedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, b := w.assumeJob("p", 5)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		known, _ := w.Job(5)
		if known.Status.State != v1alpha1.StateConfiguring || w.hasObject(b) {
			t.Fatalf("%+v", known.Status)
		}
		p = p.DeepCopy()
		p.Spec.NodeName, p.Status.Phase = known.Status.Allocation.Nodes[0].Name, corev1.PodRunning
		fake.Feed(w.Cluster, p)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if known, _ = w.Job(5); known.Status.State != v1alpha1.StateRunning || w.hasObject(b) {
			t.Fatalf("%+v", known.Status)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := w.stored(b); s.State != v1alpha1.StateRunning || len(s.History) != 2 || s.Allocation == nil {
			t.Errorf("later: %+v", s)
		}
		p = p.DeepCopy()
		p.Status.Phase = corev1.PodSucceeded
		fake.Feed(w.Cluster, p)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if s := w.stored(b); s.State != v1alpha1.StateCompleted || w.Jobs.Len() != 1 {
			t.Errorf("at last: %+v, %d jobs", s, w.Jobs.Len())
		}
	})
}

// The object of a pod that ends soon is created at its end.
func TestObjectOfAShortPodIsCreatedAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, b := w.assumeJob("p", 5)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		known, _ := w.Job(5)
		p = p.DeepCopy()
		p.Spec.NodeName, p.Status.Phase = known.Status.Allocation.Nodes[0].Name, corev1.PodSucceeded
		fake.Feed(w.Cluster, p)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if s := w.stored(b); s.State != v1alpha1.StateCompleted || s.StartTime == nil || s.EndTime == nil {
			t.Errorf("%+v", s)
		}
	})
}

// A pending job gets its object soon, so that the API server shows it. A job whose pod
// is gone gets its object with its final state.
func TestPendingPodGetsAnObjectSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, b := w.assumeJob("p", 5)
		known, _ := w.Job(5)
		n := known.DeepCopy()
		n.Spec.Job.Hold = "user"
		w.Jobs.AssumeJob(n)
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if w.hasObject(b) {
			t.Fatal("the object is created at once")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if known, _ := w.Job(5); known.UID == b.UID || w.stored(b).State != "" {
			t.Errorf("%+v", known)
		}
		p, c := w.assumeJob("q", 6)
		w.Pods.Remove(p, time.Now())
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if s := w.stored(c); s.State != v1alpha1.StateCancelled {
			t.Errorf("its pod is gone: %+v", s)
		}
	})
}
