package format

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// The formats of sinfo: alone, with -l, -N, -Nl, -s, -R and -Rl. A # stands for
// a width that fits every value.
const (
	NodeDefault     = "%#9P %.5a %.10l %.6D %.6t %N"
	NodeLong        = "%#9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
	NodeCentric     = "%#10N %.5D %#.9P %6t"
	NodeCentricLong = "%#10N %.5D %#.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
	NodeSummary     = "%#9P %.5a %.10l %.16F %N"
	NodeReasons     = "%20E %9u %19H %N"
	NodeReasonsLong = "%20E %12U %19H %6t %N"
)

// Flags a node may carry beside its base state.
const (
	flagDrain         = "DRAIN"
	flagCompleting    = "COMPLETING"
	flagNotResponding = "NOT_RESPONDING"
	flagReserved      = "RESERVED"
	flagPlanned       = "PLANNED"
	flagMaintenance   = "MAINTENANCE"
)

func has(n *status.Node, flag string) bool { return slices.Contains(n.Flags, flag) }

// nodeStates are long and short names, as sinfo(1) has them.
var nodeStates = map[string][2]string{
	"IDLE": {"idle", "idle"}, "MIXED": {"mixed", "mix"}, "ALLOCATED": {"allocated", "alloc"},
	"DOWN": {"down", "down"}, "UNKNOWN": {"unknown", "unk"},
	"drained": {"drained", "drain"}, "draining": {"draining", "drng"}, "completing": {"completing", "comp"},
	"reserved": {"reserved", "resv"}, "maint": {"maint", "maint"}, "planned": {"planned", "plnd"},
}

// stateName is the name a node's base state and flags make together.
func stateName(n *status.Node) string {
	busy := n.State == "ALLOCATED" || n.State == "MIXED" || has(n, flagCompleting)
	switch {
	case has(n, flagDrain) && busy:
		return "draining"
	case has(n, flagDrain):
		return "drained"
	case n.State == "IDLE" && has(n, flagCompleting):
		return "completing"
	case n.State == "IDLE" && has(n, flagMaintenance):
		return "maint"
	case n.State == "IDLE" && has(n, flagReserved):
		return "reserved"
	case n.State == "IDLE" && has(n, flagPlanned):
		return "planned"
	}
	return n.State
}

// NodeState is the node's state as sinfo shows it, long or compact, with the
// suffix that tells more: * not responding, + completing, - planned, $ maintenance.
func NodeState(n *status.Node, short bool) string {
	name := stateName(n)
	text := strings.ToLower(n.State)
	if names, ok := nodeStates[name]; ok {
		text = names[0]
		if short {
			text = names[1]
		}
	}
	switch {
	case has(n, flagNotResponding):
		return text + "*"
	case has(n, flagMaintenance) && name != "maint":
		return text + "$"
	case has(n, flagCompleting) && name == "ALLOCATED":
		return text + "+"
	case has(n, flagPlanned) && (name == "ALLOCATED" || name == "MIXED"):
		return text + "-"
	}
	return text
}

// ScontrolNodeState is the state as scontrol shows it: IDLE+DRAIN.
func ScontrolNodeState(n *status.Node) string {
	text := n.State
	for _, f := range n.Flags {
		if f == flagNotResponding {
			text += "*"
		}
	}
	for _, f := range n.Flags {
		if f != flagNotResponding {
			text += "+" + f
		}
	}
	return text
}

// nodeStateOrder ranks states as sinfo sorts them: flags weigh more than the
// base state.
func nodeStateOrder(n *status.Node) int {
	order := slices.Index([]string{"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "", "", "MIXED"}, n.State)
	for i, f := range []string{flagReserved, flagDrain, flagCompleting, flagNotResponding, flagMaintenance, flagPlanned} {
		if has(n, f) {
			order += 1 << (4 + i)
		}
	}
	return order
}

// NodeStateNames are the names that sinfo -t takes, as its message lists them;
// some are of states that no node here is ever in. "planned" it takes as well.
var NodeStateNames = []string{"unknown", "down", "idle", "allocated", "?", "mixed", "future", "drain", "drained", "draining",
	"no_respond", "reserved", "perfctrs", "cloud", "completing", "powering_down", "powered_down", "power_down", "powering_up",
	"fail", "maint", "reboot", "reboot^", "unknown"}

// NodeIs reports whether the node is in the state called name (in lower case,
// one of NodeStateNames or a short form).
func NodeIs(n *status.Node, name string) bool {
	switch name {
	case "drain":
		return has(n, flagDrain)
	case "no_respond":
		return has(n, flagNotResponding)
	case "comp", "completing":
		return has(n, flagCompleting)
	case "maint":
		return has(n, flagMaintenance)
	case "resv", "reserved":
		return has(n, flagReserved)
	case "plnd", "planned":
		return has(n, flagPlanned)
	case "drained", "draining", "drng":
		s := stateName(n)
		return s == name || s == "draining" && name == "drng"
	}
	names := nodeStates[n.State]
	if (name == "alloc" || name == "allocated") && n.CPUsAlloc > 0 {
		return true // mixed ones too
	}
	return name == names[0] || name == names[1]
}

// KnownNodeState reports whether name is a state that NodeIs knows.
func KnownNodeState(name string) bool {
	if name == "planned" || slices.Contains(NodeStateNames, name) {
		return true
	}
	for _, names := range nodeStates {
		if name == names[0] || name == names[1] {
			return true
		}
	}
	return false
}
