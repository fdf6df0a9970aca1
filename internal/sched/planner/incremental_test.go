package planner

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// following makes the planner follow changes however short a plan takes.
func following(t *testing.T) {
	benchThreshold = 0
	t.Cleanup(func() { benchThreshold = incrementalThreshold })
}

// The tests of a planner that plans everything at each change hold for one that follows
// changes.
func TestPlannerWhileFollowingChanges(t *testing.T) {
	following(t)
	t.Run("started", TestChangeIsPlannedAndStarted)
	t.Run("own starts", TestOwnStartsCountImmediately)
	t.Run("failed", TestFailedStartIsTriedAgain)
	t.Run("changed", TestChangedJobIsNotStarted)
	t.Run("due", TestPlansAgainWhenAStartIsDue)
	t.Run("delayed", TestDelayedDependencyIsSatisfiedInTime)
	t.Run("refusing", TestRefusingNodeGetsNoJobForAWhile)
	t.Run("questions", TestQueriesWhilePlanning)
	t.Run("preemption", TestPreemption)
	t.Run("preemption by an array", TestPreemptionByAnArray)
}

// Cycles that follow changes start jobs, and plans in the background give the others a reason
// and a start. The Incremental is made only once.
func TestFollowing(t *testing.T) {
	following(t)
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
		settle()
		for id := range int64(4) {
			b.submit(id+1, 4)
		}
		settle()
		b.want(v1alpha1.StateConfiguring, "", "", "")
		first := b.incremental
		time.Sleep(2 * time.Second)
		synctest.Wait()
		second, _ := b.Planned(2)
		third, _ := b.Planned(3)
		if second.Reason != "Resources" || third.Reason != "Priority" || !third.Start.After(second.Start) ||
			len(third.Nodes) != 1 {
			t.Errorf("planned %+v and %+v", second, third)
		}
		for id := int64(1); id < 4; id++ {
			b.end(id)
			settle()
			if s := b.state(id + 1); s != v1alpha1.StateConfiguring {
				t.Errorf("job %d is %q after job %d ended", id+1, s, id)
			}
		}
		stop()
		if b.incremental == nil || b.incremental != first {
			t.Error("a new Incremental was made")
		}
		if n := b.Stats(); n.Starts != 4 {
			t.Errorf("%d starts counted", n.Starts)
		}
	})
}

// A node that is cordoned, lost or available again is considered without a new Incremental.
func TestFollowingSeesNodes(t *testing.T) {
	following(t)
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run()
		settle()
		b.submit(1, 4)
		settle()
		b.want(v1alpha1.StateConfiguring)
		first := b.incremental
		b.end(1)
		for id, makeUnavailable := range map[int64]func(*corev1.Node){
			2: func(n *corev1.Node) {
				n.Spec.Unschedulable = true
				n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
			},
			3: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		} {
			n := aNode()
			makeUnavailable(n)
			fake.Feed(b.cluster, n)
			b.submit(id, 4)
			settle()
			if s := b.state(id); s != "" {
				t.Errorf("job %d is %q, and its node is not available", id, s)
			}
			fake.Feed(b.cluster, aNode())
			settle()
			if s := b.state(id); s != v1alpha1.StateConfiguring {
				t.Errorf("job %d is %q, and its node is available again", id, s)
			}
			b.end(id)
		}
		stop()
		if b.incremental != first {
			t.Error("a new Incremental was made")
		}
	})
}
