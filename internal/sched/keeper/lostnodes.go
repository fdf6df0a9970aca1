package keeper

import (
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
)

// nodeUnreachable is Facts.Unreachable.
func (k *Keeper) nodeUnreachable(name string) bool {
	n, _ := k.poolNode(name)
	return n == nil || nodeinfo.IsUnreachable(n)
}

// nodeLost is Facts.Lost.
func (k *Keeper) nodeLost(name string) bool {
	n, _ := k.poolNode(name)
	if n == nil {
		return true
	}
	parameters := k.Cluster.Parameters()
	return nodeinfo.IsUnreachable(n) && nodeinfo.IsLost(n, parameters.NodeTimeout(), k.Now())
}

// nextLost returns when the next of the job's nodes will be lost; zero: none will.
func (k *Keeper) nextLost(b *v1alpha1.BatchJob) (next time.Time) {
	a := b.Status.Allocation
	if a == nil || !b.HoldsAllocation() {
		return time.Time{}
	}
	parameters := k.Cluster.Parameters()
	for i := range a.Nodes {
		n, _ := k.poolNode(a.Nodes[i].ObjectName())
		if n == nil || !nodeinfo.IsUnreachable(n) {
			continue
		}
		if at := nodeinfo.LostAt(n, parameters.NodeTimeout()); at.After(k.Now()) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// settingsChanged queues the jobs on unreachable nodes if these are lost at another time now.
func (k *Keeper) settingsChanged(old, now *v1alpha1.Cluster) {
	timeout := func(c *v1alpha1.Cluster) int32 {
		if c == nil || c.Spec.SlurmdTimeout == nil {
			return -1 // the default
		}
		return *c.Spec.SlurmdTimeout
	}
	if timeout(old) == timeout(now) {
		return
	}
	k.enqueueAll(func(j *v1alpha1.BatchJob) bool {
		return j.HoldsAllocation() && j.Status.Allocation != nil && k.anyUnreachable(j.Status.Allocation)
	})
}

func (k *Keeper) anyUnreachable(a *v1alpha1.Allocation) bool {
	for i := range a.Nodes {
		if n, _ := k.poolNode(a.Nodes[i].ObjectName()); n != nil && nodeinfo.IsUnreachable(n) {
			return true
		}
	}
	return false
}
