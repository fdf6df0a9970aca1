package format

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// The formats of sinfo: the default, and with -l, -N, -Nl, -s, -R and -Rl. A #
// stands for the width of the widest value.
const (
	NodeDefault     = "%#9P %.5a %.10l %.6D %.6t %N"
	NodeLong        = "%#9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
	NodeCentric     = "%#10N %.5D %#.9P %6t"
	NodeCentricLong = "%#10N %.5D %#.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
	NodeSummary     = "%#9P %.5a %.10l %.16F %N"
	NodeReasons     = "%20E %9u %19H %N"
	NodeReasonsLong = "%20E %12U %19H %6t %N"
)

// Flags that a node may have besides its base state.
const (
	flagDrain         = "DRAIN"
	flagCompleting    = "COMPLETING"
	flagNotResponding = "NOT_RESPONDING"
	flagReserved      = "RESERVED"
	flagPlanned       = "PLANNED"
	flagMaintenance   = "MAINTENANCE"
	flagCloud         = "CLOUD"
	flagPoweredDown   = "POWERED_DOWN"
	flagPoweringUp    = "POWERING_UP"
	flagPoweringDown  = "POWERING_DOWN"
	flagPowerDown     = "POWER_DOWN"

	flagRebootRequested = "REBOOT_REQUESTED"
	flagRebootIssued    = "REBOOT_ISSUED"
)

// powerSuffixes are the suffixes of the states of nodes that do not always run.
var powerSuffixes = [][2]string{
	{flagPoweringUp, "#"}, {flagPoweringDown, "%"}, {flagPoweredDown, "~"}, {flagPowerDown, "!"},
}

// powerSuffix returns the suffix of a node that does not run, or will not for long, or "".
func powerSuffix(n *status.Node) string {
	for _, s := range powerSuffixes {
		if hasFlag(n, s[0]) {
			return s[1]
		}
	}
	return ""
}

func hasFlag(n *status.Node, flag string) bool { return slices.Contains(n.Flags, flag) }

// nodeStates are the long and short names of states, from sinfo(1).
var nodeStates = map[string][2]string{
	"IDLE": {"idle", "idle"}, "MIXED": {"mixed", "mix"}, "ALLOCATED": {"allocated", "alloc"},
	"DOWN": {"down", "down"}, "UNKNOWN": {"unknown", "unk"},
	"drained": {"drained", "drain"}, "draining": {"draining", "drng"}, "completing": {"completing", "comp"},
	"reserved": {"reserved", "resv"}, "maint": {"maint", "maint"}, "planned": {"planned", "plnd"},
	"reboot": {"reboot", "boot"},
}

// stateName returns the name of the combination of a node's base state and flags.
func stateName(n *status.Node) string {
	busy := n.State == "ALLOCATED" || n.State == "MIXED" || hasFlag(n, flagCompleting)
	switch {
	case hasFlag(n, flagRebootIssued):
		return "reboot"
	case hasFlag(n, flagDrain) && busy:
		return "draining"
	case hasFlag(n, flagDrain):
		return "drained"
	case n.State == "IDLE" && hasFlag(n, flagCompleting):
		return "completing"
	case n.State == "IDLE" && hasFlag(n, flagMaintenance):
		return "maint"
	case n.State == "IDLE" && hasFlag(n, flagReserved):
		return "reserved"
	case n.State == "IDLE" && hasFlag(n, flagPlanned) && powerSuffix(n) == "":
		return "planned"
	}
	return n.State
}

// NodeState returns the node's state as sinfo shows it, long or compact, with its
// suffix: * not responding, + completing, - planned, $ maintenance, # powering up, % powering
// down, ~ powered down, ! to be powered down, @ to be rebooted, ^ rebooting.
func NodeState(n *status.Node, short bool) string {
	name := stateName(n)
	text := strings.ToLower(n.State)
	if names, ok := nodeStates[name]; ok {
		text = names[0]
		if short {
			text = names[1]
		}
	}
	switch power := powerSuffix(n); {
	case name == "reboot":
		return text + "^"
	case hasFlag(n, flagRebootRequested):
		return text + "@"
	case power != "":
		return text + power
	case hasFlag(n, flagNotResponding):
		return text + "*"
	case hasFlag(n, flagMaintenance) && name != "maint":
		return text + "$"
	case hasFlag(n, flagCompleting) && name == "ALLOCATED":
		return text + "+"
	case hasFlag(n, flagPlanned) && (name == "ALLOCATED" || name == "MIXED"):
		return text + "-"
	}
	return text
}

