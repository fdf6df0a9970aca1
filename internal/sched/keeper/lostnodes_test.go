package keeper

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// nodeWith returns a node whose Ready condition has had the status since then.
func nodeWith(name string, ready corev1.ConditionStatus, since time.Time) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		ResourceVersion: fmt.Sprint(since.Unix())}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(since)}}
	return n
}

// A node is lost when it has been unreachable for SlurmdTimeout, or when its object is deleted.
func TestNodeIsLostAfterSlurmdTimeout(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	k := newKeeper(c)
	now := t0
	k.Now = func() time.Time { return now }
	for i := range 2 {
		c.Nodes.Apply(nodeWith(fmt.Sprint("n", i), corev1.ConditionTrue, t0))
	}
	fake.AddJob(t, c, 7, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State = v1alpha1.StateRunning
		b.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n0"}, {Name: "n1"}}}
	})
	b, _ := c.Job(7)
	expect := func(what string, after time.Duration, unreachable, lost bool, next time.Duration) {
		t.Helper()
		now = t0.Add(after)
		var due time.Duration
		if at := k.nextLost(b); !at.IsZero() {
			due = at.Sub(t0)
		}
		if u, l := k.nodeUnreachable("n0"), k.nodeLost("n0"); u != unreachable || l != lost || due != next {
			t.Errorf("%s: unreachable %v, lost %v, next %v; want %v, %v, %v", what, u, l, due, unreachable, lost, next)
		}
	}
	queued := func(what string, want int) {
		t.Helper()
		got := k.queue.Len()
		for k.queue.Len() > 0 {
			id, _ := k.queue.Get()
			k.queue.Done(id)
		}
		if got != want {
			t.Errorf("%s: %d jobs are queued, want %d", what, got, want)
		}
	}
	timeout := func(seconds int32) {
		fake.Feed(c, fake.Settings(v1alpha1.ClusterSpec{SlurmdTimeout: &seconds}))
	}
	expect("it responds", 0, false, false, 0)
	queued("at first", 1)
	c.Nodes.Apply(nodeWith("n0", corev1.ConditionUnknown, t0.Add(10*time.Second)))
	queued("it is unreachable", 1)
	expect("it has just become unreachable", 10*time.Second, true, false, 310*time.Second)
	expect("for five minutes", 310*time.Second, true, true, 0)
	timeout(20)
	queued("it is lost earlier", 1)
	expect("with another SlurmdTimeout", 10*time.Second, true, false, 30*time.Second)
	expect("after which it is lost", 30*time.Second, true, true, 0)
	timeout(20)
	queued("other settings change", 0)
	timeout(0)
	expect("it never is", 100*time.Hour, true, false, 0)
	c.Nodes.Remove(nodeWith("n0", corev1.ConditionUnknown, t0.Add(10*time.Second)), now)
	expect("its object is gone", 15*time.Second, true, true, 0)
}
