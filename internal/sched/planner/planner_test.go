package planner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

func TestChangeIsPlannedAndStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.run()()
		settle()
		b.submit(1, 2)
		settle()
		b.want(v1alpha1.StateConfiguring)
		o, _ := b.cluster.Job(1)
		if a := o.Status.Allocation; a == nil || len(a.Nodes) != 1 || a.Nodes[0].Name != "n1" || a.Nodes[0].CPUs != 2 ||
			o.Status.Attempt != 1 {
			t.Errorf("%+v", o.Status)
		}
		if _, ok := b.Planned(1); ok {
			t.Error("a started job is still planned")
		}
	})
}

// No watch feeds these stores: the planner knows the jobs that it has started from its own
// writes alone.
func TestOwnStartsCountImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.run()()
		for id := range int64(3) {
			b.submit(id+1, 4)
		}
		settle()
		b.want(v1alpha1.StateConfiguring, "", "")
		p, ok := b.Planned(2)
		if !ok || p.Reason != "Resources" || p.Start.IsZero() || len(p.Nodes) != 1 {
			t.Errorf("planned %+v, %v", p, ok)
		}
		if last, _ := b.Planned(3); !last.Start.After(p.Start) || last.Priority >= p.Priority {
			t.Errorf("planned %+v after %+v", last, p)
		}
		b.end(1)
		settle()
		b.want(v1alpha1.StateCompleted, v1alpha1.StateConfiguring, "")
		if b.wrote != 2 {
			t.Errorf("%d placements written for two starts", b.wrote)
		}
	})
}

// No object changes when the delay of a dependency (after:ID+N) ends: the planner plans again
// by itself.
func TestDelayedDependencyIsSatisfiedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.run()()
		b.submit(1, 1)
		settle()
		b.setStatus(1, func(s *v1alpha1.BatchJobStatus) { s.State = v1alpha1.StateRunning })
		started := time.Now()
		time.Sleep(40 * time.Second) // so that no regular plan is due in time
		b.submit(2, 1, func(j *job.Job) {
			j.Dependencies.Items = []job.Dependency{{Type: "after", JobID: 1, Delay: 2}}
		})
		time.Sleep(time.Until(started.Add(118 * time.Second)))
		b.want(v1alpha1.StateRunning, "")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		b.want(v1alpha1.StateRunning, v1alpha1.StateConfiguring)
	})
}

func TestChangesDuringAPlanCauseOnePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		busy, release := make(chan struct{}), make(chan struct{})
		b.hook = func(int) error { close(busy); <-release; return nil }
		b.submit(1, 4)
		defer b.run()()
		<-busy
		for i := range 100 {
			fake.Feed(b.cluster, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}})
		}
		close(release)
		settle()
		if n := b.Stats().Cycles; n != 2 {
			t.Errorf("%d plans, want the first and one for all changes", n)
		}
	})
}

func TestPauseGrowsWithThePlan(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: minPause, 20 * time.Millisecond: 160 * time.Millisecond, 5 * time.Second: maxPause,
	} {
		if got := pauseAfter(took); got != want {
			t.Errorf("after a plan of %v: %v, want %v", took, got, want)
		}
	}
}

func TestFailedStartIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.hook = func(n int) error {
			if n < 3 {
				return apierrors.NewForbidden(schema.GroupResource{}, "j", errors.New("out of order"))
			}
			return nil
		}
		b.submit(1, 4)
		defer b.run()()
		settle()
		b.want("")
		time.Sleep(3 * time.Second)
		b.want(v1alpha1.StateConfiguring)
		if b.wrote != 3 {
			t.Errorf("%d attempts", b.wrote)
		}
	})
}

