package keeper

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
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
