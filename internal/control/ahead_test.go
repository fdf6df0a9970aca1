package control

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// single is a job that stands for one pod.
func single(rv int) *v1alpha1.BatchJob {
	b := version("a", 1, rv)
	b.Spec.Workload = &v1alpha1.Workload{Pods: []v1alpha1.WorkloadPod{{UID: "p"}}}
	return b
}

// What a job is here stays while its object, in whatever newer version, has no
// status; then the object counts.
func TestAJobAheadOfItsObject(t *testing.T) {
	c := &Cluster{Jobs: NewJobs()}
	first := single(5)
	c.Jobs.Apply(first)
	if !MayRunAhead(first) {
		t.Fatal("a single pod that waits may not run ahead")
	}
	placed := single(5)
	placed.Status = v1alpha1.BatchJobStatus{State: v1alpha1.StateConfiguring, Attempt: 1}
	if !c.GoAhead(first, placed) || c.GoAhead(first, placed) {
		t.Fatal("the place of an older version was taken, or none was")
	}
	c.Jobs.Apply(single(5))
	held := single(6)
	held.Spec.Cancel = &v1alpha1.CancelRequest{By: "anna"}
	c.Jobs.Apply(held)
	b, _ := c.Job(1)
	if s := b.Status; s.State != v1alpha1.StateConfiguring || !s.Unwritten || b.Spec.Cancel == nil || b.ResourceVersion != "6" {
		t.Errorf("%+v", b)
	}
	if held.Status.State != "" {
		t.Error("an object of the watch was changed")
	}
	written := single(7)
	written.Status.State = v1alpha1.StateCompleted
	c.Jobs.Apply(written)
	if b, _ := c.Job(1); b.Status.State != v1alpha1.StateCompleted || b.Status.Unwritten {
		t.Errorf("%+v", b.Status)
	}
}

func TestOnlySinglePodsWithoutAStatusRunAhead(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.BatchJob){
		"a job of commands": func(b *v1alpha1.BatchJob) { b.Spec.Workload = nil },
		"a group":           func(b *v1alpha1.BatchJob) { b.Spec.Workload.Group = "group ml/g" },
		"two pods":          func(b *v1alpha1.BatchJob) { b.Spec.Workload.Pods = make([]v1alpha1.WorkloadPod, 2) },
		"one that was back": func(b *v1alpha1.BatchJob) { b.Status.State = v1alpha1.StatePending },
		"one that has run":  func(b *v1alpha1.BatchJob) { b.Status.Restarts = 1 },
	} {
		b := single(1)
		if change(b); MayRunAhead(b) {
			t.Errorf("%s may run ahead of its object", name)
		}
	}
}

// The place of a pod is right in small and large workloads, and after the
// members changed.
func TestPlacesOfPodsInTheirJob(t *testing.T) {
	c := &Cluster{Jobs: NewJobs()}
	for rv, pods := range []int{1, manyMembers, 40, 39} {
		b := version("a", 1, rv+1)
		b.Spec.Workload = &v1alpha1.Workload{Group: "group ml/g"}
		for i := range pods {
			b.Spec.Workload.Pods = append(b.Spec.Workload.Pods, v1alpha1.WorkloadPod{UID: types.UID(fmt.Sprint("p", pods-i))})
		}
		c.Jobs.Apply(b)
		for i, p := range b.Spec.Workload.Pods {
			if _, at, ok := c.WorkloadOf(p.UID); !ok || at != i || !c.StoodFor(p.UID) {
				t.Fatalf("pod %s of %d: %d %v", p.UID, pods, at, ok)
			}
		}
	}
	if _, _, ok := c.WorkloadOf("p40"); ok || c.StoodFor("p40") {
		t.Error("a pod that is no member any more has a place")
	}
}
