package keeper

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/keeper/decide"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/sched/pools"
	"github.com/berth-hpc/berth/internal/wire"
)

// poolChanged queues the jobs that wait for nodes, and those on nodes that are to be removed at
// once.
func (k *Keeper) poolChanged(_, now *v1alpha1.NodePool) {
	forced := map[string]bool{}
	for i := range now.GetStatus().Nodes {
		if n := &now.Status.Nodes[i]; n.Force {
			forced[n.Name] = true
		}
	}
	k.enqueueAll(func(j *v1alpha1.BatchJob) bool {
		a := j.Status.Allocation
		return j.Status.State == v1alpha1.StateConfiguring || len(forced) > 0 && a != nil && j.HoldsAllocation() &&
			slices.ContainsFunc(a.Nodes, func(x v1alpha1.NodeAllocation) bool {
				return forced[x.ObjectName()] || forced[x.Name]
			})
	})
}

// boot is Facts.Boot.
func (k *Keeper) boot(name string) decide.Boot {
	all := k.Cluster.NodePools.List()
	if len(all) == 0 {
		return decide.Boot{}
	}
	object, name := k.poolNode(name)
	pool := pools.Of(all, name)
	if pool == nil {
		return decide.Boot{}
	}
	switch s := pools.StateOf(pool, name, object, k.Now()); s.State {
	case v1alpha1.PoolPoweredDown, v1alpha1.PoolPoweringUp:
		if s.State == v1alpha1.PoolPoweredDown && !s.IsUsable() {
			return decide.Boot{Failed: "its node pool is being deleted"}
		}
		return decide.Boot{Waiting: true}
	case v1alpha1.PoolPoweringDown, v1alpha1.PoolFailed:
		return decide.Boot{Failed: cmp.Or(s.Reason, "it is being removed")}
	default:
		return decide.Boot{Ready: s.Since.Time}
	}
}

// nodeDown is Facts.Down.
func (k *Keeper) nodeDown(name string) bool {
	n, _ := k.poolNode(name)
	return n != nil && isDown(n) || k.isForcedDown(name)
}

// AlignsCPUs reports whether the kubelet of the node refuses pods whose CPUs it cannot give
// together. There, a pod that waits for another job would have CPUs that the plan takes for free.
func (k *Keeper) AlignsCPUs(name string) bool {
	n, _ := k.poolNode(name)
	return n != nil && nodeinfo.TopologyManagerOf(n).RefusesPods()
}

// hasSharedCPUs reports whether the kubelet of the node is known to let all pods run on all CPUs.
func (k *Keeper) hasSharedCPUs(name string) bool {
	n, _ := k.poolNode(name)
	if n == nil {
		return false
	}
	exclusive, known := nodeinfo.HasExclusiveCPUs(n)
	return known && !exclusive
}

// removal returns when it was announced that the node will be removed, and what announced it.
func (k *Keeper) removal(name string) (at time.Time, by string) {
	n, _ := k.poolNode(name)
	if n == nil {
		return time.Time{}, ""
	}
	when, by, _ := strings.Cut(n.Annotations[wire.AnnotationRemoval], " ")
	at, err := time.Parse(time.RFC3339, when)
	if err != nil {
		return time.Time{}, ""
	}
	return at, by
}

// isForcedDown reports whether an operator ended the jobs of the node to remove it.
func (k *Keeper) isForcedDown(name string) bool {
	all := k.Cluster.NodePools.List()
	if len(all) == 0 {
		return false
	}
	_, name = k.poolNode(name)
	pool := pools.Of(all, name)
	if pool == nil {
		return false
	}
	n, _ := pool.Status.Node(name)
	return n.Force
}

// poolNode returns the object of a node, or nil, and the name by which pools list the node.
// Given is the name of the object, or for a node whose object did not exist when a job got it,
// that by which its pool lists it.
func (k *Keeper) poolNode(given string) (*corev1.Node, string) {
	if n, ok := k.Cluster.Nodes.Get(given); ok {
		return n, nodeinfo.PoolName(n)
	}
	return pools.Object(given, k.Cluster.NodesNamed(given)...), given
}

// nameObjects writes to the allocation of a job whose nodes have come the names of their
// objects, if what brought the nodes chose others than those of the pool. changed: the store
// has another version of the job.
func (k *Keeper) nameObjects(ctx context.Context, b *v1alpha1.BatchJob) (changed bool, err error) {
	names := map[string]string{}
	for i := range b.Status.Allocation.Nodes {
		given := b.Status.Allocation.Nodes[i].ObjectName()
		if n, _ := k.poolNode(given); n != nil && n.Name != given {
			names[given] = n.Name
		}
	}
	if len(names) == 0 {
		return false, nil
	}
	_, err = k.write(ctx, b, func(s *v1alpha1.BatchJobStatus) {
		for i := range s.Allocation.Nodes {
			if n := &s.Allocation.Nodes[i]; names[n.ObjectName()] != "" {
				n.Node = names[n.ObjectName()]
			}
		}
	})
	return true, err
}
