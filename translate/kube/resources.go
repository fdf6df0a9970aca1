package kube

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// run is the set of nodes on which the job has equal allocations.
type run struct {
	nodes     []int32 // indexes, ascending
	resources corev1.ResourceList
	limits    corev1.ResourceList // more than resources if CPUs are shared
}

// runs groups the nodes by equal allocations, in order of their first node. The batch host
// is the first node of the first run.
func (in Input) runs() []run {
	var out []run
	last := 0 // consecutive nodes usually have equal allocations
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

// offset returns the index of the first node.
func (r *run) offset() int32 { return r.nodes[0] }

// list returns the indexes for wire.AnnotationNodes, or "" if they are consecutive and the
// offset is sufficient.
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

// resources returns the requests of one pod. A job without a memory limit requests no
// memory.
func (in Input) resources(n *v1alpha1.NodeAllocation) corev1.ResourceList {
	// Each of the jobs that share CPUs requests its part.
	milliCPUs := int64(n.CPUs) * 1000 / int64(max(1, n.Sharers))
	list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPUs, resource.DecimalSI)}
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

// minMemory is the minimum memory limit of a pod in MiB, as MinRAMSpace of Slurm's
// cgroup.conf: with less not even the agent and a shell can run.
const minMemory = 30

// limits returns the limits of a pod with requests r: all of the CPUs, even if it requests
// only a part of them, and no less memory than minMemory.
func limits(r corev1.ResourceList, n *v1alpha1.NodeAllocation) corev1.ResourceList {
	little := n.Memory > 0 && n.Memory < minMemory
	if n.Sharers <= 1 && !little {
		return r
	}
	out := r.DeepCopy()
	if n.Sharers > 1 {
		out[corev1.ResourceCPU] = *resource.NewQuantity(int64(n.CPUs), resource.DecimalSI)
	}
	if little {
		out[corev1.ResourceMemory] = *resource.NewQuantity(minMemory<<20, resource.BinarySI)
	}
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
