package snapshot

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// deviceTable says which extended resources of device plugins are which generic
// resources: the Cluster's rows. What everybody means by the vendors' names
// comes after them (vendorOf).
type deviceTable []v1alpha1.DeviceResource

func devicesOf(c *v1alpha1.ClusterSpec) deviceTable { return c.Devices }

// of names the generic resource that the extended resource is on a node with
// these labels; ok is false for resources that are none.
func (t deviceTable) of(resource corev1.ResourceName, labels map[string]string) (name, kind string, ok bool) {
	for i := range t {
		if t[i].Resource == string(resource) && on(t[i].NodeLabels, labels) {
			return t[i].Name, t[i].Type, true
		}
	}
	kind, ok = vendorOf(string(resource), labels)
	return "gpu", kind, ok
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
	for _, r := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
		if is, of, found := table.of(r, n.Labels); found && is == name && of == kind {
			return r, true
		}
	}
	return "", false
}