// A job that was changed since the snapshot is not started: the next plan considers the change.
func TestChangedJobIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		held := false
		b.hook = func(int) error {
			if held {
				return nil
			}
			held = true
			known, _ := b.cluster.Job(1)
			o := known.DeepCopy()
			o.Spec.Job.Hold = "user"
			return b.cluster.Client.Update(context.Background(), o) // the watch is late
		}
		b.submit(1, 4)
		defer b.run()()
		settle()
		time.Sleep(3 * time.Second)
		b.want("")
		if b.wrote != 1 {
			t.Errorf("%d attempts to start a job whose change has not arrived, want 1", b.wrote)
		}
	})
}

func TestPlansAgainWhenAStartIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.run()()
		begin := time.Now().Add(90 * time.Second).Truncate(time.Second)
		b.submit(1, 4, func(j *job.Job) { j.Time.Begin = begin.Unix() })
		time.Sleep(time.Until(begin) - time.Millisecond)
		synctest.Wait()
		b.want("")
		settle()
		b.want(v1alpha1.StateConfiguring)
	})
}

// An idle node that a job waits for is shown as planned; one that is in use is
// not, and neither is any once the job is gone.
func TestPlannedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.run()()
		second := aNode()
		second.Name = "n2"
		b.cluster.Nodes.Apply(second)
		b.submit(1, 4)
		settle()
		b.submit(2, 4, func(j *job.Job) { j.Shape.MinNodes, j.Shape.Tasks = 2, 2 })
		settle()
		flags := func() string {
			var out []string
			for _, n := range b.NodesView() {
				out = append(out, n.Name+n.State+strings.Join(n.Flags, ""))
			}
			return strings.Join(out, " ")
		}
		if got := flags(); got != "n1ALLOCATED n2IDLEPLANNED" {
			t.Errorf("the nodes are %s", got)
		}
		b.end(2)
		settle()
		if got := flags(); got != "n1ALLOCATED n2IDLE" {
			t.Errorf("the nodes are %s when no job waits", got)
		}
	})
}

func TestChangesThatNeedANewPlan(t *testing.T) {
	b := newBench(t)
	woken := func() bool {
		select {
		case <-b.changes.wake:
			return true
		default:
			return false
		}
	}
	b.submit(1, 1)
	held, _ := b.cluster.Job(1)
	held = held.DeepCopy()
	held.Status = v1alpha1.BatchJobStatus{
		State:      v1alpha1.StateConfiguring,
		Attempt:    1,
		Allocation: &v1alpha1.Allocation{},
	}
	fake.Feed(b.cluster, held)
	woken()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	bound := pod.DeepCopy()
	bound.Spec.NodeName = "n1"
	own := bound.DeepCopy()
	own.Name, own.Namespace, own.Labels = "own", held.Namespace, map[string]string{
		wire.LabelJobID:   "1",
		wire.LabelAttempt: "1",
	}
	old := own.DeepCopy()
	old.Name, old.Labels = "old", map[string]string{wire.LabelJobID: "1", wire.LabelAttempt: "0"}
	for _, tt := range []struct {
		what   string
		object client.Object
		want   bool
	}{
		{"a node's regular report", aNode(), false},
		{"a drained node", func() client.Object { n := aNode(); n.Spec.Unschedulable = true; return n }(), true},
		{"a node that is available again", aNode(), true},
		{"a node that does not respond", func() client.Object { n := aNode(); n.Status.Conditions[0].Status = corev1.ConditionUnknown; return n }(), true},
		{"a new pod", pod, false},
		{"a bound pod", bound, true},
		{"a pod's report", func() client.Object { p := bound.DeepCopy(); p.Status.PodIP = "10.0.0.1"; return p }(), false},
		{"a pod that ended", func() client.Object { p := bound.DeepCopy(); p.Status.Phase = corev1.PodSucceeded; return p }(), true},
		{"a bound pod of a job with an allocation", own, false},
		{"a bound pod of an earlier attempt", old, true},
		{"other settings", fake.Settings(v1alpha1.ClusterSpec{}), true},
		{"a partition", fake.Partition("debug", nil), true},
	} {
		fake.Feed(b.cluster, tt.object)
		if got := woken(); got != tt.want {
			t.Errorf("%s: a new plan is due: %v, want %v", tt.what, got, tt.want)
		}
	}
}

