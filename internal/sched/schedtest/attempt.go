package schedtest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// At returns a time as statuses have it.
func At(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t)
	return &m
}

// Attempt returns job 7 in its second attempt, on n1 and n2, in the given state since
// Now. If it is CONFIGURING, its agents have not reported yet.
func Attempt(state string, change ...func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	nodes := []v1alpha1.NodeAllocation{{Name: "n1", Address: "a:1"}, {Name: "n2", Address: "b:1"}}
	if state == v1alpha1.StateConfiguring {
		nodes[0].Address, nodes[1].Address = "", ""
	}
	b := &v1alpha1.BatchJob{
		Spec: v1alpha1.BatchJobSpec{JobID: 7},
		Status: v1alpha1.BatchJobStatus{
			State: state, Attempt: 2, StartTime: At(Now), TimeLimit: 10,
			Allocation: &v1alpha1.Allocation{Nodes: nodes},
		},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

// Cancelled makes a job one that its user cancelled.
func Cancelled(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{} }

// Requeued makes a job one that its user requeued.
func Requeued(b *v1alpha1.BatchJob) { b.Spec.Requeues = 1 }

// NoRequeue makes a job one that may not be requeued.
func NoRequeue(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Requeue = new(bool) }

// Representing makes a job represent two pods of a group.
func Representing(group string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		NoRequeue(b)
		b.Spec.Workload = &v1alpha1.Workload{Group: group, Pods: []v1alpha1.WorkloadPod{{UID: "0"}, {UID: "1"}}}
		b.Status.History = []v1alpha1.StateChange{{State: v1alpha1.StatePending, At: *At(Now)}}
	}
}
