package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// NodeNames returns the short names of the decision's nodes.
func (s *Snapshot) NodeNames(d backfill.Decision) []string {
	out := make([]string, 0, len(d.Nodes))
	for _, a := range d.Nodes {
		out = append(out, s.Nodes[a.Node].Name)
	}
	return out
}

// Allocator converts the decisions of one plan to allocations and assigns devices:
// each device to at most one of the decisions. Not safe for concurrent use.
type Allocator struct {
	snapshot *Snapshot
	assigned map[nodeGRES]backfill.CPUSet // nil: not computed yet
}

// nodeGRES is one generic resource of one node, by short name. Its devices are
// numbered across all types, in the order of backfill.Node.GRES.
type nodeGRES struct{ node, gres string }

// NewAllocator returns an Allocator for the decisions of one plan.
func (s *Snapshot) NewAllocator() *Allocator { return &Allocator{snapshot: s} }

// Allocation returns the decision's placement in the form of the job's status.
func (a *Allocator) Allocation(d backfill.Decision) *v1alpha1.Allocation {
	s := a.snapshot
	out := &v1alpha1.Allocation{}
	for _, assigned := range d.Nodes {
		n := v1alpha1.NodeAllocation{
			Name:   s.Nodes[assigned.Node].Name,
			Node:   s.nodes[assigned.Node].object.Name,
			CPUs:   int32(assigned.CPUs.Len()),
			CPUIDs: assigned.CPUs.String(),
			Memory: assigned.Memory,
			Tasks:  int32(assigned.Tasks),

			Topology: s.network.Address(s.Nodes[assigned.Node].Name),
		}
		if sharers := s.infos[d.ID].MaxSharers; sharers > 1 {
			n.Sharers = sharers
		}
		for _, g := range assigned.GRES {
			n.GRES = append(n.GRES, v1alpha1.GRESAllocation{
				Name: g.Name, Type: g.Type, Count: g.Count, Indexes: a.assignDevices(assigned.Node, g),
			})
		}
		out.Nodes = append(out.Nodes, n)
	}
	if b := s.Job(d.ID); b != nil {
		s.moveBatchHostFirst(out.Nodes, b.Spec.Job.Placement.Batch)
	}
	return out
}

// assignDevices returns the numbers of the devices of g on the node that a job
// gets: the lowest that no job holds and no earlier decision got. It returns "" if
// a device plugin chooses them (the container then numbers its own from 0), or if
// too few are known to be free.
func (a *Allocator) assignDevices(n int, g backfill.GRES) string {
	s := a.snapshot
	resource := wire.ResourceGRES + g.Name
	if g.Type != "" {
		resource += "-" + g.Type
	}
	if _, ours := s.nodes[n].object.Status.Allocatable[corev1.ResourceName(resource)]; !ours {
		return ""
	}
	if a.assigned == nil {
		a.assigned = s.heldDevices()
	}
	key := nodeGRES{s.Nodes[n].Name, g.Name}
	held := a.assigned[key]
	var out backfill.CPUSet
	for id := range s.devices(n, g) {
		if out.Len() == int(g.Count) {
			break
		}
		if !held.Has(id) {
			out.Add(id)
		}
	}
	if out.Len() < int(g.Count) {
		return ""
	}
	union := held.Clone()
	union.Union(out)
	a.assigned[key] = union
	return out.String()
}

// devices iterates over the numbers of the node's devices of g's name and type.
func (s *Snapshot) devices(n int, g backfill.GRES) func(func(int) bool) {
	return func(yield func(int) bool) {
		first := 0
		for _, r := range s.Nodes[n].GRES {
			if r.Name != g.Name {
				continue
			}
			if r.Type == g.Type {
				for i := range int(r.Count) {
					if !yield(first + i) {
						return
					}
				}
				return
			}
			first += int(r.Count)
		}
	}
}

// heldDevices returns the devices that jobs hold.
func (s *Snapshot) heldDevices() map[nodeGRES]backfill.CPUSet {
	held := map[nodeGRES]backfill.CPUSet{}
	for _, b := range s.jobs {
		if !b.HoldsAllocation() {
			continue
		}
		for i := range b.Status.Allocation.Nodes {
			addHeldDevices(held, &b.Status.Allocation.Nodes[i])
		}
	}
	return held
}

func addHeldDevices(held map[nodeGRES]backfill.CPUSet, a *v1alpha1.NodeAllocation) {
	for _, g := range a.GRES {
		ids, err := backfill.ParseCPUSet(g.Indexes)
		if g.Indexes == "" || err != nil {
			continue
		}
		key := nodeGRES{a.Name, g.Name}
		union := held[key].Clone()
		union.Union(ids)
		held[key] = union
	}
}

// IsValidBatchHost reports whether the features requested of the batch host (--batch)
// are a subset of those requested of all nodes (--constraint), or there are none.
func IsValidBatchHost(pl *job.Placement) bool {
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

// moveBatchHostFirst moves the first node that has the features of the batch host
// before the others. If no node has them, the first node remains the batch host,
// as in Slurm.
func (s *Snapshot) moveBatchHostFirst(nodes []v1alpha1.NodeAllocation, features string) {
	if features == "" {
		return
	}
	c, err := value.ParseConstraint(features)
	if err != nil {
		return
	}
	i := slices.IndexFunc(nodes, func(n v1alpha1.NodeAllocation) bool {
		number, known := s.byName[n.Name]
		has := func(f string) bool { return slices.Contains(s.nodes[number].features, f) }
		met := func(a value.Alternative) bool { return a.Every.Met(has) }
		return known && slices.ContainsFunc(c.Alternatives, met)
	})
	if i > 0 {
		host := nodes[i]
		copy(nodes[1:i+1], nodes[:i])
		nodes[0] = host
	}
}
