package api

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

const (
	errPartition     Refused = "Invalid partition name specified"
	errPartitionBusy Refused = "Partition is in use"
)

// partitionAction is scontrol create, update and delete of partitions.
func (o *Operations) partitionAction(c *directory.Caller, verb string, set map[string]string) (entityActor, error) {
	if err := partitionSettings(&v1alpha1.PartitionSpec{}, set); err != nil {
		return nil, err
	}
	if o.denied(c, authz.Partition, authz.Action(verb)) {
		return nil, errInvalidUser
	}
	switch verb {
	case status.OpUpdate:
		return func(ctx context.Context, name string) (string, error) { return name, o.updatePartition(ctx, name, set) }, nil
	case status.OpCreate:
		return func(ctx context.Context, name string) (string, error) { return name, o.createPartition(ctx, name, set) }, nil
	case status.OpDelete:
		return func(ctx context.Context, name string) (string, error) { return name, o.deletePartition(ctx, name) }, nil
	}
	return nil, errNotSupported
}

func (o *Operations) updatePartition(ctx context.Context, name string, set map[string]string) error {
	p, ok := o.Cluster.Partitions.Get(name)
	if !ok {
		if o.Directory.Partition(name) == nil {
			return errPartition
		}
		return o.createPartition(ctx, name, set) // the one that is assumed
	}
	if len(set) == 0 {
		return errNoChanges
	}
	n := p.DeepCopy()
	if err := partitionSettings(&n.Spec, set); err != nil {
		return err
	}
	if err := o.Cluster.Client.Update(ctx, n); err != nil {
		if apierrors.IsConflict(err) {
			return errNotNow
		}
		return err
	}
	o.Cluster.Partitions.Apply(n)
	return o.onlyDefault(ctx, n)
}

func (o *Operations) createPartition(ctx context.Context, name string, set map[string]string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return errPartition
	}
	p := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := partitionSettings(&p.Spec, set); err != nil {
		return err
	}
	if err := o.Cluster.Client.Create(ctx, p); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return errPartition
		}
		return err
	}
	o.Cluster.Partitions.Apply(p)
	return o.onlyDefault(ctx, p)
}

// onlyDefault takes the mark from the partition that was the default before p.
func (o *Operations) onlyDefault(ctx context.Context, p *v1alpha1.Partition) error {
	if !p.Spec.Default {
		return nil
	}
	for _, other := range o.Cluster.Partitions.List() {
		if other.Name == p.Name || !other.Spec.Default {
			continue
		}
		n := other.DeepCopy()
		if err := o.merge(ctx, n, map[string]any{"spec": map[string]any{"default": nil}}, false); err != nil {
			return err
		}
		o.Cluster.Partitions.Apply(n)
	}
	return nil
}

func (o *Operations) deletePartition(ctx context.Context, name string) error {
	p, ok := o.Cluster.Partitions.Get(name)
	if !ok {
		return errPartition
	}
	if len(o.Table.Select(ctx, table.Query{Partitions: []string{name}})) > 0 {
		return errPartitionBusy
	}
	return o.Cluster.Client.Delete(ctx, p)
}
