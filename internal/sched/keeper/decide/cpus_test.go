package decide

import (
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// TestSetCPUs checks which CPUs a job is recorded to have after its agent has reported.
func TestSetCPUs(t *testing.T) {
	for _, c := range []struct {
		name, planned  string
		cpus, sharers  int32
		reported, want string
		pod            bool
	}{
		{"the kubelet chose others", "0-1", 2, 0, "4,6", "4,6", true},
		{"the pod may use all of the node", "0-1", 2, 0, "0-7", "0-1", false},
		{"the job has the node", "0-7", 8, 0, "0-7", "0-7", true},
		{"fewer than the job has", "0-1", 2, 0, "5", "0-1", false},
		{"not reported", "0-1", 2, 0, "", "0-1", false},
		{"no list of CPUs", "0-1", 2, 0, "7-99999999,x", "0-1", false},
		{"shared with other jobs", "0-1", 2, 4, "4,6", "0-1", false},
		{"not planned", "", 2, 0, "4,6", "", false},
	} {
		n := v1alpha1.NodeAllocation{CPUs: c.cpus, CPUIDs: c.planned, Sharers: c.sharers}
		if SetCPUs(&n, c.reported); n.CPUIDs != c.want || n.PodCPUs != c.pod {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, n.CPUIDs, n.PodCPUs, c.want, c.pod)
		}
	}
}
