package reserve

import (
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// placeCores chooses the cores of a reservation that requests a number of them. As in
// Slurm, once they are chosen they stay the same.
func (p *Pool) placeCores(r *v1alpha1.Reservation, replace bool) error {
	s := &r.Spec
	switch {
	case len(s.Cores) > 0:
		return p.checkCores(r)
	case replace:
		return refusal.InvalidCPUCount
	case slices.Max(s.CoreCounts) == 0:
		return refusal.NodesBusy
	}
	free := p.freeCores(r)
	var err error
	if s.Nodes != "" {
		err = p.chooseCoresOfNodes(s, free)
	} else {
		err = p.chooseCores(r, free)
	}
	if err != nil {
		return err
	}
	change.OrderFlags(s)
	return nil
}

// checkCores refuses a reservation whose cores are not free at its time, which may
// have changed since they were chosen.
func (p *Pool) checkCores(r *v1alpha1.Reservation) error {
	free := p.freeCores(r)
	names, err := hostlist.Expand(r.Spec.Nodes)
	if err != nil || len(names) != len(r.Spec.Cores) {
		return refusal.ReservationCoresFixed
	}
	for _, n := range names {
		ids, ok := r.Spec.Cores[n]
		if !ok {
			return refusal.ReservationCoresFixed
		}
		for _, id := range array.Parse(ids) {
			if !slices.Contains(free[n], id) {
				return refusal.ReservationOverlap
			}
		}
	}
	return nil
}

// chooseCoresOfNodes chooses cores of the named nodes, as many of each as the
// reservation requests.
func (p *Pool) chooseCoresOfNodes(s *v1alpha1.ReservationSpec, free map[string][]int32) error {
	names, err := hostlist.Expand(s.Nodes)
	if err != nil || slices.ContainsFunc(names, func(n string) bool { return p.node(n) == nil }) {
		return refusal.InvalidNode
	}
	switch {
	case len(s.CoreCounts) < len(names):
		return refusal.InvalidCoreCount
	case len(s.CoreCounts) > len(names):
		return refusal.NodesBusy
	}
	for i, n := range names {
		if !reserveCores(s, n, free[n], int(s.CoreCounts[i])) {
			return refusal.NodesBusy
		}
	}
	s.Nodes = hostlist.Fold(names)
	if s.Partition == "" {
		s.Partition = p.DefaultPartition
	}
	s.Flags = with(s.Flags, "SPEC_NODES")
	return nil
}

// chooseCores chooses cores of any nodes: the same number of each of NodeCount nodes,
// or a number for one node after the other (CoreCounts); else as many as are free,
// node by node.
func (p *Pool) chooseCores(r *v1alpha1.Reservation, free map[string][]int32) error {
	s := &r.Spec
	candidates, err := p.candidates(s)
	if err != nil {
		return err
	}
	var chosen []string
	each, spread := coresEach(s)
	left := int(s.CoreCounts[0])
	for i := range candidates {
		n := candidates[i].Name
		if !Usable(&candidates[i]) && !Flagged(s, "MAINT") {
			continue
		}
		count := 0
		switch {
		case spread:
			count = min(left, len(eligibleCores(s, free[n])))
			left -= count
		case len(chosen) < len(each):
			count = each[len(chosen)]
		}
		if count > 0 && reserveCores(s, n, free[n], count) {
			chosen = append(chosen, n)
		}
	}
	if spread && left > 0 || !spread && len(chosen) < len(each) {
		return refusal.NodesBusy
	}
	s.Nodes = hostlist.Fold(chosen)
	return nil
}

// coresEach returns the number of cores of each node; spread: the cores may be on any
// nodes.
func coresEach(s *v1alpha1.ReservationSpec) (each []int, spread bool) {
	count := int(s.NodeCount)
	switch {
	case len(s.CoreCounts) > 1:
		for _, n := range s.CoreCounts {
			each = append(each, int(n))
		}
		return each, false
	case count == 0:
		return nil, true
	}
	perNode := (int(s.CoreCounts[0]) + count - 1) / count
	if Flagged(s, "FIRST_CORES") {
		perNode = int(s.CoreCounts[0])
	}
	return slices.Repeat([]int{perNode}, count), false
}

// reserveCores adds cores of the node to the reservation. It returns false if there are
// not enough.
func reserveCores(s *v1alpha1.ReservationSpec, node string, free []int32, count int) bool {
	free = eligibleCores(s, free)
	if count < 1 || len(free) < count {
		return false
	}
	if s.Cores == nil {
		s.Cores = map[string]string{}
	}
	s.Cores[node] = array.Set(free[:count]).String()
	return true
}

// eligibleCores returns the free cores that the reservation may get: with FIRST_CORES
// the first ones of the node, without a gap.
func eligibleCores(s *v1alpha1.ReservationSpec, free []int32) []int32 {
	if !Flagged(s, "FIRST_CORES") {
		return free
	}
	for i, id := range free {
		if id != int32(i) {
			return free[:i]
		}
	}
	return free
}

func (p *Pool) node(name string) *status.Node {
	for i := range p.Nodes {
		if p.Nodes[i].Name == name {
			return &p.Nodes[i]
		}
	}
	return nil
}

// freeCores returns the cores of each node that are not occupied during r's time.
func (p *Pool) freeCores(r *v1alpha1.Reservation) map[string][]int32 {
	occupied := p.occupiedCores(r)
	free := make(map[string][]int32, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for id := range n.CPUs / max(n.Threads, 1) {
			if o := occupied[n.Name]; !o.all && !o.set.Has(id) {
				free[n.Name] = append(free[n.Name], id)
			}
		}
	}
	return free
}

// coreSet is a set of cores of one node.
type coreSet struct {
	all bool
	set array.Set
}

// occupiedCores returns the cores that others have during r's time.
func (p *Pool) occupiedCores(r *v1alpha1.Reservation) map[string]coreSet {
	occupied := map[string]coreSet{}
	add := func(node string, set array.Set, all bool) {
		o := occupied[node]
		occupied[node] = coreSet{o.all || all, o.set.With(set)}
	}
	p.eachOverlap(r, func(other *v1alpha1.ReservationSpec, nodes []string) {
		for _, n := range nodes {
			add(n, array.Parse(other.Cores[n]), len(other.Cores) == 0)
		}
	})
	p.eachAllocation(r, func(a *v1alpha1.NodeAllocation) {
		n := p.node(a.Name)
		if n == nil {
			return
		}
		threads := max(n.Threads, 1)
		var set array.Set
		for _, cpu := range array.Parse(a.CPUIDs) {
			set = set.With(array.Set{cpu / threads})
		}
		add(a.Name, set, a.CPUIDs == "")
	})
	return occupied
}
