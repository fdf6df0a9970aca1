package control

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

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
