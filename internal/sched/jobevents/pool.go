package jobevents

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// PoolChanged handles a change of a node pool as Changed does one of a job.
func (r *Recorder) PoolChanged(old, now *v1alpha1.NodePool) {
	level := cmp.Or(r.level(), v1alpha1.JobEventsWarnings)
	if old == nil || now == nil || level == v1alpha1.JobEventsNone {
		return
	}
	for _, e := range poolEvents(&old.Status, &now.Status, level == v1alpha1.JobEventsAll) {
		r.recorder.Event(now, e.kind, e.reason, e.message)
	}
}

// poolReasons are the reasons of the events about nodes that enter a state.
var poolReasons = map[string]string{
	v1alpha1.PoolPoweringUp: "PowerUp", v1alpha1.PoolRunning: "Running", v1alpha1.PoolPoweringDown: "PowerDown",
	v1alpha1.PoolPoweredDown: "PoweredDown",
}

// poolEvents returns what the change from before to after means: the warnings or, with all,
// every event. Nodes with the same one share it.
func poolEvents(before, after *v1alpha1.NodePoolStatus, all bool) []event {
	nodes := map[event][]string{}
	for _, name := range listed(before, after) {
		was, is := stateIn(before, name), stateIn(after, name)
		switch {
		case is.Reason != "" && is.Reason != was.Reason:
			e := event{corev1.EventTypeWarning, "NodeFailed", is.Reason}
			nodes[e] = append(nodes[e], name)
		case all && is.State != was.State && poolReasons[is.State] != "":
			e := event{corev1.EventTypeNormal, poolReasons[is.State], ""}
			nodes[e] = append(nodes[e], name)
		}
	}
	var out []event
	if after.Problem != "" && after.Problem != before.Problem {
		out = append(out, event{corev1.EventTypeWarning, "Problem", after.Problem})
	}
	for e, names := range nodes {
		text := hostlist.Fold(names)
		if e.message != "" {
			text += ": " + e.message
		}
		out = append(out, event{e.kind, e.reason, text})
	}
	slices.SortFunc(out, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.message, b.message))
	})
	return out
}

// listed returns the names of the nodes in either status.
func listed(a, b *v1alpha1.NodePoolStatus) []string {
	names := map[string]bool{}
	for _, s := range []*v1alpha1.NodePoolStatus{a, b} {
		for i := range s.Nodes {
			names[s.Nodes[i].Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// stateIn returns the state of a node; one that is not listed is powered down.
func stateIn(s *v1alpha1.NodePoolStatus, name string) v1alpha1.PoolNode {
	n, ok := s.Node(name)
	if !ok {
		n = v1alpha1.PoolNode{Name: name, State: v1alpha1.PoolPoweredDown}
	}
	return n
}
