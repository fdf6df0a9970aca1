package keeper

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t)
	return &m
}

// aJob returns job 7 in its second attempt, on n1 and n2, in the given state since t0.
func aJob(state string, change ...func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{
		Spec: v1alpha1.BatchJobSpec{JobID: 7},
		Status: v1alpha1.BatchJobStatus{
			State: state, Attempt: 2, StartTime: at(t0), TimeLimit: 10,
			Allocation: &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{
				{Name: "n1", Address: "a:1"}, {Name: "n2", Address: "b:1"}}},
		},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func cancelled(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{} }
func requeued(b *v1alpha1.BatchJob)  { b.Spec.Requeues = 1 }
func noRequeue(b *v1alpha1.BatchJob) { no := false; b.Spec.Job.Batch.Requeue = &no }

// representing makes a job represent two pods of a group.
func representing(group string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		no := false
		b.Spec.Job.Batch.Requeue = &no
		b.Spec.Workload = &v1alpha1.Workload{Group: group, Pods: []v1alpha1.WorkloadPod{{UID: "0"}, {UID: "1"}}}
		b.Status.History = []v1alpha1.StateChange{{State: "PENDING", At: *at(t0)}}
	}
}
