package snapshot

import (
	"strings"
	"unicode"
)

// vendor is a device plugin that everybody knows: which resource it offers, and
// the label with which the vendor's discovery names the product.
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

// nvidiaMIG begins the resources of parts of a GPU, such as
// nvidia.com/mig-1g.10gb.
const nvidiaMIG = "nvidia.com/mig-"

// vendorOf says what a vendor's resource is on a node with these labels. The
// type is "" where no discovery has labelled the node.
func vendorOf(resource string, labels map[string]string) (kind string, ok bool) {
	if part, found := strings.CutPrefix(resource, nvidiaMIG); found {
		return part, part != ""
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

// productType makes a type as sites write it in gres.conf(5) of a product's
// name: a100 of NVIDIA-A100-SXM4-80GB, rtx3090 of NVIDIA-GeForce-RTX-3090,
// mi300x of AMD_Instinct_MI300X_OAM, 1g.10gb of NVIDIA-A100-80GB-PCIe-MIG-1g.10gb.
// It is the first word with a digit, together with the word before where it
// begins with that digit.
func productType(product string) string {
	if _, part, found := strings.Cut(product, "-MIG-"); found {
		return strings.ToLower(part)
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
