package power

import (
	"cmp"
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/sched/pools"
	"github.com/berth-hpc/berth/internal/wire"
)

// removeObjects deletes the objects of nodes that were removed and no longer respond, or that
// Karpenter never registered: on many clusters nothing else does.
func (x *Controller) removeObjects(ctx context.Context, p *v1alpha1.NodePool) error {
	var failed error
	for _, n := range p.Status.Nodes {
		o := x.node(n.Name)
		if n.State != v1alpha1.PoolPoweringDown || !n.Requested || o == nil ||
			pools.IsReady(o) && !pools.IsUnregistered(o) {
			continue
		}
		failed = cmp.Or(x.deleteObject(ctx, o), failed)
	}
	return failed
}

// removeSurplus deletes the objects of nodes that were launched twice, but for the one that is
// the node of the pool.
func (x *Controller) removeSurplus(ctx context.Context, p *v1alpha1.NodePool) error {
	if p.Spec.Karpenter == nil {
		return nil
	}
	busy := sync.OnceValue(x.busyNodes)
	var failed error
	for _, n := range x.cluster.Nodes.List() {
		name := nodeinfo.PoolName(n)
		if n.Labels[wire.LabelNodePool] != p.Name || name == n.Name || n.DeletionTimestamp != nil {
			continue
		}
		if o := x.node(name); o == nil || o.UID == n.UID || pools.IsUnregistered(o) || busy()[n.Name] {
			continue
		}
		x.log.Warn("a second node was launched for one of a pool", "pool", p.Name, "node", name, "object", n.Name)
		failed = cmp.Or(x.deleteObject(ctx, n), failed)
	}
	return failed
}

// deleteObject deletes the object of a node, if it still is the same one.
func (x *Controller) deleteObject(ctx context.Context, o *corev1.Node) error {
	err := x.cluster.Client.Delete(ctx, o, client.Preconditions{UID: &o.UID})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		x.log.Warn("node object not deleted", "node", o.Name, "error", err)
		return err
	}
	if len(o.Finalizers) == 0 { // else the watch reports when it is gone
		x.cluster.Nodes.Remove(o, x.now())
	}
	return nil
}
