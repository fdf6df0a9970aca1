package keeper

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/keeper/decide"
	"github.com/berth-hpc/berth/internal/wire"
)

// A pod that was read, and deleted before the watch delivered it, does not keep its job from
// ending: the watch may never report its deletion.
func TestReadPodThatIsGoneIsForgotten(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	k := newKeeper(c)
	fake.AddJob(t, c, 7, "anna", func(b *v1alpha1.BatchJob) { b.Status.Attempt = 1 })
	b, _ := c.Job(7)
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name, UID: types.UID(name),
			Labels: map[string]string{wire.LabelJobID: "7", wire.LabelAttempt: "1"}}}
	}
	for _, name := range []string{"stays", "goes"} {
		if err := c.Client.Create(t.Context(), pod(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.readPods(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if f := k.facts(b); len(f.Pods) != 2 || !f.Unconfirmed {
		t.Fatalf("%d pods, unconfirmed %v; want 2 that are unconfirmed", len(f.Pods), f.Unconfirmed)
	}
	if err := c.Client.Delete(t.Context(), pod("goes")); err != nil {
		t.Fatal(err)
	}
	if err := k.readPods(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if f := k.facts(b); len(f.Pods) != 1 || f.Pods[0].Name != "stays" {
		t.Errorf("pods %v, want the one that exists", f.Pods)
	}
}

// A pod of a workload that was bound, as the watch does not say yet, is not deleted because the
// time for its binding is over.
func TestPodBoundBehindALateWatchStays(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	k := newKeeper(c)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", UID: "p"},
		Spec: corev1.PodSpec{SchedulerName: wire.SchedulerName}}
	bound := p.DeepCopy()
	bound.Spec.NodeName = "n1"
	if err := c.Client.Create(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	p.ResourceVersion = "0"
	c.Pods.Apply(p)
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"}, Spec: v1alpha1.BatchJobSpec{JobID: 5,
		Workload: &v1alpha1.Workload{Kind: "Pod", Pods: []v1alpha1.WorkloadPod{{Name: "p", UID: "p"}}}}}
	b.Status.State = v1alpha1.StateConfiguring
	late := decide.Action{Kind: decide.End, Outcome: decide.Outcome{Final: v1alpha1.StatePending}}
	if again, err := k.act(t.Context(), b, late); !again || err != nil {
		t.Fatalf("%v, %v; want another decision", again, err)
	}
	if pods := k.pods(b); len(pods) != 1 || pods[0].Spec.NodeName != "n1" || b.Status.State != v1alpha1.StateConfiguring {
		t.Errorf("%d pods, %+v; want the bound one", len(pods), b.Status)
	}
	if newer, err := k.readWorkload(t.Context(), b, late.Outcome); newer || err != nil {
		t.Errorf("%v, %v after the pods were read", newer, err)
	}
	p = p.DeepCopy()
	p.UID = "earlier" // and was replaced by the bound one, which is no member
	c.Pods.Remove(bound, t0)
	c.Pods.Apply(p)
	b.Spec.Workload.Pods[0].UID = p.UID
	if newer, err := k.readWorkload(t.Context(), b, late.Outcome); newer || err != nil {
		t.Errorf("%v, %v for a pod that was replaced", newer, err)
	}
}
