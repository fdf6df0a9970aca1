package reserve

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// Pool is what nodes are chosen from. The objects are only read.
type Pool struct {
	Nodes []status.Node // in the cluster's order
	// DefaultPartition is that of a reservation that names none. PartitionExists
	// reports whether a partition exists.
	DefaultPartition string
	PartitionExists  func(name string) bool
	Reservations     []*v1alpha1.Reservation
	Jobs             []*v1alpha1.BatchJob
}

// Place checks the nodes that the reservation names, or finds them where it
// asks for a number. again: its nodes or its time are new.
func (p *Pool) Place(r *v1alpha1.Reservation, again bool) error {
	s := &r.Spec
	if s.Partition != "" && !p.PartitionExists(s.Partition) {
		return refusal.InvalidPartition
	}
	replace := Flagged(s, "REPLACE") || Flagged(s, "REPLACE_DOWN")
	switch {
	case len(s.CoreCounts) > 0:
		return p.placeCores(r, replace)
	case Flagged(s, "FIRST_CORES") && again:
		return refusal.NodesBusy
	case Flagged(s, "ANY_NODES") && s.Nodes+s.Features == "" && s.NodeCount == 0:
		return nil // licences only
	case Flagged(s, "ANY_NODES"):
		return refusal.InvalidReservation
	case s.Nodes == "" && s.NodeCount == 0, replace && s.NodeCount == 0:
		return refusal.InvalidNode
	case Flagged(s, "PART_NODES") && (s.Partition == "" || !strings.EqualFold(s.Nodes, "ALL") && again && !Flagged(s, "SPEC_NODES")):
		return refusal.PartNodesNeedsAll
	case !again:
		return nil
	case s.Nodes == "":
		return p.find(r)
	}
	return p.check(r)
}

// check is about the nodes that a reservation names.
func (p *Pool) check(r *v1alpha1.Reservation) error {
	s := &r.Spec
	if strings.EqualFold(s.Nodes, "ALL") {
		s.Nodes = hostlist.Fold(names(p.of(s)))
		if !Flagged(s, "PART_NODES") {
			s.Flags = with(s.Flags, "ALL_NODES")
		}
	}
	known := names(p.Nodes)
	wanted, err := hostlist.Expand(s.Nodes)
	if err != nil || slices.ContainsFunc(wanted, func(n string) bool { return !slices.Contains(known, n) }) {
		return refusal.InvalidNode
	}
	taken := p.taken(r)
	for _, n := range wanted {
		switch {
		case taken[n]&byReservation != 0:
			return refusal.ReservationOverlap
		case taken[n]&byJob != 0:
			return refusal.NodesBusy
		}
	}
	s.Flags = with(s.Flags, "SPEC_NODES")
	change.OrderFlags(s)
	return nil
}

// find chooses the nodes of a reservation that asks for a number of them. More
// than there are means all of them, as in Slurm.
func (p *Pool) find(r *v1alpha1.Reservation) error {
	s := &r.Spec
	of, err := p.candidates(s)
	if err != nil {
		return err
	}
	count := int(s.NodeCount)
	if s.Features != "" && len(of) < count {
		return refusal.NodeConfigUnavailable
	}
	count = min(count, len(of))
	free := p.free(r, of)
	if len(free) < count || count == 0 {
		return refusal.NodesBusy
	}
	s.Nodes = hostlist.Fold(free[:count])
	return nil
}

// candidates are the nodes of a reservation that names none.
func (p *Pool) candidates(s *v1alpha1.ReservationSpec) ([]status.Node, error) {
	if s.Partition == "" {
		s.Partition = p.DefaultPartition
	}
	for f := range strings.FieldsFuncSeq(s.Features, isSeparator) {
		if !slices.ContainsFunc(p.Nodes, func(n status.Node) bool { return slices.Contains(n.Features, f) }) {
			return nil, refusal.InvalidFeature
		}
	}
	return p.of(s), nil
}

// of are the nodes that the reservation's partition and features leave.
func (p *Pool) of(s *v1alpha1.ReservationSpec) []status.Node {
	return slices.DeleteFunc(slices.Clone(p.Nodes), func(n status.Node) bool {
		return s.Partition != "" && !slices.Contains(n.Partitions, s.Partition) || !hasFeatures(n.Features, s.Features)
	})
}

// free are the names of those nodes that nobody else has during r's time, the
// idle ones first, and that are up, unless it is for maintenance.
func (p *Pool) free(r *v1alpha1.Reservation, of []status.Node) []string {
	taken := p.taken(r)
	var idle, rest []string
	for i := range of {
		n := &of[i]
		switch {
		case taken[n.Name] != 0, !Usable(n) && !Flagged(&r.Spec, "MAINT"):
		case n.State == "IDLE":
			idle = append(idle, n.Name)
		default:
			rest = append(rest, n.Name)
		}
	}
	return append(idle, rest...)
}

// Usable tells whether jobs may start on the node.
func Usable(n *status.Node) bool {
	switch n.State {
	case "IDLE", "MIXED", "ALLOCATED":
		return !slices.Contains(n.Flags, "DRAIN")
	}
	return false
}

