package keeper

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// A disruption is that most nodes are unreachable at once: rather than so many nodes, their way to
// the API server has failed, and their jobs run on. The thresholds are those with which
// Kubernetes' node lifecycle controller stops its evictions. Such nodes are lost only when they
// have been unreachable for as long as Slurm waits by default (slurm.conf(5), SlurmdTimeout).
//
// The node lifecycle controller marks the nodes one after the other, so that a node that is
// unreachable is never lost at once.
const (
	disruptedNodes     = 3    // at least
	disruptedPart      = 0.55 // of all nodes, at least
	disruptionPatience = 5 * time.Minute
	lossPatience       = 5 * time.Second
	// After a disruption, nodes come back one after the other. Those that are still unreachable
	// get the time again that the node lifecycle controller gives a node.
	recoveryPatience = time.Minute
)

// reachability counts the nodes of the cluster.
type reachability struct {
	all, unreachable int
	recovers         time.Time // when the last disruption ended
}

func (r reachability) isDisrupted() bool {
	return r.unreachable >= disruptedNodes && float64(r.unreachable) >= disruptedPart*float64(r.all)
}

// count adds by to the numbers that include the node, if it is not nil.
func (r *reachability) count(n *corev1.Node, by int) {
	if n == nil {
		return
	}
	r.all += by
	if isUnreachable(n) {
		r.unreachable += by
	}
}

// countUnreachable counts a node that has changed. When a disruption is over, the jobs on the nodes
// that are still unreachable are queued, as these are lost at another time.
func (k *Keeper) countUnreachable(old, now *corev1.Node) {
	k.mu.Lock()
	was := k.reach.isDisrupted()
	k.reach.count(old, -1)
	k.reach.count(now, 1)
	is := k.reach.isDisrupted()
	if was && !is {
		k.reach.recovers = k.Now()
	}
	k.mu.Unlock()
	switch {
	case is && !was:
		k.Log.Warn("most nodes are unreachable: their jobs are waited for", "patience", disruptionPatience)
	case was && !is:
		k.Log.Info("most nodes are reachable again")
		k.enqueueAll(func(j *v1alpha1.BatchJob) bool {
			return j.HoldsAllocation() && j.Status.Allocation != nil && k.anyUnreachable(j.Status.Allocation)
		})
	}
}

func (k *Keeper) anyUnreachable(a *v1alpha1.Allocation) bool {
	for i := range a.Nodes {
		if n, _ := k.poolNode(a.Nodes[i].ObjectName()); n != nil && isUnreachable(n) {
			return true
		}
	}
	return false
}

// nodeLost is Facts.Lost.
func (k *Keeper) nodeLost(name string) bool {
	n, _ := k.poolNode(name)
	return n == nil || isUnreachable(n) && !k.Now().Before(k.lostAt(n))
}

// lostAt returns when an unreachable node is lost.
func (k *Keeper) lostAt(n *corev1.Node) time.Time {
	k.mu.Lock()
	reach := k.reach
	k.mu.Unlock()
	since := readiness(n).LastTransitionTime.Time
	if reach.isDisrupted() {
		return since.Add(disruptionPatience)
	}
	at := since.Add(lossPatience)
	if again := reach.recovers.Add(recoveryPatience); !since.After(reach.recovers) && again.After(at) {
		at = again
	}
	return at
}

// nextLost returns when the next of the job's nodes will be lost; zero: none will.
func (k *Keeper) nextLost(b *v1alpha1.BatchJob) (next time.Time) {
	a := b.Status.Allocation
	if a == nil || !b.HoldsAllocation() {
		return time.Time{}
	}
	for i := range a.Nodes {
		n, _ := k.poolNode(a.Nodes[i].ObjectName())
		if n == nil || !isUnreachable(n) {
			continue
		}
		if at := k.lostAt(n); at.After(k.Now()) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// isUnreachable reports whether Kubernetes has not heard of the node for the grace period of the
// node lifecycle controller.
func isUnreachable(n *corev1.Node) bool {
	c := readiness(n)
	return c != nil && c.Status == corev1.ConditionUnknown
}

// readiness returns the Ready condition of the node, or nil.
func readiness(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}
