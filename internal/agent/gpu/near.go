package gpu

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step/affinity"
)

// vendors whose GPUs have render nodes and no program that lists them, by PCI number: AMD, Intel.
var renderVendors = []string{"0x1002", "0x8086"}

// Near returns the CPUs near each visible GPU, by the GPU's index, as Linux reports them in sys
// (/sys): those of its NUMA node. It is empty if they are unknown. dev is /dev.
func Near(ctx context.Context, sys, dev string) map[int][]int {
	if text, err := ask(ctx, "index,pci.bus_id"); err == nil {
		return nearNvidia(text, sys)
	}
	return nearRender(sys, dev)
}

// nearNvidia returns the CPUs near the GPUs in nvidia-smi's table of indexes and PCI addresses,
// such as "0, 00000000:3B:00.0".
func nearNvidia(text, sys string) map[int][]int {
	out := map[int][]int{}
	for line := range strings.Lines(text) {
		index, address, _ := strings.Cut(strings.TrimSpace(line), ",")
		i, err := strconv.Atoi(index)
		if err != nil {
			continue
		}
		address = strings.ToLower(strings.TrimSpace(address))
		if len(address) > len("0000:00:00.0") { // Linux writes the domain with four digits
			address = address[len(address)-len("0000:00:00.0"):]
		}
		if cpus := localCPUs(filepath.Join(sys, "bus/pci/devices", filepath.Base(address))); cpus != nil {
			out[i] = cpus
		}
	}
	return out
}

// nearRender returns the CPUs near the GPUs whose render nodes the container has, which are
// numbered in their order.
func nearRender(sys, dev string) map[int][]int {
	nodes, _ := filepath.Glob(filepath.Join(dev, "dri/renderD*")) // the pattern is well-formed
	slices.Sort(nodes)                                            // all have three digits
	out := map[int][]int{}
	i := 0
	for _, n := range nodes {
		device := filepath.Join(sys, "class/drm", filepath.Base(n), "device")
		vendor, err := os.ReadFile(filepath.Join(device, "vendor"))
		if err != nil || !slices.Contains(renderVendors, strings.TrimSpace(string(vendor))) {
			continue
		}
		if cpus := localCPUs(device); cpus != nil {
			out[i] = cpus
		}
		i++
	}
	return out
}

// localCPUs returns the CPUs near a PCI device, or nil if they are unknown: the kernel says that
// the device belongs to no NUMA node.
func localCPUs(device string) []int {
	b, err := os.ReadFile(filepath.Join(device, "local_cpulist"))
	if err != nil {
		return nil
	}
	ids, err := affinity.ParseCPUList(strings.TrimSpace(string(b)))
	if err != nil || len(ids) == 0 {
		return nil
	}
	return ids
}
