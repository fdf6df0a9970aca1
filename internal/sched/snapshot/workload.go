package snapshot

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/gres"
)

// addWorkloadPods finds the pods of workloads: those whose resources are part of
// their job's allocation, and those of pending jobs.
func (s *Snapshot) addWorkloadPods(pods []*corev1.Pod) {
	s.placedPods, s.pendingPods = map[types.UID]bool{}, map[types.UID]*corev1.Pod{}
	pending := map[types.UID]bool{}
	for _, b := range s.jobs {
		if b.Spec.Workload == nil {
			continue
		}
		for i := range b.Spec.Workload.Pods {
			switch uid := b.Spec.Workload.Pods[i].UID; {
			case b.HoldsAllocation():
				s.placedPods[uid] = true
			case b.AwaitsStart():
				pending[uid] = true
			}
		}
	}
	if len(pending) == 0 {
		return
	}
	for _, p := range pods {
		if pending[p.UID] {
			s.pendingPods[p.UID] = p
		}
	}
	s.hasTaints = slices.ContainsFunc(s.nodes, func(n node) bool { return !toleratesTaints(nil, n.object) })
}

// restrictToPods restricts the nodes that a workload's job may get to those that
// are feasible for each of its pods, because kube-scheduler refuses the others.
func (s *Snapshot) restrictToPods(out *backfill.Job, b *v1alpha1.BatchJob) {
	w := b.Spec.Workload
	if w == nil {
		return
	}
	for i := range w.Pods {
		p := s.pendingPods[w.Pods[i].UID]
		if p == nil {
			continue
		}
		predicates, none := s.podPredicates(p)
		if none {
			continue
		}
		out.Eligible = s.feasibleForPod(out.Eligible, predicates, p)
		for k := range out.Alternatives {
			out.Alternatives[k] = s.feasibleForPod(out.Alternatives[k], predicates, p)
		}
	}
}

// podNodesKey is a set of nodes and the predicates of pods on them. Equal keys
// share the restricted set, which makes the planner fast.
type podNodesKey struct {
	nodes      *backfill.NodeSet
	predicates string
}

// podPredicates returns a key of what a pod requires of a node beyond CPUs, memory
// and generic resources; none is true if it requires nothing.
func (s *Snapshot) podPredicates(p *corev1.Pod) (key string, none bool) {
	other := gres.Of(&s.params).OtherRequests(p)
	affinity := p.Spec.Affinity != nil && p.Spec.Affinity.NodeAffinity != nil
	if len(p.Spec.NodeSelector) == 0 && !affinity && len(other) == 0 && !s.hasTaints {
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

// feasibleForPod returns the nodes of the set on which the pod can run. A nil set
// is all nodes.
func (s *Snapshot) feasibleForPod(nodes *backfill.NodeSet, predicates string, p *corev1.Pod) *backfill.NodeSet {
	key := podNodesKey{nodes, predicates}
	if set, ok := s.podNodes[key]; ok {
		return set
	}
	affinity, other := nodeaffinity.GetRequiredNodeAffinity(p), gres.Of(&s.params).OtherRequests(p)
	set := &backfill.NodeSet{}
	for i := range s.nodes {
		o := s.nodes[i].object
		if nodes != nil && !nodes.Has(i) || !toleratesTaints(p.Spec.Tolerations, o) {
			continue
		}
		if ok, err := affinity.Match(o); err != nil || !ok || !hasAllocatable(o, other) {
			continue
		}
		set.Add(i)
	}
	s.podNodes[key] = set
	return set
}

func hasAllocatable(n *corev1.Node, requests corev1.ResourceList) bool {
	for name, q := range requests {
		if allocatable := n.Status.Allocatable[name]; allocatable.Cmp(q) < 0 {
			return false
		}
	}
	return true
}
