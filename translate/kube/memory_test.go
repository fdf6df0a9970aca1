package kube_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/kube"
)

// TestLeastMemory checks that a pod requests the memory that the job requests, and that its limit
// is at least 30 MiB, which the agent needs.
func TestLeastMemory(t *testing.T) {
	for mib, want := range map[int64][2]int64{1: {1, 30}, 29: {29, 30}, 30: {30, 30}, 31: {31, 31}, 0: {0, 0}} {
		in := base()
		in.Job.Status.Allocation = nodes(node("n1", 1, mib))
		_, set, err := kube.Objects(in)
		if err != nil {
			t.Fatal(err)
		}
		r := set.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Resources
		if got := [2]int64{r.Requests.Memory().Value() >> 20, r.Limits.Memory().Value() >> 20}; got != want {
			t.Errorf("%d MiB: requests and limit are %v MiB, want %v", mib, got, want)
		}
	}
}
