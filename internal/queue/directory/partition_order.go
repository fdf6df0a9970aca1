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

// SortNodePartitions sorts the partitions of each node as SortPartitions does.
func (d *Directory) SortNodePartitions(rows []status.Node) {
	position := d.partitionOrder()
	for i := range rows {
		names := slices.Clone(rows[i].Partitions) // other readers may have the old list
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(position[a], position[b]) })
		rows[i].Partitions = names
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
