package gres

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// TestDeviceTable maps what device plugins offer to typed generic resources and
// back.
func TestDeviceTable(t *testing.T) {
	c := &v1alpha1.ClusterSpec{Devices: []v1alpha1.DeviceResource{
		{
			Name:       "gpu",
			Type:       "a100",
			Resource:   NvidiaGPU,
			NodeLabels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
		},
		{Name: "gpu", Type: "1g.10gb", Resource: "nvidia.com/mig-1g.10gb"},
		{Name: "fpga", Resource: "site.example/fpga"},
	}}
	node := func(product string, offers ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"nvidia.com/gpu.product": product}}}
		n.Status.Allocatable = corev1.ResourceList{}
		for _, r := range offers {
			n.Status.Allocatable[corev1.ResourceName(r)] = resource.MustParse("2")
		}
		return n
	}
	a100, other := node("NVIDIA-A100-SXM4-80GB", NvidiaGPU, "nvidia.com/mig-1g.10gb"), node(
		"Tesla-T4",
		NvidiaGPU,
		"site.example/fpga",
		"site.example/unknown",
	)
	for _, tt := range []struct {
		node       *corev1.Node
		name, kind string
		want       corev1.ResourceName
	}{
		{a100, "gpu", "a100", NvidiaGPU}, {a100, "gpu", "1g.10gb", "nvidia.com/mig-1g.10gb"}, {a100, "gpu", "", ""},
		{other, "gpu", "t4", NvidiaGPU}, {other, "gpu", "", ""}, {other, "gpu", "a100", ""}, {other, "fpga", "", "site.example/fpga"},
	} {
		if got, ok := Resource(c, tt.node, tt.name, tt.kind); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s:%s: %q %v, want %q", tt.name, tt.kind, got, ok, tt.want)
		}
	}
	got := Of(c).List(other.Status.Allocatable, other.Labels)
	if len(got) != 2 || got[0].Name != "fpga" || got[1].Name != "gpu" || got[1].Type != "t4" || got[1].Count != 2 {
		t.Errorf("%+v", got)
	}
	if got = Of(c).List(a100.Status.Allocatable, a100.Labels); len(got) != 2 || got[1].Type != "a100" {
		t.Errorf("%+v", got)
	}
}
