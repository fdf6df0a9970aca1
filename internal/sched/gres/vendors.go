package gres

import (
	"strings"
	"unicode"

	resourcev1 "k8s.io/api/resource/v1"
)

// NvidiaGPU is the extended resource of NVIDIA's device plugin.
const NvidiaGPU = "nvidia.com/gpu"

// vendor is a resource of a widely used device plugin, with the labels by which
// the vendor's feature discovery names the product.
type vendor struct {
	name     string // of the generic resource
	resource string
	products []string // label keys; the first that a node has counts
}

// shardName is the generic resource of shares of GPUs, as in Slurm.
const shardName = "shard"

var (
	nvidiaProduct = []string{"nvidia.com/gpu.product"}
	amdProduct    = []string{"amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"}
	intelProduct  = []string{"gpu.intel.com/product"}
)

// vendors has the device classes of the vendors' drivers, too.
var vendors = []vendor{
	{"gpu", NvidiaGPU, nvidiaProduct},
	{shardName, "nvidia.com/gpu.shared", nvidiaProduct},
	{"gpu", "amd.com/gpu", amdProduct},
	{"gpu", "gpu.intel.com/i915", intelProduct},
	{"gpu", "gpu.intel.com/xe", intelProduct},
	{"gpu", resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com", nvidiaProduct},
	{"gpu", resourcev1.ResourceDeviceClassPrefix + "gpu.amd.com", amdProduct},
	{"gpu", resourcev1.ResourceDeviceClassPrefix + "gpu.intel.com", intelProduct},
}

// nvidiaMIG is the prefix of the resources of GPU partitions, such as
// nvidia.com/mig-1g.10gb.
const nvidiaMIG = "nvidia.com/mig-"

// nvidiaShared ends the resources of GPU partitions that several pods share.
const nvidiaShared = ".shared"

// vendorGRES returns the generic resource that a vendor's resource is on a node with
// these labels. The type is "" if no feature discovery has labelled the node.
func vendorGRES(resource string, labels map[string]string) (name, kind string, ok bool) {
	if profile, found := strings.CutPrefix(resource, nvidiaMIG); found {
		if part, shared := strings.CutSuffix(profile, nvidiaShared); shared {
			return shardName, part, part != ""
		}
		return "gpu", profile, profile != ""
	}
	for i := range vendors {
		if vendors[i].resource != resource {
			continue
		}
		for _, key := range vendors[i].products {
			if product := labels[key]; product != "" {
				return vendors[i].name, productType(product), true
			}
		}
		return vendors[i].name, "", true
	}
	return "", "", false
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
