package planner

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// following has the planner follow changes however quickly everything could be
// planned.
func following(t *testing.T) {
	benchThreshold = 0
	t.Cleanup(func() { benchThreshold = incrementalThreshold })
}

// What holds where everything is planned at each change holds where changes are
// followed.
func TestTheSameWhileFollowing(t *testing.T) {
	following(t)
	t.Run("started", TestAChangeIsPlannedAndStarted)
	t.Run("own starts", TestOwnStartsHoldAtOnce)
	t.Run("failed", TestAFailedStartIsTriedAgain)
	t.Run("changed", TestAChangedJobIsNotStarted)
	t.Run("due", TestItPlansAgainWhenAStartIsDue)
	t.Run("delayed", TestADelayedDependencyIsMetInTime)
	t.Run("refusing", TestARefusingNodeIsLeftAloneForAWhile)
	t.Run("questions", TestQuestionsWhilePlanning)
	t.Run("preemption", TestPreemption)
	t.Run("preemption by an array", TestPreemptionByAnArray)
}

// Jobs are started and others told why they wait and when they will start, by
// passes and plans that know nothing of each other; a view is made only once.
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
			t.Error("the view was made anew")
		}
		if n := b.Stats(); n.Starts != 4 {
			t.Errorf("%d starts counted", n.Starts)
		}
	})
}

// A node that is cordoned, lost or comes back is seen without a new view.
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
		for id, away := range map[int64]func(*corev1.Node){
			2: func(n *corev1.Node) {
				n.Spec.Unschedulable = true
				n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
			},
			3: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
		} {
			n := aNode()
			away(n)
			fake.Feed(b.cluster, n)
			b.submit(id, 4)
			settle()
			if s := b.state(id); s != "" {
				t.Errorf("job %d is %q though its node is away", id, s)
			}
			fake.Feed(b.cluster, aNode())
			settle()
			if s := b.state(id); s != v1alpha1.StateConfiguring {
				t.Errorf("job %d is %q though its node is back", id, s)
			}
			b.end(id)
		}
		stop()
		if b.incremental != first {
			t.Error("the view was made anew")
		}
	})
}
