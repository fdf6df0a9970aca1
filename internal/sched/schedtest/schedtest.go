// Package schedtest makes the nodes, partitions and jobs that tests of the
// scheduler's packages use.
package schedtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// Now is the time of the tests.
var Now = time.Unix(1_000_000, 0)

// Node returns a ready node of 4 CPUs, 4000 MiB and two Tesla cards.
func Node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:         resource.MustParse("4"),
				corev1.ResourceMemory:      resource.MustParse("4000Mi"),
				"gres.berth.hpc/gpu-tesla": resource.MustParse("2"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

// Feature gives a node a feature.
func Feature(name string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[wire.LabelFeature+name] = "true" }
}

// FourNodes returns n1 (fast, red), n2 (fast), n3 and n10.
func FourNodes() []*corev1.Node {
	return []*corev1.Node{
		Node("n1", Feature("fast"), Feature("red")), Node("n2", Feature("fast")), Node("n3"), Node("n10"),
	}
}

// Partitions returns debug (the default, all nodes), batch (n2 and n3, with limits
// and a higher tier) and off (down).
func Partitions() []*v1alpha1.Partition {
	return []*v1alpha1.Partition{
		{ObjectMeta: metav1.ObjectMeta{Name: "debug"}, Spec: v1alpha1.PartitionSpec{Default: true, Nodes: "ALL"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Spec: v1alpha1.PartitionSpec{
			Nodes: "n[2-3]", MaxTime: 30, DefaultTime: 5, MaxNodes: 1, PriorityTier: 2}},
		{ObjectMeta: metav1.ObjectMeta{Name: "off"}, Spec: v1alpha1.PartitionSpec{Nodes: "ALL", State: "DOWN"}},
	}
}

// Job returns a pending job of one CPU in partition debug.
func Job(id int64, change ...func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "user-a", Name: "j"},
		Spec:       v1alpha1.BatchJobSpec{JobID: id, User: "a", Partition: "debug", Job: job.Job{Name: "x"}},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

// InPartition puts a job in a partition.
func InPartition(name string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Spec.Partition = name }
}

// InQOS puts a job in a QOS, and in the account chem.
func InQOS(name string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Spec.Job.QOS, b.Spec.Job.Account = name, "chem" }
}

// WholeNode makes a job request whole nodes.
func WholeNode(b *v1alpha1.BatchJob) { b.Spec.Job.Placement.Exclusive = "node" }

// RunningOn makes a job run since Now on two CPUs and 100 MiB of each node.
func RunningOn(cpuIDs string, nodes ...string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		b.Status = v1alpha1.BatchJobStatus{
			State: v1alpha1.StateRunning, Attempt: 1, TimeLimit: 10, Partition: "debug",
			StartTime: &metav1.MicroTime{Time: Now}, Allocation: &v1alpha1.Allocation{},
		}
		for _, n := range nodes {
			b.Status.Allocation.Nodes = append(b.Status.Allocation.Nodes, v1alpha1.NodeAllocation{
				Name: n, Node: n, CPUs: 2, CPUIDs: cpuIDs, Memory: 100,
			})
		}
	}
}

// State sets the state of a job.
func State(state string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Status.State = state }
}

// QOS returns a QOS.
func QOS(name string, change func(*v1alpha1.QOSSpec)) *v1alpha1.QOS {
	q := &v1alpha1.QOS{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(&q.Spec)
	return q
}

// FullCluster is a cluster on which each node runs a job that has all CPUs.
type FullCluster struct {
	Now   time.Time
	Nodes []*corev1.Node
	Pods  []*corev1.Pod
	Jobs  []*v1alpha1.BatchJob // running jobs, then pending ones
}

// NewFullCluster returns a cluster of nodes that are all in use, with a queue of
// pending jobs.
func NewFullCluster(nodes, pending int) FullCluster {
	rnd := rand.New(rand.NewPCG(1, 2))
	c := FullCluster{Now: time.Unix(1_800_000_000, 0)}
	start := metav1.NewMicroTime(c.Now.Add(-time.Minute))
	for i := range nodes {
		id, name := int64(i+1), fmt.Sprintf("n%d", i+1)
		c.Nodes = append(c.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{
					"cpu":    resource.MustParse("4"),
					"memory": resource.MustParse("4000Mi"),
				},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		})
		b := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: id, User: "alice"}}
		b.Status = v1alpha1.BatchJobStatus{
			State: v1alpha1.StateRunning, StartTime: &start, TimeLimit: 10 + rnd.Int32N(1440),
			Allocation: &v1alpha1.Allocation{
				Nodes: []v1alpha1.NodeAllocation{{Name: name, Node: name, CPUs: 4, CPUIDs: "0-3"}},
			},
		}
		c.Jobs = append(c.Jobs, b)
		c.Pods = append(c.Pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{wire.LabelJobID: fmt.Sprint(id), wire.LabelAttempt: "0"},
			},
			Spec: corev1.PodSpec{NodeName: name},
		})
	}
	submit := metav1.NewMicroTime(c.Now)
	for i := range pending {
		b := &v1alpha1.BatchJob{
			Spec: v1alpha1.BatchJobSpec{JobID: int64(nodes + i + 1), User: "bob", SubmitTime: &submit},
		}
		b.Spec.Job.Name = "j"
		b.Spec.Job.Shape.MinNodes = 1 + rnd.Int32N(8)
		b.Spec.Job.Shape.MaxNodes = b.Spec.Job.Shape.MinNodes
		b.Spec.Job.Time.Limit = 1 + rnd.Int32N(1440)
		c.Jobs = append(c.Jobs, b)
	}
	return c
}
