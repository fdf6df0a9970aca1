package snapshot

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSmallDaemonsShareACPU counts what daemons of a node request together.
func TestSmallDaemonsShareACPU(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("8Gi")}
	var pods []*corev1.Pod
	for i := range 11 {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprint("d", i)},
			Spec: corev1.PodSpec{NodeName: "n1",
				Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1536Ki")}}}}},
		}
		pods = append(pods, p)
	}
	s := New(Input{Nodes: []*corev1.Node{n}, Pods: pods})
	if got := s.Nodes[0]; got.UsedCPUs != 2 || got.UsedMemory != 17 {
		t.Errorf("%d CPUs and %d MiB are used, want 2 and 17", got.UsedCPUs, got.UsedMemory)
	}
}

// What a kubelet reserves of a CPU is not lost twice: small pods that fit in the rest of it
// take no CPU from jobs.
func TestPodsInTheRestOfACPU(t *testing.T) {
	for _, tt := range []struct {
		allocatable, requests string
		cpus, used            int
	}{
		{"3900m", "300m", 3, 0},
		{"3900m", "950m", 3, 1},
		{"4", "300m", 4, 1},
		{"3900m", "9", 3, 3},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse(tt.allocatable)}
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(tt.requests),
			}},
		}}}}
		s := New(Input{Nodes: []*corev1.Node{n}, Pods: []*corev1.Pod{p}})
		if got := s.Nodes[0]; got.CPUs != tt.cpus || got.UsedCPUs != tt.used {
			t.Errorf("%s of %s: %d of %d CPUs are used, want %d of %d",
				tt.requests, tt.allocatable, got.UsedCPUs, got.CPUs, tt.used, tt.cpus)
		}
	}
}

// A device that its plugin reports as unhealthy leaves the plan, but a job that needs it can
// wait for it.
func TestDevicesInTrouble(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("8"), "nvidia.com/gpu": resource.MustParse("1")}
	for _, all := range []string{"1", "2"} {
		n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("8"), "nvidia.com/gpu": resource.MustParse(all)}
		got := fmt.Sprint(New(Input{Nodes: []*corev1.Node{n}}).Nodes[0].GRES, New(Input{Nodes: []*corev1.Node{n}}).Nodes[0].AllGRES)
		if want := map[string]string{"1": "[{gpu  1}] []", "2": "[{gpu  1}] [{gpu  2}]"}[all]; got != want {
			t.Errorf("%s: got %s, want %s", all, got, want)
		}
	}
}
