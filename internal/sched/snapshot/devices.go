package snapshot

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/wire"
)

// place is one generic resource of one node, by short name: its devices are
// numbered through all types, in the order of backfill.Node.GRES.
type place struct{ node, gres string }

// assignDevices chooses which devices of g on the node a job gets: the lowest
// that no job holds and no decision of this view was given. "" where a device
// plugin chooses them (it tells the container, which then counts its own from
// 0), or where too few are known to be free.
func (v *View) assignDevices(n int, g backfill.GRES) string {
	resource := wire.ResourceGRES + g.Name
	if g.Type != "" {
		resource += "-" + g.Type
	}
	if _, ours := v.nodes[n].object.Status.Allocatable[corev1.ResourceName(resource)]; !ours {
		return ""
	}
	if v.devices == nil {
		v.devices = v.devicesHeld()
	}
	at := place{v.Nodes[n].Name, g.Name}
	held := v.devices[at]
	var out backfill.CPUSet
	for first := range v.devicesOf(n, g) {
		if out.Len() == int(g.Count) {
			break
		}
		if !held.Has(first) {
			out.Add(first)
		}
	}
	if out.Len() < int(g.Count) {
		return ""
	}
	taken := held.Clone()
	taken.Union(out)
	v.devices[at] = taken
	return out.String()
}

// devicesOf yields the numbers of the node's devices of g's name and type.
func (v *View) devicesOf(n int, g backfill.GRES) func(func(int) bool) {
	return func(yield func(int) bool) {
		first := 0
		for _, h := range v.Nodes[n].GRES {
			if h.Name != g.Name {
				continue
			}
			if h.Type == g.Type {
				for i := range int(h.Count) {
					if !yield(first + i) {
						return
					}
				}
				return
			}
			first += int(h.Count)
		}
	}
}

// devicesHeld are the devices that jobs hold now.
func (v *View) devicesHeld() map[place]backfill.CPUSet {
	held := map[place]backfill.CPUSet{}
	for _, b := range v.jobs {
		if !b.HoldsAllocation() {
			continue
		}
		for i := range b.Status.Allocation.Nodes {
			hold(held, &b.Status.Allocation.Nodes[i])
		}
	}
	return held
}

func hold(held map[place]backfill.CPUSet, a *v1alpha1.NodeAllocation) {
	for _, g := range a.GRES {
		ids, err := backfill.ParseCPUSet(g.Indexes)
		if g.Indexes == "" || err != nil {
			continue
		}
		at := place{a.Name, g.Name}
		all := held[at].Clone()
		all.Union(ids)
		held[at] = all
	}
}
