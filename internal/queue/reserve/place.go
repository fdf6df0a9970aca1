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

// Pool is the cluster from which the nodes of reservations are chosen. Its objects are
// only read.
type Pool struct {
	Nodes []status.Node // in the cluster's order
	// DefaultPartition is that of a reservation that names none. PartitionExists
	// reports whether a partition exists.
	DefaultPartition string
	PartitionExists  func(name string) bool
	Reservations     []*v1alpha1.Reservation
	Jobs             []*v1alpha1.BatchJob
}

// Place checks the nodes that the reservation names, or chooses them if it requests a
// number of nodes or cores, and sets them in r. moved reports whether its nodes or its time
// have changed. The error is a refusal.Text.
func (p *Pool) Place(r *v1alpha1.Reservation, moved bool) error {
	s := &r.Spec
	if s.Partition != "" && !p.PartitionExists(s.Partition) {
		return refusal.InvalidPartition
	}
	replace := Flagged(s, "REPLACE") || Flagged(s, "REPLACE_DOWN")
	switch {
	case len(s.CoreCounts) > 0:
		return p.placeCores(r, replace)
	case Flagged(s, "FIRST_CORES") && moved:
		return refusal.NodesBusy
	case Flagged(s, "ANY_NODES") && s.Nodes+s.Features == "" && s.NodeCount == 0:
		return nil // it has licenses only
	case Flagged(s, "ANY_NODES"):
		return refusal.InvalidReservation
	case s.Nodes == "" && s.NodeCount == 0, replace && s.NodeCount == 0:
		return refusal.InvalidNode
	case Flagged(s, "PART_NODES") && (s.Partition == "" || moved && lacksAll(s)):
		return refusal.PartNodesNeedsAll
	case !moved:
		return nil
	case s.Nodes == "":
		return p.chooseNodes(r)
	}
	return p.checkNodes(r)
}

// lacksAll reports whether a reservation names neither ALL nodes nor was given them
// before.
func lacksAll(s *v1alpha1.ReservationSpec) bool {
	return !strings.EqualFold(s.Nodes, "ALL") && !Flagged(s, "SPEC_NODES")
}

// checkNodes refuses nodes that do not exist or are not free.
func (p *Pool) checkNodes(r *v1alpha1.Reservation) error {
	s := &r.Spec
	if strings.EqualFold(s.Nodes, "ALL") {
		s.Nodes = hostlist.Fold(names(p.matching(s)))
		if !Flagged(s, "PART_NODES") {
			s.Flags = with(s.Flags, "ALL_NODES")
		}
	}
	existing := names(p.Nodes)
	named, err := hostlist.Expand(s.Nodes)
	if err != nil || slices.ContainsFunc(named, func(n string) bool { return !slices.Contains(existing, n) }) {
		return refusal.InvalidNode
	}
	occupied := p.occupied(r)
	for _, n := range named {
		switch {
		case occupied[n]&byReservation != 0:
			return refusal.ReservationOverlap
		case occupied[n]&byJob != 0:
			return refusal.NodesBusy
		}
	}
	if s.NodeCount == 0 { // else they were chosen for the number
		s.Flags = with(s.Flags, "SPEC_NODES")
	}
	change.OrderFlags(s)
	return nil
}

// chooseNodes chooses the nodes of a reservation that requests a number of them. As in
// Slurm, a number greater than that of all nodes means all of them.
func (p *Pool) chooseNodes(r *v1alpha1.Reservation) error {
	s := &r.Spec
	candidates, err := p.candidates(s)
	if err != nil {
		return err
	}
	count := int(s.NodeCount)
	if s.Features != "" && len(candidates) < count {
		return refusal.NodeConfigUnavailable
	}
	count = min(count, len(candidates))
	free := p.free(r, candidates)
	if len(free) < count || count == 0 {
		return refusal.NodesBusy
	}
	s.Nodes = hostlist.Fold(free[:count])
	return nil
}

// candidates returns the nodes that a reservation which names none may get.
func (p *Pool) candidates(s *v1alpha1.ReservationSpec) ([]status.Node, error) {
	if s.Partition == "" {
		s.Partition = p.DefaultPartition
	}
	for f := range strings.FieldsFuncSeq(s.Features, isSeparator) {
		if !slices.ContainsFunc(p.Nodes, func(n status.Node) bool { return slices.Contains(n.Features, f) }) {
			return nil, refusal.InvalidFeature
		}
	}
	return p.matching(s), nil
}

// matching returns the nodes in the reservation's partition with its features.
func (p *Pool) matching(s *v1alpha1.ReservationSpec) []status.Node {
	return slices.DeleteFunc(slices.Clone(p.Nodes), func(n status.Node) bool {
		return s.Partition != "" && !slices.Contains(n.Partitions, s.Partition) || !hasFeatures(n.Features, s.Features)
	})
}

// free returns the names of the nodes that are not occupied during r's time, the idle
// ones first. Only a reservation for maintenance gets nodes that are down.
func (p *Pool) free(r *v1alpha1.Reservation, nodes []status.Node) []string {
	occupied := p.occupied(r)
	var idle, rest []string
	for i := range nodes {
		n := &nodes[i]
		switch {
		case occupied[n.Name] != 0, !Usable(n) && !Flagged(&r.Spec, "MAINT"):
		case n.State == "IDLE":
			idle = append(idle, n.Name)
		default:
			rest = append(rest, n.Name)
		}
	}
	return append(idle, rest...)
}

