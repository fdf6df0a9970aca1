package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// run is a row of nodes on which the job holds the same.
type run struct {
	offset    int32 // nodes before the first
	count     int32
	resources corev1.ResourceList
	limits    corev1.ResourceList // more than resources where CPUs are shared
}

// runs splits the allocation, in order, where the resources change.
func (in Input) runs() []run {
	var out []run
	nodes := in.Job.Status.Allocation.Nodes
	for i := range nodes {
		r := in.resources(&nodes[i])
		if last := len(out) - 1; last >= 0 && equal(out[last].resources, r) {
			out[last].count++
			continue
		}
		out = append(out, run{offset: int32(i), count: 1, resources: r, limits: limits(r, &nodes[i])})
	}
	return out
}

// resources of one pod. A job without memory accounting asks for none.
func (in Input) resources(n *v1alpha1.NodeAllocation) corev1.ResourceList {
	// Jobs that may share CPUs each ask for their part of them.
	list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(n.CPUs)*1000/int64(max(1, n.Sharers)), resource.DecimalSI)}
	if n.Memory > 0 {
		list[corev1.ResourceMemory] = *resource.NewQuantity(n.Memory<<20, resource.BinarySI)
	}
	name := in.Resource
	if name == nil {
		name = Resource
	}
	for i := range n.GRES {
		g := &n.GRES[i]
		if g.Count <= 0 {
			continue
		}
		key := name(n, g)
		sum := list[key]
		sum.Add(*resource.NewQuantity(g.Count, resource.DecimalSI))
		list[key] = sum
	}
	return list
}

// limits of a pod that asks for r: all of the CPUs it may have, where it asks
// for a part of them only.
func limits(r corev1.ResourceList, n *v1alpha1.NodeAllocation) corev1.ResourceList {
	if n.Sharers <= 1 {
		return r
	}
	out := r.DeepCopy()
	out[corev1.ResourceCPU] = *resource.NewQuantity(int64(n.CPUs), resource.DecimalSI)
	return out
}

func equal(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v.Cmp(w) != 0 {
			return false
		}
	}
	return true
}
