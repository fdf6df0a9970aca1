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

// TestJobsOutliveADisruption: nodes are lost soon after they have become unreachable, but not
// while most nodes are.
func TestJobsOutliveADisruption(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	k := newKeeper(c)
	now := t0
	k.Now = func() time.Time { return now }
	for i := range 5 {
		c.Nodes.Apply(nodeWith(fmt.Sprint("n", i), corev1.ConditionTrue, t0))
	}
	fake.AddJob(t, c, 7, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State = v1alpha1.StateRunning
		b.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n0"}, {Name: "n4"}}}
	})
	b, _ := c.Job(7)
	expect := func(what string, after time.Duration, lost bool, next time.Duration) {
		t.Helper()
		now = t0.Add(after)
		var due time.Duration
		if at := k.nextLost(b); !at.IsZero() {
			due = at.Sub(t0)
		}
		if k.nodeLost("n0") != lost || due != next {
			t.Errorf("%s: lost %v, next %v; want %v, %v", what, k.nodeLost("n0"), due, lost, next)
		}
	}
	expect("it responds", 0, false, 0)
	c.Nodes.Apply(nodeWith("n0", corev1.ConditionUnknown, t0.Add(10*time.Second)))
	expect("it has just become unreachable", 10*time.Second, false, 15*time.Second)
	expect("it alone", 15*time.Second, true, 0)
	c.Nodes.Apply(nodeWith("n1", corev1.ConditionUnknown, t0.Add(11*time.Second)))
	expect("two of five", 15*time.Second, true, 0)
	c.Nodes.Apply(nodeWith("n2", corev1.ConditionUnknown, t0.Add(12*time.Second)))
	expect("three of five", 15*time.Second, false, 10*time.Second+5*time.Minute)
	expect("three of five for long", 10*time.Second+5*time.Minute, true, 0)
	expect("three of five", 15*time.Second, false, 10*time.Second+5*time.Minute)
	for k.queue.Len() > 0 {
		id, _ := k.queue.Get()
		k.queue.Done(id)
	}
	c.Nodes.Apply(nodeWith("n1", corev1.ConditionTrue, t0.Add(13*time.Second)))
	expect("two of five remain", 15*time.Second, false, 75*time.Second)
	expect("two of five remain for long", 75*time.Second, true, 0)
	if k.queue.Len() != 1 {
		t.Errorf("%d jobs are queued when the disruption is over, want the one on n0", k.queue.Len())
	}
	c.Nodes.Remove(nodeWith("n0", corev1.ConditionUnknown, t0.Add(10*time.Second)), now)
	expect("its object is gone", 15*time.Second, true, 0)
	if k.reach.all != 4 || k.reach.unreachable != 1 {
		t.Errorf("the nodes are counted as %+v, want 1 of 4", k.reach)
	}
	c.Nodes.Apply(nodeWith("n4", corev1.ConditionUnknown, t0.Add(80*time.Second)))
	now = t0.Add(85 * time.Second)
	if !k.nodeLost("n4") {
		t.Error("a node that became unreachable after the disruption is not lost as usual")
	}
}
