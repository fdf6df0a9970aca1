package snapshot

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// deviceTable says which extended resources of device plugins are which generic
// resources: the Cluster's, then what everybody means by the vendors' names.
type deviceTable []v1alpha1.DeviceResource

var vendors = deviceTable{
	{Name: "gpu", Resource: NvidiaGPU}, {Name: "gpu", Resource: "amd.com/gpu"}, {Name: "gpu", Resource: "gpu.intel.com/i915"},
	{Name: "gpu", Resource: "gpu.intel.com/xe"},
}

func devicesOf(c *v1alpha1.ClusterSpec) deviceTable {
	return append(append(deviceTable{}, c.Devices...), vendors...)
}

// of names the generic resource that the extended resource is on a node with
// these labels; ok is false for resources that are none.
func (t deviceTable) of(resource corev1.ResourceName, labels map[string]string) (name, kind string, ok bool) {
	for i := range t {
		if t[i].Resource == string(resource) && on(t[i].NodeLabels, labels) {
			return t[i].Name, t[i].Type, true
		}
	}
	return "", "", false
}

func on(wanted, labels map[string]string) bool {
	for k, v := range wanted {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// ResourceOf names the extended resource that n offers for a generic resource:
// one of a device plugin, by the Cluster's table and then by the vendors'
// names. ok is false where n offers none.
func ResourceOf(c *v1alpha1.ClusterSpec, n *corev1.Node, name, kind string) (resource corev1.ResourceName, ok bool) {
	table := devicesOf(c)
	for i := range table {
		r := corev1.ResourceName(table[i].Resource)
		if _, offered := n.Status.Allocatable[r]; !offered || table[i].Name != name {
			continue
		}
		// The first row that holds for the node says what the resource is.
		if _, is, _ := table.of(r, n.Labels); is == kind && on(table[i].NodeLabels, n.Labels) && table[i].Type == kind {
			return r, true
		}
	}
	return "", false
}
