package snapshot

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/wire"
)

// addMembers finds the pods of workloads: those whose places their jobs hold,
// which nobody else counts, and those that wait.
func (v *View) addMembers(pods []*corev1.Pod) {
	v.members, v.waiting = map[types.UID]bool{}, map[types.UID]*corev1.Pod{}
	waits := map[types.UID]bool{}
	for _, b := range v.jobs {
		if b.Spec.Workload == nil {
			continue
		}
		for i := range b.Spec.Workload.Pods {
			switch uid := b.Spec.Workload.Pods[i].UID; {
			case b.HoldsAllocation():
				v.members[uid] = true
			case b.AwaitsStart():
				waits[uid] = true
			}
		}
	}
	if len(waits) == 0 {
		return
	}
	for _, p := range pods {
		if waits[p.UID] {
			v.waiting[p.UID] = p
		}
	}
	v.tainted = slices.ContainsFunc(v.nodes, func(n node) bool { return !tolerated(n.object, nil) })
}

// suit narrows the nodes a workload's job may have to those that every one of
// its pods can be put on: kube-scheduler would refuse the others.
func (v *View) suit(out *backfill.Job, b *v1alpha1.BatchJob) {
	w := b.Spec.Workload
	if w == nil {
		return
	}
	for i := range w.Pods {
		p := v.waiting[w.Pods[i].UID]
		if p == nil {
			continue
		}
		wish, free := v.wishOf(p)
		if free {
			continue
		}
		out.Eligible = v.suitable(out.Eligible, wish, p)
		for k := range out.Alternatives {
			out.Alternatives[k] = v.suitable(out.Alternatives[k], wish, p)
		}
	}
}

// suit is a set of nodes and what pods wish of them; equal wishes share the
// narrowed set, which the planner relies on to be quick.
type suit struct {
	nodes *backfill.NodeSet
	wish  string
}

// wishOf is what a pod asks of a node beyond CPUs, memory and generic
// resources; free: nothing.
func (v *View) wishOf(p *corev1.Pod) (wish string, free bool) {
	other := v.otherResources(p)
	affinity := p.Spec.Affinity != nil && p.Spec.Affinity.NodeAffinity != nil
	if len(p.Spec.NodeSelector) == 0 && !affinity && len(other) == 0 && !v.tainted {
		return "", true
	}
	text, err := json.Marshal(struct {
		Selector    map[string]string
		Affinity    *corev1.Affinity
		Tolerations []corev1.Toleration
		Other       corev1.ResourceList
	}{p.Spec.NodeSelector, p.Spec.Affinity, p.Spec.Tolerations, other})
	if err != nil {
		return string(p.UID), false
	}
	return string(text), false
}

func (v *View) suitable(from *backfill.NodeSet, wish string, p *corev1.Pod) *backfill.NodeSet {
	key := suit{from, wish}
	if s, ok := v.suited[key]; ok {
		return s
	}
	affinity, other := nodeaffinity.GetRequiredNodeAffinity(p), v.otherResources(p)
	s := &backfill.NodeSet{}
	for i := range v.nodes {
		o := v.nodes[i].object
		if from != nil && !from.Has(i) || !tolerated(o, p.Spec.Tolerations) {
			continue
		}
		if ok, err := affinity.Match(o); err != nil || !ok || !offers(o, other) {
			continue
		}
		s.Add(i)
	}
	if v.suited == nil {
		v.suited = map[suit]*backfill.NodeSet{}
	}
	v.suited[key] = s
	return s
}

// otherResources are the extended resources that p asks for and that the
// planner does not count.
func (v *View) otherResources(p *corev1.Pod) corev1.ResourceList {
	var out corev1.ResourceList
	table := devicesOf(&v.params)
	for name, q := range resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}) {
		_, known := table.named(name)
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

func offers(n *corev1.Node, wanted corev1.ResourceList) bool {
	for name, q := range wanted {
		if have := n.Status.Allocatable[name]; have.Cmp(q) < 0 {
			return false
		}
	}
	return true
}

// Requested is what a pod asks for in Slurm's terms: whole CPUs (at least
// one), MiB, generic resources.
func Requested(c *v1alpha1.ClusterSpec, p *corev1.Pod) (cpus int, memory int64, gres []backfill.GRES) {
	r := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	cpus = max(1, int((r.Cpu().MilliValue()+999)/1000))
	memory = (r.Memory().Value() + 1<<20 - 1) >> 20
	table := devicesOf(c)
	for name, q := range r {
		g, known := table.named(name)
		if own, ok := strings.CutPrefix(string(name), wire.ResourceGRES); ok {
			g.Name, g.Type = gresOf(own)
			known = true
		}
		if g.Count = q.Value(); known && g.Count > 0 {
			gres = addGRES(gres, []backfill.GRES{g})
		}
	}
	slices.SortFunc(gres, func(a, b backfill.GRES) int { return strings.Compare(a.Name+":"+a.Type, b.Name+":"+b.Type) })
	return cpus, memory, gres
}

// named is the generic resource that an extended resource is, of the type that
// it is on every node.
func (t deviceTable) named(resource corev1.ResourceName) (g backfill.GRES, ok bool) {
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
	if kind, vendor := vendorOf(string(resource), nil); vendor {
		return backfill.GRES{Name: "gpu", Type: kind}, true
	}
	return g, false
}

// avoid keeps jobs from nodes for a while.
func (v *View) avoid(nodes map[string]time.Time) {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		until := nodes[name]
		i, ok := v.byObject[name]
		if !ok || until.Unix() <= v.Now {
			continue
		}
		b := backfill.AdvanceReservation{Start: v.Now, End: until.Unix()}
		b.Nodes.Add(i)
		v.AdvanceReservations = append(v.AdvanceReservations, b)
	}
	slices.SortStableFunc(v.AdvanceReservations, func(a, b backfill.AdvanceReservation) int { return strings.Compare(a.Name, b.Name) })
}