// ScontrolNodeState returns the state as scontrol shows it: IDLE+DRAIN.
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

// nodeStateOrder returns the rank of the node's state in sinfo's order, in which
// flags outweigh the base state.
func nodeStateOrder(n *status.Node) int {
	order := slices.Index([]string{"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "", "", "MIXED"}, n.State)
	flags := []string{
		flagReserved, flagDrain, flagCompleting, flagNotResponding, flagPoweredDown, flagMaintenance,
		flagRebootRequested, flagPoweringDown, flagRebootIssued, flagPlanned, flagPoweringUp,
	}
	for i, f := range flags {
		if hasFlag(n, f) {
			order += 1 << (4 + i)
		}
	}
	return order
}

// NodeStateNames are the names that sinfo -t accepts, in the order of its error
// message.
var NodeStateNames = []string{
	"unknown", "down", "idle", "allocated", "?", "mixed", "future", "drain", "drained", "draining", "no_respond",
	"reserved", "perfctrs", "cloud", "completing", "powering_down", "powered_down", "power_down", "powering_up",
	"fail", "maint", "reboot", "reboot^", "unknown",
}

// stateArguments are the names that sinfo -t accepts, and the state of each. Names
// may be abbreviated; the first match wins.
var stateArguments = [][2]string{
	{"unknown", "unknown"}, {"down", "down"}, {"idle", "idle"}, {"allocated", "allocated"}, {"mixed", "mixed"},
	{"future", "future"}, {"?", "unknown"},
	{"drain", "drain"}, {"drained", "drained"}, {"draining", "draining"}, {"drng", "draining"},
	{"no_respond", "no_respond"},
	{"reserved", "reserved"}, {"resv", "reserved"}, {"planned", "planned"}, {"plnd", "planned"}, {"perfctrs", ""},
	{"npc", ""}, {"cloud", flagCloud},
	{"completing", "completing"}, {"powering_down", flagPoweringDown}, {"powered_down", flagPoweredDown},
	{"power_down", flagPowerDown}, {"powering_up", flagPoweringUp}, {"fail", ""},
	{"maint", "maint"}, {"reboot", flagRebootRequested}, {"reboot^", flagRebootIssued}, {"boot^", flagRebootIssued},
}

// NodeStates parses an argument of sinfo -t: states that a node must have at the
// same time, such as idle&drain. Names may be abbreviated; bad is the first unknown
// one.
func NodeStates(text string) (states []string, bad string) {
	for name := range strings.SplitSeq(text, "&") {
		if name == "" {
			continue
		}
		lower := strings.ToLower(name)
		i := slices.IndexFunc(stateArguments, func(s [2]string) bool { return strings.HasPrefix(s[0], lower) })
		if i < 0 {
			return nil, name
		}
		states = append(states, stateArguments[i][1])
	}
	return states, ""
}

// NodeIs reports whether the node has all of the states, which come from
// NodeStates. It is false if there are none.
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
		return hasFlag(n, flagDrain)
	case "no_respond":
		return hasFlag(n, flagNotResponding)
	case "completing":
		return hasFlag(n, flagCompleting)
	case "maint":
		return hasFlag(n, flagMaintenance)
	case "reserved":
		return hasFlag(n, flagReserved)
	case "planned":
		return hasFlag(n, flagPlanned)
	case flagCloud, flagPoweredDown, flagPoweringUp, flagPoweringDown, flagPowerDown,
		flagRebootRequested, flagRebootIssued:
		return hasFlag(n, state)
	case "drained", "draining":
		return stateName(n) == state
	case "allocated":
		return n.State == "ALLOCATED" || n.CPUsAlloc > 0 // includes mixed nodes
	}
	return strings.ToLower(n.State) == state
}
