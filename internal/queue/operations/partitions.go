package operations

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

// partitionAction returns the action of scontrol create, update or delete for
// partitions. Settings that no partition could have are refused first.
func (s *Service) partitionAction(c *directory.Caller, verb string, settings map[string]string) (entityAction, error) {
	if err := applyPartitionSettings(&v1alpha1.PartitionSpec{}, settings); err != nil {
		return nil, err
	}
	if err := s.permitEntity(c, authz.Partition, actionOf(verb), refusal.InvalidUser); err != nil {
		return nil, err
	}
	switch verb {
	case status.OpCreate:
		return withName(
			func(ctx context.Context, name string) error { return s.createPartition(ctx, name, settings) },
		), nil
	case status.OpUpdate:
		return withName(
			func(ctx context.Context, name string) error { return s.updatePartition(ctx, name, settings) },
		), nil
	case status.OpDelete:
		return withName(s.deletePartition), nil
	}
	return nil, refusal.NotSupported
}

func (s *Service) createPartition(ctx context.Context, name string, settings map[string]string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return refusal.InvalidPartition
	}
	p := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := applyPartitionSettings(&p.Spec, settings); err != nil {
		return err
	}
	err := s.Cluster.Client.Create(ctx, p)
	switch {
	case apierrors.IsAlreadyExists(err):
		return refusal.InvalidPartition
	case err != nil:
		return err
	}
	s.Cluster.Partitions.Apply(p)
	return s.clearOtherDefaults(ctx, p)
}

func (s *Service) updatePartition(ctx context.Context, name string, settings map[string]string) error {
	p, ok := s.Cluster.Partitions.Get(name)
	if !ok {
		if s.Directory.Partition(name) == nil {
			return refusal.InvalidPartition
		}
		return s.createPartition(ctx, name, settings) // the partition of a cluster without Partitions
	}
	if len(settings) == 0 {
		return refusal.NoChanges
	}
	n := p.DeepCopy()
	if err := applyPartitionSettings(&n.Spec, settings); err != nil {
		return err
	}
	err := s.Cluster.Client.Update(ctx, n)
	switch {
	case apierrors.IsConflict(err):
		return refusal.NotAlterableNow
	case err != nil:
		return err
	}
	s.Cluster.Partitions.Apply(n)
	return s.clearOtherDefaults(ctx, n)
}

// clearOtherDefaults makes p, if it is the default partition, the only one.
func (s *Service) clearOtherDefaults(ctx context.Context, p *v1alpha1.Partition) error {
	if !p.Spec.Default {
		return nil
	}
	for _, other := range s.Cluster.Partitions.List() {
		if other.Name == p.Name || !other.Spec.Default {
			continue
		}
		n := other.DeepCopy()
		if err := s.patch(ctx, n, specPatch(map[string]any{"default": nil})); err != nil {
			return err
		}
		s.Cluster.Partitions.Apply(n)
	}
	return nil
}

func (s *Service) deletePartition(ctx context.Context, name string) error {
	p, ok := s.Cluster.Partitions.Get(name)
	if !ok {
		return refusal.InvalidPartition
	}
	if len(s.Table.Select(ctx, table.Query{Partitions: []string{name}})) > 0 {
		return refusal.PartitionInUse
	}
	return s.Cluster.Client.Delete(ctx, p)
}
