package gres

import (
	"strings"
	"unicode"
)

// NvidiaGPU is the extended resource of NVIDIA's device plugin.
const NvidiaGPU = "nvidia.com/gpu"

// vendor is a resource of a widely used device plugin, with the labels by which
// the vendor's feature discovery names the product.
type vendor struct {
	resource string
	products []string // label keys; the first that a node has counts
}

var vendors = []vendor{
	{NvidiaGPU, []string{"nvidia.com/gpu.product"}},
	{"nvidia.com/gpu.shared", []string{"nvidia.com/gpu.product"}},
	{"amd.com/gpu", []string{"amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"}},
	{"gpu.intel.com/i915", []string{"gpu.intel.com/product"}},
	{"gpu.intel.com/xe", []string{"gpu.intel.com/product"}},
}

// nvidiaMIG is the prefix of the resources of GPU partitions, such as
// nvidia.com/mig-1g.10gb.
const nvidiaMIG = "nvidia.com/mig-"

// vendorType returns the GPU type that a vendor's resource is on a node with
// these labels. The type is "" if no feature discovery has labelled the node.
func vendorType(resource string, labels map[string]string) (kind string, ok bool) {
	if profile, found := strings.CutPrefix(resource, nvidiaMIG); found {
		return profile, profile != ""
	}
	for i := range vendors {
		if vendors[i].resource != resource {
			continue
		}
		for _, key := range vendors[i].products {
			if product := labels[key]; product != "" {
				return productType(product), true
			}
		}
		return "", true
	}
	return "", false
}

// productType returns the type that sites write in gres.conf(5) for a product:
// a100 for NVIDIA-A100-SXM4-80GB, rtx3090 for NVIDIA-GeForce-RTX-3090, mi300x
// for AMD_Instinct_MI300X_OAM, 1g.10gb for NVIDIA-A100-80GB-PCIe-MIG-1g.10gb.
// It is the first word that contains a digit; if that word starts with the
// digit, the word before it is prepended.
func productType(product string) string {
	if _, profile, found := strings.Cut(product, "-MIG-"); found {
		return strings.ToLower(profile)
	}
	words := strings.FieldsFunc(product, func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
	for i, w := range words {
		if !strings.ContainsFunc(w, unicode.IsDigit) {
			continue
		}
		if i > 0 && unicode.IsDigit(rune(w[0])) {
			w = words[i-1] + w
		}
		return strings.ToLower(w)
	}
	return strings.ToLower(strings.Join(words, "_"))
}
