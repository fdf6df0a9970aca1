package kube

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// run is the nodes on which the job holds the same.
type run struct {
	nodes     []int32 // indexes, ascending
	resources corev1.ResourceList
	limits    corev1.ResourceList // more than resources where CPUs are shared
}

// runs parts the allocation by what the job holds, in the order in which that
// comes first: the batch host is the first of the first.
func (in Input) runs() []run {
	var out []run
	last := 0 // the neighbour mostly holds the same
	nodes := in.Job.Status.Allocation.Nodes
	for i := range nodes {
		r := in.resources(&nodes[i])
		limit := limits(r, &nodes[i])
		same := func(o run) bool { return equal(o.resources, r) && equal(o.limits, limit) }
		if len(out) == 0 || !same(out[last]) {
			if last = slices.IndexFunc(out, same); last < 0 {
				last = len(out)
				out = append(out, run{resources: r, limits: limit})
			}
		}
		out[last].nodes = append(out[last].nodes, int32(i))
	}
	return out
}

// offset is the number of nodes before the first.
func (r *run) offset() int32 { return r.nodes[0] }

// list is the indexes as wire.AnnotationNodes has them; empty: they follow each
// other, and the offset says it all.
func (r *run) list() string {
	if last := len(r.nodes) - 1; r.nodes[last]-r.nodes[0] == int32(last) {
		return ""
	}
	var b strings.Builder
	for i := 0; i < len(r.nodes); {
		k := i
		for k+1 < len(r.nodes) && r.nodes[k+1] == r.nodes[k]+1 {
			k++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(r.nodes[i])))
		if k > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(int(r.nodes[k])))
		}
		i = k + 1
	}
	return b.String()
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
