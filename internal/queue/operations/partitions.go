package operations

import (
	"context"
	"slices"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/hostlist"
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
	if !validPartitionName(name) {
		return refusal.InvalidPartition
	}
	if _, exists := s.Cluster.Partitions.Get(name); exists {
		return refusal.InvalidPartition
	}
	p := v1alpha1.NewPartition(name)
	if s.Cluster.Partitions.Len() > 0 || s.Directory.Partition(name) == nil {
		p.Spec.Nodes, p.Spec.MinNodes = v1alpha1.NoNodes, 1
	}
	if err := s.applyExisting(&p.Spec, settings); err != nil {
		return err
	}
	err := s.Cluster.Client.Create(ctx, p, byCommand)
	switch {
	case apierrors.IsAlreadyExists(err):
		return refusal.InvalidPartition
	case err != nil:
		return err
	}
	control.Named(p)
	s.Cluster.Partitions.Apply(p)
	return s.clearOtherDefaults(ctx, p)
}

// applyExisting sets all settings, or returns the first refusal. Nodes that the settings
// name must exist.
func (s *Service) applyExisting(p *v1alpha1.PartitionSpec, settings map[string]string) error {
	if err := applyPartitionSettings(p, settings); err != nil {
		return err
	}
	list, given := settings["nodes"]
	if !given || strings.EqualFold(list, "ALL") {
		return nil
	}
	names, err := hostlist.Expand(list)
	if err != nil {
		return refusal.InvalidNode
	}
	known := map[string]bool{}
	for _, n := range s.Nodes() {
		known[n.Name] = true
	}
	if slices.ContainsFunc(names, func(name string) bool { return !known[name] }) {
		return refusal.InvalidNode
	}
	return nil
}

// validPartitionName reports whether a partition may have the name: Slurm accepts all
// that a list of partitions can contain.
func validPartitionName(name string) bool {
	unusable := func(r rune) bool { return r == ',' || unicode.IsSpace(r) || unicode.IsControl(r) }
	return name != "" && len(name) <= bounds.MaxObjectName && !strings.ContainsFunc(name, unusable)
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
	n := control.Stored(p).(*v1alpha1.Partition)
	if err := s.applyExisting(&n.Spec, settings); err != nil {
		return err
	}
	err := s.Cluster.Client.Update(ctx, n, byCommand)
	switch {
	case apierrors.IsConflict(err):
		return refusal.NotAlterableNow
	case err != nil:
		return err
	}
	control.Named(n)
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
		n := control.Stored(other)
		if err := s.patch(ctx, n, specPatch(map[string]any{"default": nil})); err != nil {
			return err
		}
		control.Named(n)
		s.Cluster.Partitions.Apply(n.(*v1alpha1.Partition))
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
	return s.Cluster.Client.Delete(ctx, control.Stored(p))
}
