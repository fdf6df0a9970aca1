package clusterview

import (
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// deviceKind is the name and the type of a generic resource.
type deviceKind struct{ name, kind string }

// devicesByKind are the numbers of the devices of a node that jobs hold.
type devicesByKind map[deviceKind]backfill.CPUSet

// with returns d with the devices of the job on the node.
func (d devicesByKind) with(b *v1alpha1.BatchJob, node string) devicesByKind {
	if b.Status.Allocation == nil {
		return d
	}
	for i := range b.Status.Allocation.Nodes {
		a := &b.Status.Allocation.Nodes[i]
		if a.Name != node {
			continue
		}
		for _, g := range a.GRES {
			ids, err := backfill.ParseCPUSet(g.Indexes)
			if err != nil || ids.Len() == 0 {
				continue
			}
			if d == nil {
				d = devicesByKind{}
			}
			of := deviceKind{g.Name, g.Type}
			union := d[of].Clone()
			union.Union(ids)
			d[of] = union
		}
	}
	return d
}

// format returns the list with the numbers of the devices; "" if none are known.
func (d devicesByKind) format(list []backfill.GRES) string {
	if len(d) == 0 {
		return ""
	}
	var out []string
	for _, g := range list {
		item := formatGRES([]backfill.GRES{g})
		if ids := d[deviceKind{g.Name, g.Type}]; ids.Len() > 0 {
			item += "(IDX:" + ids.String() + ")"
		} else if g.Count == 0 {
			item += "(IDX:N/A)"
		}
		out = append(out, item)
	}
	return strings.Join(out, ",")
}
