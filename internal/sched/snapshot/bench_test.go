package snapshot

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// fullCluster is a cluster on which every CPU is taken and a queue waits.
func fullCluster(nodes, pending int) Input {
	rnd := rand.New(rand.NewPCG(1, 2))
	in := Input{Now: time.Unix(1_800_000_000, 0)}
	start := metav1.NewMicroTime(in.Now.Add(-time.Minute))
	for i := range nodes {
		name := fmt.Sprintf("n%d", i+1)
		in.Nodes = append(in.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("4000Mi")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
		j := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: int64(i + 1), User: "alice"}}
		j.Status = v1alpha1.BatchJobStatus{State: v1alpha1.StateRunning, StartTime: &start, TimeLimit: 10 + rnd.Int32N(1440),
			Allocation: &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: name, Node: name, CPUs: 4, CPUIDs: "0-3"}}}}
		in.Jobs = append(in.Jobs, j)
		in.Pods = append(in.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{wire.LabelJobID: fmt.Sprint(i + 1), wire.LabelAttempt: "0"}},
			Spec: corev1.PodSpec{NodeName: name}})
	}
	submit := metav1.NewMicroTime(in.Now)
	for i := range pending {
		j := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: int64(nodes + i + 1), User: "bob", SubmitTime: &submit}}
		j.Spec.Job.Name = "j"
		j.Spec.Job.Shape.MinNodes = 1 + rnd.Int32N(8)
		j.Spec.Job.Shape.MaxNodes = j.Spec.Job.Shape.MinNodes
		j.Spec.Job.Time.Limit = 1 + rnd.Int32N(1440)
		in.Jobs = append(in.Jobs, j)
	}
	return in
}

func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct{ nodes, pending int }{{1000, 10000}, {10000, 100000}} {
		in := fullCluster(c.nodes, c.pending)
		b.Run(fmt.Sprintf("nodes=%d/pending=%d", c.nodes, c.pending), func(b *testing.B) {
			for b.Loop() {
				Build(in)
			}
		})
		b.Run(fmt.Sprintf("plan/nodes=%d/pending=%d", c.nodes, c.pending), func(b *testing.B) {
			v := Build(in)
			for b.Loop() {
				v.Plan()
			}
		})
	}
}
