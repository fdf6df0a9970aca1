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

// NodeStateNames are the names that sinfo -t takes, as its message lists them.
var NodeStateNames = []string{"unknown", "down", "idle", "allocated", "?", "mixed", "future", "drain", "drained", "draining",
	"no_respond", "reserved", "perfctrs", "cloud", "completing", "powering_down", "powered_down", "power_down", "powering_up",
	"fail", "maint", "reboot", "reboot^", "unknown"}

// typedStates are the names that may be typed, and cut short, the first that
// fits counting, and the state that each means.
var typedStates = [][2]string{
	{"unknown", "unknown"}, {"down", "down"}, {"idle", "idle"}, {"allocated", "allocated"}, {"mixed", "mixed"}, {"future", "future"}, {"?", "unknown"},
	{"drain", "drain"}, {"drained", "drained"}, {"draining", "draining"}, {"drng", "draining"}, {"no_respond", "no_respond"},
	{"reserved", "reserved"}, {"resv", "reserved"}, {"planned", "planned"}, {"plnd", "planned"}, {"perfctrs", ""}, {"npc", ""}, {"cloud", ""},
	{"completing", "completing"}, {"powering_down", ""}, {"powered_down", ""}, {"power_down", ""}, {"powering_up", ""}, {"fail", ""},
	{"maint", "maint"}, {"reboot^", ""}, {"boot^", ""},
}

// NodeStates reads states that a node must be in all at once, as sinfo -t
// takes them: idle&drain. The names may be cut short; bad is the first that
// none begins with.
func NodeStates(text string) (states []string, bad string) {
	for name := range strings.SplitSeq(strings.ToLower(text), "&") {
		if name == "" {
			continue
		}
		i := slices.IndexFunc(typedStates, func(s [2]string) bool { return strings.HasPrefix(s[0], name) })
		if i < 0 {
			return nil, name
		}
		states = append(states, typedStates[i][1])
	}
	return states, ""
}

// NodeIs reports whether the node is in all of the states, as NodeStates has
// them; no node is in none.
func NodeIs(n *status.Node, states []string) bool {
	for _, s := range states {
		if !nodeIs(n, s) {
			return false
		}
	}
	return len(states) > 0
}

func nodeIs(n *status.Node, state string) bool {
	switch state {
	case "drain":
		return has(n, flagDrain)
	case "no_respond":
		return has(n, flagNotResponding)
	case "completing":
		return has(n, flagCompleting)
	case "maint":
		return has(n, flagMaintenance)
	case "reserved":
		return has(n, flagReserved)
	case "planned":
		return has(n, flagPlanned)
	case "drained", "draining":
		return stateName(n) == state
	case "allocated":
		return n.State == "ALLOCATED" || n.CPUsAlloc > 0 // mixed ones too
	}
	return strings.ToLower(n.State) == state
}
