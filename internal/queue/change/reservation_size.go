package change

import (
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/value"
)

// maxNodes bounds the number of nodes that a reservation requests, in units of 1 or 1,024.
const maxNodes = 1 << 20

// setResvNodes reserves the named nodes. An empty value keeps the number of nodes,
// and lets the cluster choose which.
func setResvNodes(c *reservationChange, _, v string) error {
	s := c.s
	s.Flags = without(s.Flags, "ALL_NODES", "SPEC_NODES")
	if v != "" {
		s.Nodes, s.NodeCount = v, 0
		return nil
	}
	if names, err := hostlist.Expand(s.Nodes); err == nil && s.NodeCount == 0 {
		s.NodeCount = int32(len(names))
	}
	s.Nodes = ""
	return nil
}

// setResvNodeCount sets the number of nodes, which may be a sum: "1,2".
func setResvNodeCount(c *reservationChange, _, v string) error {
	total := int32(0)
	for part := range strings.SplitSeq(v, ",") {
		n, err := parseNodeCount(part)
		if err != nil || n > math.MaxInt32-total {
			return malformedCount("nodecnt", v, "Invalid node count "+v)
		}
		total += n
	}
	return c.setNodeTotal(total)
}

// setResvTRES sets the number of nodes or of cores: "node=2,cpu=4".
func setResvTRES(c *reservationChange, _, v string) error {
	total, counted := int32(0), false
	for term := range strings.SplitSeq(v, ",") {
		if term == "" {
			continue
		}
		name, count, _ := strings.Cut(term, "=")
		kind, _, _ := strings.Cut(name, "/")
		switch {
		case kind == "gres":
			return malformed("tres", v, "TRES type '"+name+"' not supported with reservations")
		case name != "node" && name != "cpu":
			return malformed("tres", v, "couldn't identify configured TRES '"+name+"'")
		}
		n, err := parseNodeCount(count)
		switch {
		case err != nil, name == "node" && n > math.MaxInt32-total:
			return malformedCount("tres", v, "invalid TRES "+name+" value '"+count+"'")
		case name == "node":
			total += n
			counted = true
			continue
		case !c.isNew:
			return refusal.NotSupported
		}
		if err := setCoreCounts(c.s, count); err != nil {
			return err
		}
	}
	if !counted {
		return nil
	}
	return c.setNodeTotal(total)
}

// setNodeTotal sets the number of nodes. A new reservation that names its nodes has
// those.
func (c *reservationChange) setNodeTotal(total int32) error {
	s := c.s
	switch {
	case c.isNew && c.set["nodes"] != "":
		return nil
	case total == 0 && s.Nodes != "":
		return refusal.InvalidReservation
	}
	s.NodeCount, s.Nodes = total, ""
	s.Flags = without(s.Flags, "ALL_NODES", "SPEC_NODES")
	return nil
}

// setResvCores sets the number of cores of a new reservation; TRES=cpu= takes
// precedence.
func setResvCores(c *reservationChange, key, v string) error {
	if !c.isNew || sign(key) == '+' || sign(key) == '-' {
		return refusal.NotSupported
	}
	if len(c.s.CoreCounts) > 0 {
		return nil
	}
	return setCoreCounts(c.s, v)
}

// setCoreCounts parses a number of cores over all nodes, or "2,3" for one node
// after the other.
func setCoreCounts(s *v1alpha1.ReservationSpec, v string) error {
	s.CoreCounts = nil
	for part := range strings.SplitSeq(v, ",") {
		n, err := value.CountOrZero(part)
		if err != nil {
			return malformedCount("corecnt", v, "Invalid core count "+v)
		}
		s.CoreCounts = append(s.CoreCounts, n)
	}
	return nil
}

// parseNodeCount parses a number of nodes; "2k" is 2,048.
func parseNodeCount(v string) (int32, error) {
	factor := int32(1)
	if n := strings.TrimRight(v, "kK"); len(n) == len(v)-1 {
		v, factor = n, 1024
	}
	n, err := value.CountOrZero(v)
	if err != nil || n > maxNodes {
		return 0, value.ErrInvalid
	}
	return n * factor, nil
}

// without returns the flags but for some.
func without(flags []string, dropped ...string) []string {
	var out []string
	for _, f := range flags {
		if !slices.Contains(dropped, f) {
			out = append(out, f)
		}
	}
	return out
}
