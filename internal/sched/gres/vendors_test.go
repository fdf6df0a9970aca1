package gres

import (
	"cmp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// The product names are those that the vendors' feature discoveries write.
func TestProductTypes(t *testing.T) {
	for product, want := range map[string]string{
		"NVIDIA-A100-SXM4-80GB": "a100", "NVIDIA-A100-80GB-PCIe": "a100", "NVIDIA-H100-80GB-HBM3": "h100", "NVIDIA-H200": "h200",
		"NVIDIA-GH200-480GB": "gh200", "NVIDIA-B200": "b200", "NVIDIA-L40S": "l40s", "NVIDIA-L4": "l4", "Tesla-T4": "t4", "Tesla-V100-SXM2-16GB": "v100",
		"NVIDIA-RTX-A6000": "a6000", "NVIDIA-GeForce-RTX-3090": "rtx3090", "NVIDIA-GeForce-RTX-4090-SHARED": "rtx4090",
		"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb": "1g.5gb", "AMD_Instinct_MI300X_OAM": "mi300x", "AMD_Instinct_MI210": "mi210",
		"Max_1550": "max1550", "Flex_170": "flex170", "Unknown": "unknown",
	} {
		if got := productType(product); got != want {
			t.Errorf("%s: %q, want %q", product, got, want)
		}
	}
}

// The resources of the vendors' device plugins are GPUs, or shares of them, without any settings.
func TestVendorResourcesAreGPUs(t *testing.T) {
	for _, tt := range []struct {
		resource string
		labels   map[string]string
		kind     string
		name     string // "": gpu
	}{
		{"nvidia.com/gpu", map[string]string{"nvidia.com/gpu.product": "NVIDIA-H200"}, "h200", ""},
		{"nvidia.com/gpu", nil, "", ""},
		{"nvidia.com/gpu.shared", map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}, "l4", "shard"},
		{"nvidia.com/mig-1g.10gb", map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, "1g.10gb", ""},
		{"amd.com/gpu", map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI250X"}, "mi250x", ""},
		{"amd.com/gpu", map[string]string{"beta.amd.com/gpu.product-name": "AMD_Instinct_MI100"}, "mi100", ""},
		{"gpu.intel.com/i915", map[string]string{"gpu.intel.com/product": "Max_1100"}, "max1100", ""},
		{"gpu.intel.com/xe", nil, "", ""},
		{"nvidia.com/mig-1g.5gb", nil, "1g.5gb", ""},
		{"nvidia.com/mig-1g.5gb.shared", nil, "1g.5gb", "shard"},
		{"deviceclass.resource.kubernetes.io/gpu.nvidia.com", nil, "", ""},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: tt.labels}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceName(tt.resource): resource.MustParse("4")}
		got := Table(nil).List(n.Status.Allocatable, tt.labels)
		if len(got) != 1 || got[0].Name != cmp.Or(tt.name, "gpu") || got[0].Type != tt.kind || got[0].Count != 4 {
			t.Errorf("%s %v: %+v", tt.resource, tt.labels, got)
		}
		if r, ok := Resource(&v1alpha1.ClusterSpec{}, n, cmp.Or(tt.name, "gpu"), tt.kind); !ok || string(r) != tt.resource {
			t.Errorf("gpu:%s is %q", tt.kind, r)
		}
	}
	others := corev1.ResourceList{"nvidia.com/mig-": resource.MustParse("1"), "hugepages-2Mi": resource.MustParse("1")}
	if got := Table(nil).List(others, nil); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
