package processnode

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestRequestsAreTheSumOrTheLargestInitContainer(t *testing.T) {
	cpu := func(s string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(s)}}
	}
	pod := &corev1.Pod{}
	pod.Spec.Containers = []corev1.Container{{Resources: cpu("1")}, {Resources: cpu("500m")}}
	if q := requests(pod)[corev1.ResourceCPU]; q.MilliValue() != 1500 {
		t.Errorf("sum %s", q.String())
	}
	pod.Spec.InitContainers = []corev1.Container{{Resources: cpu("2")}}
	if q := requests(pod)[corev1.ResourceCPU]; q.MilliValue() != 2000 {
		t.Errorf("with init container %s", q.String())
	}
}