func names(nodes []status.Node) []string {
	out := make([]string, len(nodes))
	for i := range nodes {
		out[i] = nodes[i].Name
	}
	return out
}

func with(flags []string, more ...string) []string {
	for _, f := range more {
		if !slices.Contains(flags, f) {
			flags = append(flags, f)
		}
	}
	return flags
}

func isSeparator(r rune) bool { return r == '&' || r == ',' }

func hasFeatures(has []string, wanted string) bool {
	for f := range strings.FieldsFuncSeq(wanted, isSeparator) {
		if !slices.Contains(has, f) {
			return false
		}
	}
	return true
}

// Why a node cannot be reserved for a time.
const (
	byReservation = 1 << iota
	byJob
)

// taken tells which nodes others have during r's time, or some of their cores.
func (p *Pool) taken(r *v1alpha1.Reservation) map[string]int {
	taken := map[string]int{}
	p.eachOverlap(r, func(_ *v1alpha1.ReservationSpec, nodes []string) {
		for _, n := range nodes {
			taken[n] |= byReservation
		}
	})
	p.eachRival(r, func(a *v1alpha1.NodeAllocation) { taken[a.Name] |= byJob })
	return taken
}

// eachOverlap calls fn with every other reservation during r's time, and its
// nodes.
func (p *Pool) eachOverlap(r *v1alpha1.Reservation, fn func(other *v1alpha1.ReservationSpec, nodes []string)) {
	from, to := change.Span(&r.Spec)
	overlaps := func(s *v1alpha1.ReservationSpec) bool { return Flagged(s, "OVERLAP") || Flagged(s, "MAINT") }
	for _, other := range p.Reservations {
		f, t := change.Span(&other.Spec)
		if overlaps(&r.Spec) || overlaps(&other.Spec) || other.Name == r.Name || f >= to || t <= from {
			continue
		}
		if list, err := hostlist.Expand(other.Spec.Nodes); err == nil {
			fn(&other.Spec, list)
		}
	}
}

// eachRival calls fn with what jobs hold that run into r's time, unless they do
// not matter to it.
func (p *Pool) eachRival(r *v1alpha1.Reservation, fn func(*v1alpha1.NodeAllocation)) {
	if Flagged(&r.Spec, "IGNORE_JOBS") {
		return
	}
	from, _ := change.Span(&r.Spec)
	for _, b := range p.Jobs {
		if !holds(b) || r.Name != "" && Of(b) == r.Name {
			continue
		}
		if end, limited := b.Status.LimitEnds(); limited && end.Unix() <= from {
			continue
		}
		for i := range b.Status.Allocation.Nodes {
			fn(&b.Status.Allocation.Nodes[i])
		}
	}
}

// holds tells whether the job has nodes.
func holds(b *v1alpha1.BatchJob) bool {
	switch b.Status.State {
	case v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended, v1alpha1.StateCompleting:
		return b.Status.Allocation != nil
	}
	return false
}

// Replace is the nodes that the reservation should have now: those that serve
// it no more are given for others, as far as there are any. moved tells whether
// they differ from those that it has. Nodes that are down or drained serve no
// reservation for a number of nodes (but see STATIC_ALLOC); nodes with jobs of
// its own do not serve one with REPLACE. One with PART_NODES has the
// partition's.
func (p *Pool) Replace(r *v1alpha1.Reservation) (nodes string, moved bool) {
	s := &r.Spec
	has, err := hostlist.Expand(s.Nodes)
	switch {
	case err != nil || Flagged(s, "STATIC_ALLOC"):
		return s.Nodes, false
	case Flagged(s, "PART_NODES"):
		nodes = hostlist.Fold(names(p.of(s)))
		return nodes, nodes != s.Nodes
	case len(s.Cores) > 0:
		return s.Nodes, false
	case s.NodeCount == 0 || Flagged(s, "SPEC_NODES") || Flagged(s, "MAINT"):
		return s.Nodes, false
	}
	of := p.of(s)
	busy := p.busy(r)
	serves := func(name string) bool {
		i := slices.IndexFunc(of, func(n status.Node) bool { return n.Name == name })
		return i >= 0 && Usable(&of[i]) && (!Flagged(s, "REPLACE") || !busy[name])
	}
	var kept, out []string
	for _, n := range has {
		if serves(n) {
			kept = append(kept, n)
		} else {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return s.Nodes, false
	}
	spare := slices.DeleteFunc(p.free(r, of), func(n string) bool { return slices.Contains(has, n) || busy[n] })
	for i, n := range out {
		if i < len(spare) {
			n = spare[i]
		}
		kept = append(kept, n)
	}
	return hostlist.Fold(kept), len(spare) > 0
}

// busy are the nodes with jobs of the reservation.
func (p *Pool) busy(r *v1alpha1.Reservation) map[string]bool {
	busy := map[string]bool{}
	for _, b := range p.Jobs {
		if holds(b) && Of(b) == r.Name {
			for i := range b.Status.Allocation.Nodes {
				busy[b.Status.Allocation.Nodes[i].Name] = true
			}
		}
	}
	return busy
}
