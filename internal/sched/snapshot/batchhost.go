package snapshot

import (
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// batchHostNamed tells whether the features of the batch host (--batch) are a
// subset of those that the nodes are to have, or it has none.
func batchHostNamed(pl *job.Placement) bool {
	if pl.Batch == "" {
		return true
	}
	host, err := value.ParseConstraint(pl.Batch)
	if err != nil {
		return false
	}
	nodes, err := value.ParseConstraint(pl.Constraint)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(host.Names, func(f string) bool { return !slices.Contains(nodes.Names, f) })
}

// batchHostFirst puts the first node that has the features of the batch host
// ahead of the others; where none has, the first node stays where it is, as in
// Slurm.
func (v *View) batchHostFirst(nodes []v1alpha1.NodeAllocation, features string) {
	if features == "" {
		return
	}
	c, err := value.ParseConstraint(features)
	if err != nil {
		return
	}
	i := slices.IndexFunc(nodes, func(n v1alpha1.NodeAllocation) bool {
		at, known := v.byName[n.Name]
		has := func(f string) bool { return slices.Contains(v.nodes[at].features, f) }
		return known && slices.ContainsFunc(c.Alternatives, func(a value.Alternative) bool { return a.Every.Met(has) })
	})
	if i > 0 {
		host := nodes[i]
		copy(nodes[1:i+1], nodes[:i])
		nodes[0] = host
	}
}
