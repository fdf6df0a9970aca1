package change

import (
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/value"
)

// onlySet is the answer to += and -= where there is none.
func onlySet(what string) refusal.Text {
	return refusal.Text("The +=/-= notation is not supported when updating " + what + NoUpdate)
}

// nameNodes makes the reservation one of these nodes, or where none is named of
// as many as it has, whichever.
func nameNodes(s *v1alpha1.ReservationSpec, v string) error {
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

// countNodes reads how many nodes the reservation asks for. Where they are
// named as well, the names count.
func countNodes(s *v1alpha1.ReservationSpec, key, v string, fresh, named bool) error {
	total, counted := int32(0), key != "tres"
	for part := range strings.SplitSeq(v, ",") {
		if key == "tres" {
			name, n, _ := strings.Cut(part, "=")
			switch kind, _, _ := strings.Cut(name, "/"); {
			case part == "":
				continue
			case kind == "gres":
				return unread("TRES type '" + name + "' not supported with reservations")
			case name != "node" && name != "cpu":
				return unread("couldn't identify configured TRES '" + name + "'")
			}
			if _, err := nodeCount(n); err != nil {
				return unread("invalid TRES " + name + " value '" + n + "'")
			}
			if name == "cpu" {
				if !fresh {
					return refusal.NotSupported
				}
				if err := countCores(s, n); err != nil {
					return err
				}
				continue
			}
			counted, part = true, n
		}
		n, err := nodeCount(part)
		if err != nil {
			return unread("Invalid node count " + v)
		}
		total += n
	}
	switch {
	case named || !counted:
		return nil
	case total == 0 && s.Nodes != "":
		return refusal.InvalidReservation
	}
	s.NodeCount, s.Nodes = total, ""
	s.Flags = without(s.Flags, "ALL_NODES", "SPEC_NODES")
	return nil
}

// countCores reads how many cores the reservation asks for: of all nodes together,
// or "2,3" of one after the other.
func countCores(s *v1alpha1.ReservationSpec, v string) error {
	s.CoreCounts = nil
	for part := range strings.SplitSeq(v, ",") {
		n, err := value.CountOrZero(part)
		if err != nil {
			return unread("Invalid core count " + v)
		}
		s.CoreCounts = append(s.CoreCounts, n)
	}
	return nil
}

// nodeCount reads a number of nodes, which may be one of 1,024s ("2k").
func nodeCount(v string) (int32, error) {
	times := int32(1)
	if n := strings.TrimRight(v, "kK"); len(n) == len(v)-1 {
		v, times = n, 1024
	}
	n, err := value.CountOrZero(v)
	if err != nil || n > 1<<20 {
		return 0, value.ErrInvalid
	}
	return n * times, nil
}

func without(flags []string, gone ...string) []string {
	var out []string
	for _, f := range flags {
		keep := true
		for _, g := range gone {
			keep = keep && f != g
		}
		if keep {
			out = append(out, f)
		}
	}
	return out
}
