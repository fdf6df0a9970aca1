package keeper

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/wire"
)

// TestUnpreparedDevicesAreExplained: a job whose devices the driver of a node cannot prepare is
// requeued with the kubelet's last warning, and only this job avoids the node.
func TestUnpreparedDevicesAreExplained(t *testing.T) {
	b := schedtest.Attempt(v1alpha1.StateConfiguring)
	b.Name, b.Namespace = "j", "user-anna"
	warning := func(name, uid, kind, text string, at time.Time) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.Namespace},
			InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)}, Type: kind, Reason: "Failed",
			Message: text + "\n", LastTimestamp: metav1.NewTime(at)}
	}
	c := fake.Cluster(interceptor.Funcs{}, b,
		warning("a", "p1", corev1.EventTypeWarning, "an older one", t0),
		warning("b", "p1", corev1.EventTypeWarning, "no\nanswer", t0.Add(time.Second)),
		warning("c", "p1", corev1.EventTypeNormal, "no warning", t0.Add(2*time.Second)),
		warning("d", "p2", corev1.EventTypeWarning, "another pod's", t0.Add(2*time.Second)))
	k := newKeeper(c)
	k.Now = func() time.Time { return t0.Add(time.Minute) }
	var node string
	var job int64
	k.Unprepared = func(n string, j int64) { node, job = n, j }
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		t.Fatal(err)
	}
	c.ApplyJob(b)
	for _, name := range []string{"n1", "n2"} {
		fake.Feed(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	fake.Feed(c, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p1", Namespace: b.Namespace, UID: "p1",
			Labels: map[string]string{wire.LabelJobID: "7", wire.LabelAttempt: "2"}},
		Spec: corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodPending,
			ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"},
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(t0)}}},
	})
	if err := k.reconcile(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	got, _ := c.Job(7)
	want := "pod p1 on n1: its devices were not prepared within 1m0s: Failed: no answer"
	if got.Status.Final != v1alpha1.StatePending || got.Status.Message != want {
		t.Errorf("%s, then %s: %q", got.Status.State, got.Status.Final, got.Status.Message)
	}
	if node != "n1" || job != 7 {
		t.Errorf("job %d avoids %q", job, node)
	}
}
