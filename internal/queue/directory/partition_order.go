package directory

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// SortPartitions sorts partitions as Slurm lists them: first in the order of
// slurm.conf (OrderAnnotation), then by the time of their creation, and by name
// those of the same second.
func (d *Directory) SortPartitions(rows []status.Partition) {
	position := d.partitionOrder()
	slices.SortStableFunc(
		rows, func(a, b status.Partition) int { return cmp.Compare(position[a.Name], position[b.Name]) },
	)
}

// SortNodePartitions sorts the partitions of each node as SortPartitions does. It replaces the lists
// that are in another order, and does not change them: other rows may have the same list.
func (d *Directory) SortNodePartitions(rows []status.Node) {
	position := d.partitionOrder()
	byPosition := func(a, b string) int { return cmp.Compare(position[a], position[b]) }
	for i := range rows {
		if !slices.IsSortedFunc(rows[i].Partitions, byPosition) {
			rows[i].Partitions = slices.SortedStableFunc(slices.Values(rows[i].Partitions), byPosition)
		}
	}
}

// partitionOrder returns the position of each partition in lists.
func (d *Directory) partitionOrder() map[string]int {
	position := map[string]int{}
	list := slices.Clone(d.Partitions())
	slices.SortStableFunc(list, func(a, b *v1alpha1.Partition) int {
		return cmp.Or(
			cmp.Compare(configuredOrder(a), configuredOrder(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		)
	})
	for i, p := range list {
		position[p.Name] = i
	}
	return position
}

// configuredOrder returns the partition's number in slurm.conf; partitions without
// one come last.
func configuredOrder(p *v1alpha1.Partition) int {
	if n, err := strconv.Atoi(p.Annotations[v1alpha1.OrderAnnotation]); err == nil {
		return n
	}
	return math.MaxInt
}
