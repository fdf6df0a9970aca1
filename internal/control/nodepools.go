package control

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// NewNodes returns an empty store of nodes.
func NewNodes() *Store[*corev1.Node] { return NewStore(name[*corev1.Node], assignedName) }

// assignedName is the index key of nodes that have another name beside that of their object.
func assignedName(n *corev1.Node) string {
	if a := n.Annotations[wire.AnnotationNodeName]; a != "" && a != n.Name {
		return "named/" + a
	}
	return ""
}

// NodesNamed returns the nodes whose objects have the name or the annotation
// wire.AnnotationNodeName with it, in no order.
func (c *Cluster) NodesNamed(name string) []*corev1.Node {
	out := c.Nodes.ByIndex("named/" + name)
	if n, ok := c.Nodes.Get(name); ok {
		out = append(out, n)
	}
	return out
}

// WritePool changes the status of a pool, which must be the newest version. If it is not, the
// newest one is read into the store, and the error is a conflict.
func (c *Cluster) WritePool(
	ctx context.Context, p *v1alpha1.NodePool, change func(*v1alpha1.NodePoolStatus),
) error {
	n := p.DeepCopy()
	change(&n.Status)
	err := c.Client.Status().Update(ctx, n)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		fresh := &v1alpha1.NodePool{}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(p), fresh); err == nil {
			c.NodePools.Apply(fresh)
		}
		return err
	case err != nil:
		return fmt.Errorf("writing the state of node pool %s: %w", p.Name, err)
	}
	c.NodePools.Apply(n)
	return nil
}