func TestFeasibleUsesTheNewestNodes(t *testing.T) {
	b := newBench(t)
	ask := &v1alpha1.BatchJob{
		Spec: v1alpha1.BatchJobSpec{JobID: 9, Partition: "debug", Job: job.Job{Shape: job.Shape{CPUsPerTask: 6}}},
	}
	if b.Feasible(ask) == nil {
		t.Error("a job of 6 CPUs is feasible on a node of 4")
	}
	big := aNode()
	big.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("8")
	fake.Feed(b.cluster, big)
	if err := b.Feasible(ask); err != nil {
		t.Errorf("a job of 6 CPUs on a node of 8: %v", err)
	}
}

// For the race detector: queries from several goroutines while plans are made.
func TestQueriesWhilePlanning(t *testing.T) {
	b := newBench(t)
	defer b.run()()
	const jobs = 40
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				b.Planned(int64(i % jobs))
				b.NodesView()
				b.PartitionsView()
				_ = b.Feasible(&v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: 99, Partition: "debug"}})
				fake.Feed(b.cluster, fake.Partition(fmt.Sprint("p", w), nil))
			}
		})
	}
	for id := range int64(jobs) {
		b.submit(id+1, 1)
	}
	wg.Wait()
	for id := int64(1); id <= jobs; id++ {
		eventually.Holds(t, fmt.Sprintf("job %d has started", id), func() bool {
			o, _ := b.cluster.Job(id)
			return o.Status.State == v1alpha1.StateConfiguring
		})
		b.end(id)
	}
}

// A node whose kubelet cannot align the CPUs of a job gets other jobs. The job gets another node;
// if there is none, it is tried again after a while.
func TestRefusedJobGetsAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.run()()
		settle()
		b.Refused("n1", 2)
		b.submit(1, 1)
		b.submit(2, 1)
		settle()
		b.want(v1alpha1.StateConfiguring, "")
		time.Sleep(minRefusal + 2*time.Second)
		synctest.Wait()
		b.want(v1alpha1.StateConfiguring, v1alpha1.StateConfiguring)
	})
}

// A node that did not prepare the devices of a job is avoided by that job only, and its trouble is
// known for a while.
func TestUnpreparedDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.run()()
		settle()
		b.DevicesFailed("n1", 2)
		b.DevicesFailed("n1", 2)
		b.DevicesFailed("n1", 3)
		b.submit(1, 1)
		b.submit(2, 1)
		settle()
		b.want(v1alpha1.StateConfiguring, "")
		if n := b.refusals.currentUnprepared(time.Now())["n1"]; n != 2 {
			t.Errorf("%d jobs", n)
		}
		if all := b.refusals.currentUnprepared(time.Now().Add(snapshot.UnpreparedMemory + time.Second)); len(all) > 0 {
			t.Errorf("later: %v", all)
		}
	})
}

// A node whose kubelet refused a pod gets no job for a while, and twice as long after the next
// refusal. The pods of one gang count once. After that time the job starts by itself.
func TestRefusingNodeGetsNoJobForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer b.run()()
		settle()
		b.Refused("n1", 0)
		b.Refused("n1", 0)
		b.submit(1, 4)
		time.Sleep(minRefusal - time.Second)
		synctest.Wait()
		b.want("")
		time.Sleep(3 * time.Second)
		b.want(v1alpha1.StateConfiguring)
		b.end(1)
		b.Refused("n1", 0)
		b.submit(2, 4)
		time.Sleep(2*minRefusal - 2*time.Second)
		synctest.Wait()
		b.want(v1alpha1.StateCompleted, "")
		time.Sleep(5 * time.Second)
		b.want(v1alpha1.StateCompleted, v1alpha1.StateConfiguring)
	})
}
