package control

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// The index of a pod in its job is correct in small and large workloads, and after the
// members changed.
func TestWorkloadOfReturnsTheIndexOfThePod(t *testing.T) {
	c := &Cluster{Jobs: NewJobs()}
	for rv, pods := range []int{1, manyMembers, 40, 39} {
		b := version("a", 1, rv+1)
		b.Spec.Workload = &v1alpha1.Workload{Group: "group ml/g"}
		for i := range pods {
			b.Spec.Workload.Pods = append(b.Spec.Workload.Pods, v1alpha1.WorkloadPod{UID: types.UID(fmt.Sprint("p", pods-i))})
		}
		c.Jobs.Apply(b)
		for i, p := range b.Spec.Workload.Pods {
			if _, at, ok := c.WorkloadOf(p.UID); !ok || at != i || !c.HasWorkload(p.UID) {
				t.Fatalf("pod %s of %d: %d %v", p.UID, pods, at, ok)
			}
		}
	}
	if _, _, ok := c.WorkloadOf("p40"); ok || c.HasWorkload("p40") {
		t.Error("a pod that is not a member any more has an index")
	}
}
