// Package gres maps Kubernetes resources to Slurm's generic resources: those of
// Berth's own prefix, those that the Cluster's device table names, and the
// extended resources of the vendors' device plugins. It is pure.
package gres

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/wire"
)

// Table maps the extended resources of device plugins to generic resources. Its
// rows, those of the Cluster, take precedence over the vendors' names.
type Table []v1alpha1.DeviceResource

// Of returns the cluster's table.
func Of(c *v1alpha1.ClusterSpec) Table { return c.Devices }

// Lookup returns the name and type of the generic resource that the extended
// resource is on a node with these labels. ok is false for any other resource.
func (t Table) Lookup(resource corev1.ResourceName, labels map[string]string) (name, kind string, ok bool) {
	for i := range t {
		if t[i].Resource == string(resource) && matchLabels(t[i].NodeLabels, labels) {
			return t[i].Name, t[i].Type, true
		}
	}
	return vendorGRES(string(resource), labels)
}

// Rank orders resources of devices that several resources could offer: the one with the lowest
// rank does. Those of the table come first, in its order, then those that are generic resources
// by their names, then all others.
func (t Table) Rank(resource corev1.ResourceName) int {
	for i := range t {
		if t[i].Resource == string(resource) {
			return i
		}
	}
	if _, _, ok := vendorGRES(string(resource), nil); ok {
		return len(t)
	}
	return len(t) + 1
}

func matchLabels(wanted, labels map[string]string) bool {
	for k, v := range wanted {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// LookupAnyNode returns the generic resource that the extended resource is,
// whatever the node: without a type, if that depends on the node's labels.
func (t Table) LookupAnyNode(resource corev1.ResourceName) (g backfill.GRES, ok bool) {
	for i := range t {
		if t[i].Resource != string(resource) {
			continue
		}
		g.Name = t[i].Name
		if len(t[i].NodeLabels) == 0 {
			g.Type = t[i].Type
		}
		return g, true
	}
	if name, kind, vendor := vendorGRES(string(resource), nil); vendor {
		return backfill.GRES{Name: name, Type: kind}, true
	}
	return g, false
}

// List returns the generic resources in a node's list of resources, ordered by
// name and type. labels are those of the node.
func (t Table) List(l corev1.ResourceList, labels map[string]string) []backfill.GRES {
	var out []backfill.GRES
	add := func(name, kind string, q resource.Quantity) {
		if n := q.Value(); n > 0 {
			out = Add(out, []backfill.GRES{{Name: name, Type: kind, Count: n}})
		}
	}
	for r, q := range l {
		if suffix, ok := strings.CutPrefix(string(r), wire.ResourceGRES); ok {
			name, kind := split(suffix)
			add(name, kind, q)
		} else if name, kind, ok := t.Lookup(r, labels); ok {
			add(name, kind, q)
		}
	}
	slices.SortFunc(out, compare)
	return out
}

// Missing returns, in Slurm's words, which generic resources of the node can be allocated only in
// part, because its device plugin or driver reports some of the devices as unusable; or "".
func (t Table) Missing(n *corev1.Node) string {
	all := t.List(n.Status.Capacity, n.Labels)
	usable := t.List(n.Status.Allocatable, n.Labels)
	var out []string
	for _, g := range all {
		i := slices.IndexFunc(usable, func(u backfill.GRES) bool { return u.Name == g.Name && u.Type == g.Type })
		left := int64(0)
		if i >= 0 {
			left = usable[i].Count
		}
		if left < g.Count {
			out = append(out, fmt.Sprintf("gres/%s count reported lower than configured (%d < %d)",
				strings.TrimSuffix(g.Name+":"+g.Type, ":"), left, g.Count))
		}
	}
	return strings.Join(out, "; ")
}

// Trouble returns which devices of the node cannot be used and what is wrong with what its drivers
// publish, or "".
func (t Table) Trouble(n *corev1.Node) string {
	missing, problem := t.Missing(n), n.Annotations[wire.AnnotationDeviceProblem]
	if missing != "" && problem != "" {
		return missing + "; " + problem
	}
	return missing + problem
}

// Resource returns the extended resource that n offers for a generic resource.
// ok is false if it offers none.
func Resource(c *v1alpha1.ClusterSpec, n *corev1.Node, name, kind string) (resource corev1.ResourceName, ok bool) {
	table := Of(c)
	for _, r := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
		if rName, rKind, found := table.Lookup(r, n.Labels); found && rName == name && rKind == kind {
			return r, true
		}
	}
	return "", false
}

// PodRequest returns what a pod requests in Slurm's terms: whole CPUs (at least
// one), MiB of memory, and generic resources.
func PodRequest(c *v1alpha1.ClusterSpec, p *corev1.Pod) (cpus int, memory int64, gres []backfill.GRES) {
	requests := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	cpus = max(1, int((requests.Cpu().MilliValue()+999)/1000))
	memory = (requests.Memory().Value() + 1<<20 - 1) >> 20
	table := Of(c)
	for name, q := range requests {
		g, known := table.LookupAnyNode(name)
		if suffix, ok := strings.CutPrefix(string(name), wire.ResourceGRES); ok {
			g.Name, g.Type = split(suffix)
			known = true
		}
		if g.Count = q.Value(); known && g.Count > 0 {
			gres = Add(gres, []backfill.GRES{g})
		}
	}
	slices.SortFunc(gres, compare)
	return cpus, memory, gres
}

// OtherRequests returns the extended resources that a pod requests and that are
// no generic resources, so that the planner does not count them.
func (t Table) OtherRequests(p *corev1.Pod) corev1.ResourceList {
	var out corev1.ResourceList
	for name, q := range resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}) {
		_, known := t.LookupAnyNode(name)
		if !strings.Contains(string(name), "/") || known || strings.HasPrefix(string(name), wire.ResourceGRES) {
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = q
	}
	return out
}

// Add returns list with the counts of more added.
func Add(list, more []backfill.GRES) []backfill.GRES {
	for _, g := range more {
		i := slices.IndexFunc(list, func(t backfill.GRES) bool { return t.Name == g.Name && t.Type == g.Type })
		if i < 0 {
			list = append(list, g)
		} else {
			list[i].Count += g.Count
		}
	}
	return list
}

func compare(a, b backfill.GRES) int {
	return cmp.Compare(a.Name+":"+a.Type, b.Name+":"+b.Type)
}

// split returns the name and the type in a suffix such as "gpu-a100".
func split(suffix string) (name, kind string) {
	name, kind, _ = strings.Cut(suffix, "-")
	return name, kind
}
