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

// placeCores chooses the cores of a reservation that asks for a number of them.
// Of one that has its cores only what concerns neither them nor its time may be
// changed, as in Slurm.
func (p *Pool) placeCores(r *v1alpha1.Reservation, replace bool) error {
	s := &r.Spec
	switch {
	case len(s.Cores) > 0:
		return p.keepCores(r)
	case replace:
		return refusal.InvalidCPUCount
	case slices.Max(s.CoreCounts) == 0:
		return refusal.NodesBusy
	}
	free := p.freeCores(r)
	var err error
	switch {
	case s.Nodes != "":
		err = p.namedCores(s, free)
	default:
		err = p.findCores(r, free)
	}
	if err != nil {
		return err
	}
	change.OrderFlags(s)
	return nil
}

// keepCores is about a reservation whose cores are chosen: at its time, which may
// be another now, nobody else may have them.
func (p *Pool) keepCores(r *v1alpha1.Reservation) error {
	free := p.freeCores(r)
	names, err := hostlist.Expand(r.Spec.Nodes)
	if err != nil || len(names) != len(r.Spec.Cores) {
		return refusal.ReservationCoresFixed
	}
	for _, n := range names {
		ids, has := r.Spec.Cores[n]
		if !has {
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

// namedCores takes cores of the nodes that are named, as many of each as is said.
func (p *Pool) namedCores(s *v1alpha1.ReservationSpec, free map[string][]int32) error {
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
		if !takeCores(s, n, free[n], int(s.CoreCounts[i])) {
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

// findCores takes cores of whichever nodes have them: of as many nodes as is
// said the same number of each, or a number of one after the other; else as many
// as there are, node by node.
func (p *Pool) findCores(r *v1alpha1.Reservation, free map[string][]int32) error {
	s := &r.Spec
	of, err := p.candidates(s)
	if err != nil {
		return err
	}
	var chosen []string
	each, spread := coresEach(s)
	left := int(s.CoreCounts[0])
	for i := range of {
		n := of[i].Name
		if !Usable(&of[i]) && !Flagged(s, "MAINT") {
			continue
		}
		want := 0
		switch {
		case spread:
			want = min(left, len(lowest(s, free[n])))
			left -= want
		case len(chosen) < len(each):
			want = each[len(chosen)]
		}
		if want > 0 && takeCores(s, n, free[n], want) {
			chosen = append(chosen, n)
		}
	}
	if spread && left > 0 || !spread && len(chosen) < len(each) {
		return refusal.NodesBusy
	}
	s.Nodes = hostlist.Fold(chosen)
	return nil
}

// coresEach is how many cores each of the nodes is to have; spread: it does not
// matter where the cores are.
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
	per := (int(s.CoreCounts[0]) + count - 1) / count
	if Flagged(s, "FIRST_CORES") {
		per = int(s.CoreCounts[0])
	}
	return slices.Repeat([]int{per}, count), false
}

// takeCores gives the reservation so many cores of the node; false: there are
// not enough.
func takeCores(s *v1alpha1.ReservationSpec, node string, free []int32, count int) bool {
	if free = lowest(s, free); count < 1 || len(free) < count {
		return false
	}
	if s.Cores == nil {
		s.Cores = map[string]string{}
	}
	s.Cores[node] = array.Set(free[:count]).String()
	return true
}

// lowest are the free cores that the reservation may have: with FIRST_CORES the
// lowest of the node, without a gap.
func lowest(s *v1alpha1.ReservationSpec, free []int32) []int32 {
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

// freeCores are the cores of each node that nobody else has during r's time.
func (p *Pool) freeCores(r *v1alpha1.Reservation) map[string][]int32 {
	taken := p.takenCores(r)
	free := make(map[string][]int32, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for id := range n.CPUs / max(n.Threads, 1) {
			if has := taken[n.Name]; !has.all && !has.set.Has(id) {
				free[n.Name] = append(free[n.Name], id)
			}
		}
	}
	return free
}

// someCores are cores of a node.
type someCores struct {
	all bool
	set array.Set
}

// takenCores are the cores that others have during r's time.
func (p *Pool) takenCores(r *v1alpha1.Reservation) map[string]someCores {
	taken := map[string]someCores{}
	take := func(node string, set array.Set, all bool) {
		has := taken[node]
		taken[node] = someCores{has.all || all, has.set.With(set)}
	}
	p.eachOverlap(r, func(other *v1alpha1.ReservationSpec, nodes []string) {
		for _, n := range nodes {
			take(n, array.Parse(other.Cores[n]), len(other.Cores) == 0)
		}
	})
	p.eachRival(r, func(a *v1alpha1.NodeAllocation) {
		n := p.node(a.Name)
		if n == nil {
			return
		}
		threads := max(n.Threads, 1)
		var set array.Set
		for _, cpu := range array.Parse(a.CPUIDs) {
			set = set.With(array.Set{cpu / threads})
		}
		take(a.Name, set, a.CPUIDs == "")
	})
	return taken
}