// Usable reports whether jobs may start on the node.
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

// with returns the flags and others that are not among them.
func with(flags []string, added ...string) []string {
	for _, f := range added {
		if !slices.Contains(flags, f) {
			flags = append(flags, f)
		}
	}
	return flags
}

func isSeparator(r rune) bool { return r == '&' || r == ',' }

func hasFeatures(features []string, required string) bool {
	for f := range strings.FieldsFuncSeq(required, isSeparator) {
		if !slices.Contains(features, f) {
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

// occupied returns the nodes of which others have all or some cores during r's time,
// and why.
func (p *Pool) occupied(r *v1alpha1.Reservation) map[string]int {
	occupied := map[string]int{}
	p.eachOverlap(r, func(_ *v1alpha1.ReservationSpec, nodes []string) {
		for _, n := range nodes {
			occupied[n] |= byReservation
		}
	})
	p.eachAllocation(r, func(a *v1alpha1.NodeAllocation) { occupied[a.Name] |= byJob })
	return occupied
}

// eachOverlap calls fn with every other reservation that overlaps with r in time, and
// with its nodes.
func (p *Pool) eachOverlap(r *v1alpha1.Reservation, fn func(other *v1alpha1.ReservationSpec, nodes []string)) {
	from, to := change.Span(&r.Spec)
	mayOverlap := func(s *v1alpha1.ReservationSpec) bool { return Flagged(s, "OVERLAP") || Flagged(s, "MAINT") }
	for _, other := range p.Reservations {
		f, t := change.Span(&other.Spec)
		if mayOverlap(&r.Spec) || mayOverlap(&other.Spec) || other.Name == r.Name || f >= to || t <= from {
			continue
		}
		if list, err := hostlist.ExpandLenient(other.Spec.Nodes); err == nil {
			fn(&other.Spec, list)
		}
	}
}

// eachAllocation calls fn with the allocations of jobs that may still run when r
// starts, unless r ignores jobs. r's own jobs do not count.
func (p *Pool) eachAllocation(r *v1alpha1.Reservation, fn func(*v1alpha1.NodeAllocation)) {
	if Flagged(&r.Spec, "IGNORE_JOBS") {
		return
	}
	from, _ := change.Span(&r.Spec)
	for _, b := range p.Jobs {
		if !hasNodes(b) || r.Name != "" && Of(b) == r.Name {
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

// hasNodes reports whether the job has nodes.
func hasNodes(b *v1alpha1.BatchJob) bool {
	switch b.Status.State {
	case v1alpha1.StateConfiguring, v1alpha1.StateRunning, v1alpha1.StateSuspended, v1alpha1.StateCompleting:
		return b.Status.Allocation != nil
	}
	return false
}

// Replace returns the nodes that the reservation should have now: unsuitable ones are
// replaced as long as there are others. moved reports whether the nodes differ from the
// present ones. Nodes that are down or drained are unsuitable for a
// reservation of a number of nodes (unless it has STATIC_ALLOC), and so are nodes
// with jobs of its own for one with REPLACE. A reservation with PART_NODES has the
// nodes of its partition.
func (p *Pool) Replace(r *v1alpha1.Reservation) (nodes string, moved bool) {
	s := &r.Spec
	present, err := hostlist.ExpandLenient(s.Nodes)
	switch {
	case err != nil || Flagged(s, "STATIC_ALLOC"):
		return s.Nodes, false
	case Flagged(s, "PART_NODES"):
		nodes = hostlist.Fold(names(p.matching(s)))
		return nodes, nodes != s.Nodes
	case len(s.Cores) > 0:
		return s.Nodes, false
	case s.NodeCount == 0 || Flagged(s, "SPEC_NODES") || Flagged(s, "MAINT"):
		return s.Nodes, false
	}
	matching := p.matching(s)
	busy := p.busy(r)
	isSuitable := func(name string) bool {
		i := slices.IndexFunc(matching, func(n status.Node) bool { return n.Name == name })
		return i >= 0 && Usable(&matching[i]) && (!Flagged(s, "REPLACE") || !busy[name])
	}
	var list, unsuitable []string
	for _, n := range present {
		if isSuitable(n) {
			list = append(list, n)
		} else {
			unsuitable = append(unsuitable, n)
		}
	}
	if len(unsuitable) == 0 {
		return s.Nodes, false
	}
	isTaken := func(n string) bool { return slices.Contains(present, n) || busy[n] }
	spare := slices.DeleteFunc(p.free(r, matching), isTaken)
	for i, n := range unsuitable {
		if i < len(spare) {
			n = spare[i]
		}
		list = append(list, n)
	}
	return hostlist.Fold(list), len(spare) > 0
}

// busy returns the nodes with jobs of the reservation.
func (p *Pool) busy(r *v1alpha1.Reservation) map[string]bool {
	busy := map[string]bool{}
	for _, b := range p.Jobs {
		if hasNodes(b) && Of(b) == r.Name {
			for i := range b.Status.Allocation.Nodes {
				busy[b.Status.Allocation.Nodes[i].Name] = true
			}
		}
	}
	return busy
}
