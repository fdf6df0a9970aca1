package snapshot

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/wire"
)

// node is what the planner does not need to know of a node.
type node struct {
	object   *corev1.Node
	features []string
}

// NvidiaGPU is the extended resource of NVIDIA's device plugin.
const NvidiaGPU = "nvidia.com/gpu"

// addNodes adds the pool's nodes by short name, and what others use there.
func (v *View) addNodes(nodes []*corev1.Node, pods []*corev1.Pod) {
	pool := slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return n.Labels[wire.LabelManaged] == "false" })
	short := ShortNames(pool)
	slices.SortFunc(pool, func(a, b *corev1.Node) int { return compareNames(short[a.Name], short[b.Name]) })
	places := map[string]int{}
	for i, n := range pool {
		places[n.Name] = i
	}
	slices.SortStableFunc(pool, func(a, b *corev1.Node) int { return cmp.Compare(weight(a), weight(b)) })
	table := devicesOf(&v.params)
	v.byName, v.byObject = map[string]int{}, map[string]int{}
	for i, n := range pool {
		v.byName[short[n.Name]], v.byObject[n.Name] = i, i
		f := featuresOf(n, v.params.FeatureLabels)
		for _, name := range f {
			v.features[name] = true
		}
		v.nodes = append(v.nodes, node{object: n, features: f})
		v.Nodes = append(v.Nodes, nodeOf(n, short[n.Name], table))
		v.Nodes[i].Position = places[n.Name]
	}
	v.addMembers(pods)
	// Whole CPUs are taken from jobs, so parts are added up before they are
	// rounded: a node with ten small daemons does not lose ten CPUs.
	milli, bytes := make([]int64, len(v.Nodes)), make([]int64, len(v.Nodes))
	for _, p := range pods {
		if i, ok := v.byObject[p.Spec.NodeName]; ok && !v.counted(p) {
			r := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
			milli[i], bytes[i] = milli[i]+r.Cpu().MilliValue(), bytes[i]+r.Memory().Value()
			v.Nodes[i].UsedGRES = addGRES(v.Nodes[i].UsedGRES, gresIn(r, table, v.nodes[i].object.Labels))
		}
	}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		n.UsedCPUs, n.UsedMemory = int((milli[i]+999)/1000), (bytes[i]+1<<20-1)>>20
	}
}

// counted tells whether the pod takes nothing that is not counted elsewhere:
// it is over, or its job's allocation holds its share.
func (v *View) counted(p *corev1.Pod) bool {
	if Over(p) {
		return true
	}
	if v.members[p.UID] {
		return true
	}
	j := v.jobs[JobOf(p)]
	if j == nil || j.Namespace != p.Namespace || strconv.Itoa(int(j.Status.Attempt)) != p.Labels[wire.LabelAttempt] {
		return false
	}
	// Pods that outlive their job belong to the task that runs in them, or
	// wait for one and take nothing from others.
	return j.HoldsAllocation() || j.Status.Pods != nil
}

// JobOf is the number of the job whose pod p says it is; 0: none.
func JobOf(p *corev1.Pod) int64 {
	id, err := strconv.ParseInt(p.Labels[wire.LabelJobID], 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// Over tells whether the pod's containers have ended for good.
func Over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func nodeOf(n *corev1.Node, name string, table deviceTable) backfill.Node {
	a := n.Status.Allocatable
	out := backfill.Node{
		Name:           name,
		CPUs:           int(a.Cpu().MilliValue() / 1000),
		ThreadsPerCore: annotated(n, wire.AnnotationThreads, threadsOf(n.Labels)),
		Sockets:        annotated(n, wire.AnnotationSockets, 1),
		Memory:         a.Memory().Value() >> 20,
		GRES:           gresIn(a, table, n.Labels),
		Unavailable:    Unavailable(n) != "",
	}
	if path := n.Labels[wire.LabelTopology]; path != "" {
		out.TopologyPath = strings.Split(path, ".")
	}
	return out
}

func addGRES(to, more []backfill.GRES) []backfill.GRES {
	for _, g := range more {
		i := slices.IndexFunc(to, func(t backfill.GRES) bool { return t.Name == g.Name && t.Type == g.Type })
		if i < 0 {
			to = append(to, g)
		} else {
			to[i].Count += g.Count
		}
	}
	return to
}

// gresIn lists the generic resources in l, of a node with these labels, ordered
// by name.
func gresIn(l corev1.ResourceList, table deviceTable, labels map[string]string) []backfill.GRES {
	var out []backfill.GRES
	add := func(name, kind string, q resource.Quantity) {
		if n := q.Value(); n > 0 {
			out = addGRES(out, []backfill.GRES{{Name: name, Type: kind, Count: n}})
		}
	}
	for r, q := range l {
		if s, ok := strings.CutPrefix(string(r), wire.ResourceGRES); ok {
			name, kind := gresOf(s)
			add(name, kind, q)
		} else if name, kind, ok := table.of(r, labels); ok {
			add(name, kind, q)
		}
	}
	slices.SortFunc(out, func(a, b backfill.GRES) int {
		return strings.Compare(a.Name+":"+a.Type, b.Name+":"+b.Type)
	})
	return out
}

// weight of the node: of those that serve a job the lightest are taken first
// (slurm.conf(5), Weight).
func weight(n *corev1.Node) int { return annotated(n, wire.AnnotationWeight, 1) }

// annotated reads a positive number from the node's annotations.
func annotated(n *corev1.Node, key string, otherwise int) int {
	if i, err := strconv.Atoi(n.Annotations[key]); err == nil && i > 0 {
		return i
	}
	return otherwise
}

// featuresOf lists the node's features, in the order that an annotation gives
// and the rest sorted: those of Berth's own label, and
// what the patterns make of other labels.
func featuresOf(n *corev1.Node, patterns []string) []string {
	var out []string
	for l, value := range n.Labels {
		if f, ok := strings.CutPrefix(l, wire.LabelFeature); ok && f != "" {
			out = append(out, f)
		}
		for _, p := range patterns {
			if f := featureIn(p, l, value); f != "" {
				out = append(out, f)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	order := strings.Split(n.Annotations[wire.AnnotationFeatures], ",")
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(rank(order, a), rank(order, b)) })
	return out
}

// rank is where a stands in the list; what does not, comes last.
func rank(list []string, a string) int {
	if i := slices.Index(list, a); i >= 0 {
		return i
	}
	return len(list)
}

// Unavailable says why no job may start on the node: "DOWN", "DRAIN",
// "UNKNOWN", or "" if one may.
func Unavailable(n *corev1.Node) string {
	switch strings.ToLower(n.Annotations[wire.AnnotationState]) {
	case "down":
		return "DOWN"
	case "drain":
		return "DRAIN"
	}
	switch ready(n) {
	case corev1.ConditionUnknown:
		return "UNKNOWN"
	case corev1.ConditionFalse:
		return "DOWN"
	}
	if n.Spec.Unschedulable || n.DeletionTimestamp != nil {
		return "DRAIN"
	}
	return ""
}

// ready is the node's Ready condition; a node without one never reported.
func ready(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}
