package query

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/wire"
)

// NodeChanged reports whether two versions of a node differ in what snapshots depend
// on. The regular reports of kubelets do not; one of the versions may be nil.
func NodeChanged(old, now *corev1.Node) bool {
	if old == nil || now == nil {
		return true
	}
	return nodeinfo.Unavailable(old) != nodeinfo.Unavailable(now) ||
		old.Status.NodeInfo.BootID != now.Status.NodeInfo.BootID ||
		!equality.Semantic.DeepEqual(old.Spec, now.Spec) ||
		!equality.Semantic.DeepEqual(old.Labels, now.Labels) ||
		!equality.Semantic.DeepEqual(old.Annotations, now.Annotations) ||
		!equality.Semantic.DeepEqual(old.Status.Allocatable, now.Status.Allocatable) ||
		!equality.Semantic.DeepEqual(old.Status.Capacity, now.Status.Capacity)
}

// PodChange reports whether two versions of a pod differ in what snapshots depend on:
// the node of the pod and whether it has terminated. Where the pods of a job are does
// not matter while the job holds its allocation. jobID is the job that the pod's label
// names, if any. One of the versions may be nil.
func PodChange(c *control.Cluster, old, now *corev1.Pod) (jobID int64, ok bool) {
	if old != nil && now != nil && old.Spec.NodeName == now.Spec.NodeName &&
		snapshot.IsTerminated(old) == snapshot.IsTerminated(now) {
		return 0, false
	}
	pod := now
	if pod == nil {
		pod = old
	}
	jobID = snapshot.PodJobID(pod)
	b := accountingJob(c, pod, jobID)
	switch {
	case b != nil && b.HoldsAllocation():
		return jobID, false
	case b == nil && jobID == 0 && pod.Spec.NodeName == "":
		return 0, false
	}
	return jobID, true
}

// accountingJob returns the job whose allocation accounts for the pod while the job
// holds it, or nil. jobID is the number in the pod's label.
func accountingJob(c *control.Cluster, pod *corev1.Pod, jobID int64) *v1alpha1.BatchJob {
	if jobID == 0 {
		b, _, _ := c.WorkloadOf(pod.UID)
		return b
	}
	b, ok := c.Job(jobID)
	if !ok || b.Namespace != pod.Namespace || strconv.Itoa(int(b.Status.Attempt)) != pod.Labels[wire.LabelAttempt] {
		return nil
	}
	return b
}
