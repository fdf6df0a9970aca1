package decide

import (
	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// SetCPUs sets the CPUs of a job on a node whose agent may run on the reported ones: those, if
// they are as many as the job has, because then the kubelet's CPU manager has chosen CPUs
// for the pod; otherwise the planned ones stay. A false report harms nobody but its own
// job: the number of CPUs that the plan counts does not change.
func SetCPUs(n *v1alpha1.NodeAllocation, reported string) {
	set, err := backfill.ParseCPUSet(reported)
	if err == nil && n.CPUIDs != "" && n.Sharers <= 1 && set.Len() == int(n.CPUs) {
		n.CPUIDs, n.PodCPUs = set.String(), true
	}
}
