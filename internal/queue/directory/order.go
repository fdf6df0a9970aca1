package directory

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/status"
)

// SortPartitions puts partitions into the order in which Slurm tells of them:
// that of slurm.conf (OrderAnnotation), then that in which they were made, and
// by name those of one second.
func (d *Directory) SortPartitions(rows []status.Partition) {
	places := map[string]int{}
	list := slices.Clone(d.Partitions())
	slices.SortStableFunc(list, func(a, b *v1alpha1.Partition) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	for i, p := range list {
		places[p.Name] = i
	}
	slices.SortStableFunc(rows, func(a, b status.Partition) int { return cmp.Compare(places[a.Name], places[b.Name]) })
}

// place is the partition's number; those without come last.
func place(p *v1alpha1.Partition) int {
	if n, err := strconv.Atoi(p.Annotations[v1alpha1.OrderAnnotation]); err == nil {
		return n
	}
	return math.MaxInt
}
