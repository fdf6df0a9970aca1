package format

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/translate/status"
)

// NodeColumns are the columns of sinfo.
var NodeColumns = sync.OnceValue(func() []Column[NodeGroup] { return columnsOf(nodeColumns()) })

// ParseNodeLetters is ParseLetters for NodeColumns(). For "%all" sinfo also adds a
// blank after the columns of upper-case letters.
func ParseNodeLetters(text string) (l Layout[NodeGroup], bad []string) {
	l, bad = ParseLetters(NodeColumns(), text)
	if strings.HasSuffix(text, "%all") && strings.Count(text, "%") == 1 {
		spaceCapitals(l)
	}
	return l, bad
}

func spaceCapitals(l Layout[NodeGroup]) {
	for i := range l {
		if c := l[i].Column; c != nil && c.Letter < 'a' {
			l[i].Text = " " + l[i].Text
		}
	}
}

// ParseNodeNames is ParseNames for NodeColumns() and the additional name "all".
func ParseNodeNames(text string) (l Layout[NodeGroup], bad []string) {
	for item := range strings.SplitSeq(text, ",") {
		more, wrong := ParseNames(NodeColumns(), item)
		if name, _, _ := strings.Cut(item, ":"); strings.EqualFold(name, "all") {
			more, wrong = ParseNodeLetters("%all")
		}
		l, bad = append(l, more...), append(bad, wrong...)
	}
	return l, bad
}

func columnsOf(list []NodeColumn) []Column[NodeGroup] {
	out := make([]Column[NodeGroup], len(list))
	for i := range list {
		out[i] = list[i].Column
	}
	return out
}

// column returns a column with any value.
func column(g grouping, letter byte, name, header string,
	add func(b []byte, row *NodeGroup, s *Settings) []byte) NodeColumn {
	return NodeColumn{Column[NodeGroup]{Letter: letter, Name: name, Header: header, Append: add}, g}
}

// partitionColumn returns a column of a property of the partition.
func partitionColumn(letter byte, name, header string, get func(*status.Partition) string) NodeColumn {
	return column(byPartition, letter, name, header, func(b []byte, g *NodeGroup, _ *Settings) []byte {
		if g.Partition == nil {
			return append(b, "n/a"...)
		}
		return append(b, get(g.Partition)...)
	})
}

// nodeColumn returns a column of a property of nodes.
func nodeColumn(letter byte, name, header, none string, get func(*status.Node) string) NodeColumn {
	return column(byNode, letter, name, header, func(b []byte, g *NodeGroup, _ *Settings) []byte {
		if n := g.first(); n != nil {
			return appendOr(b, get(n), none)
		}
		return append(b, none...)
	})
}

// reasonBy returns who has given the reason of a node's state.
func reasonBy(n *status.Node) string { return cmp.Or(n.ReasonBy, "Unknown") }

// minimumColumn returns a column of a number that shows the minimum, with a + if the
// nodes differ.
func minimumColumn(letter byte, name, header string, get func(*status.Node) int64) NodeColumn {
	return column(ranged, letter, name, header, func(b []byte, g *NodeGroup, _ *Settings) []byte {
		if len(g.Nodes) == 0 {
			return append(b, '0')
		}
		low, high := get(g.Nodes[0]), get(g.Nodes[0])
		for _, n := range g.Nodes {
			low, high = min(low, get(n)), max(high, get(n))
		}
		b = appendInt(b, low)
		if low != high {
			b = append(b, '+')
		}
		return b
	})
}

// constantNodeColumn returns a column with the same value in all rows.
func constantNodeColumn(letter byte, name, header, value string) NodeColumn {
	return column(aggregate, letter, name, header, func(b []byte, _ *NodeGroup, _ *Settings) []byte {
		return append(b, value...)
	})
}

// untruncatedHeader marks a column whose right-justified header is not truncated.
func untruncatedHeader(c NodeColumn) NodeColumn {
	c.UntruncatedHeader = true
	return c
}

// rangeColumn returns a column that shows the minimum and the maximum of the nodes'
// values if they differ: 10-20. none is that of no nodes.
func rangeColumn(letter byte, name, header, none string, get func(*status.Node) int64,
	text func(*status.Node) string) NodeColumn {
	return column(ranged, letter, name, header, func(b []byte, g *NodeGroup, _ *Settings) []byte {
		if len(g.Nodes) == 0 {
			return append(b, none...)
		}
		compare := func(a, b *status.Node) int { return cmp.Compare(get(a), get(b)) }
		low, high := slices.MinFunc(g.Nodes, compare), slices.MaxFunc(g.Nodes, compare)
		b = append(b, text(low)...)
		if get(low) == get(high) {
			return b
		}
		return append(append(b, '-'), text(high)...)
	})
}

// withSuffix marks a column whose truncated values keep the given last character.
func withSuffix(suffix byte, c NodeColumn) NodeColumn {
	c.Suffix = suffix
	return c
}

func freeMem(n *status.Node) int64 { return cmp.Or(n.FreeMem, n.Memory-n.MemAlloc) }

// load returns the load of the node's CPUs, or N/A.
func load(n *status.Node) string {
	if n.Load == 0 {
		return "N/A"
	}
	return strconv.FormatFloat(float64(n.Load)/100, 'f', 2, 64)
}

func partName(p *status.Partition) string {
	if p.Default {
		return p.Name + "*"
	}
	return p.Name
}

func avail(p *status.Partition) string {
	switch p.State {
	case "", "UP":
		return "up"
	case "DOWN":
		return "down"
	case "DRAIN":
		return "drain"
	case "INACTIVE":
		return "inactive" // five letters of it in the usual format
	}
	return strings.ToLower(p.State)
}

// limitText is a limit in minutes as sinfo shows it; 0 is none.
func limitText(minutes int32, none string) string {
	switch {
	case minutes < 0:
		return "infinite"
	case minutes == 0:
		return none
	}
	return string(AppendMinutes(nil, minutes))
}

// jobSize is the range of nodes a job may have: 1-infinite, 1-4, 1.
func jobSize(p *status.Partition) string {
	low := max(1, p.MinNodes)
	if p.MaxNodes <= 0 {
		return strconv.Itoa(int(low)) + "-infinite"
	}
	if p.MaxNodes == low {
		return strconv.Itoa(int(low))
	}
	return strconv.Itoa(int(low)) + "-" + strconv.Itoa(int(p.MaxNodes))
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

func joined(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return strings.Join(list, ",")
}

func slashes(b []byte, counts ...int64) []byte {
	for i, n := range counts {
		if i > 0 {
			b = append(b, '/')
		}
		b = appendInt(b, n)
	}
	return b
}

var nodeColumns = sync.OnceValue(func() []NodeColumn {
	return slices.Concat(partitionColumns(), stateColumns(), hardwareColumns())
})

func partitionColumns() []NodeColumn {
	return []NodeColumn{
		partitionColumn('a', "Available", "AVAIL", avail),
		partitionColumn('g', "Groups", "GROUPS",
			func(p *status.Partition) string { return joined(p.AllowGroups, "all") }),
		partitionColumn('h', "OverSubscribe", "OVERSUBSCRIBE", func(p *status.Partition) string {
			if p.OverSubscribe == "" {
				return "NO"
			}
			return p.OverSubscribe
		}),
		partitionColumn('I', "PriorityJobFactor", "PRIO_JOB_FACTOR",
			func(p *status.Partition) string { return strconv.Itoa(int(p.PriorityJobFactor)) }),
		partitionColumn('l', "Time", "TIMELIMIT",
			func(p *status.Partition) string { return limitText(p.MaxTime, "infinite") }),
		partitionColumn('L', "DefaultTime", "DEFAULTTIME",
			func(p *status.Partition) string { return limitText(p.DefaultTime, "n/a") }),
		partitionColumn('p', "PriorityTier", "PRIO_TIER",
			func(p *status.Partition) string { return strconv.Itoa(int(p.PriorityTier)) }),
		withSuffix('*', partitionColumn('P', "Partition", "PARTITION", partName)),
		partitionColumn('r', "Root", "ROOT", func(p *status.Partition) string { return yesNo(p.RootOnly) }),
		partitionColumn('R', "PartitionName", "PARTITION", func(p *status.Partition) string { return p.Name }),
		partitionColumn('s', "Size", "JOB_SIZE", jobSize),
		partitionColumn('B', "MaxCPUsPerNode", "MAX_CPUS_PER_NODE", func(p *status.Partition) string {
			if p.MaxCPUs > 0 {
				return strconv.Itoa(int(p.MaxCPUs))
			}
			return "UNLIMITED"
		}),
		partitionColumn('M', "PreemptMode", "PREEMPT_MODE",
			func(p *status.Partition) string { return cmp.Or(p.PreemptMode, "OFF") }),
		partitionColumn(0, "Share", "OVERSUBSCRIBE",
			func(p *status.Partition) string { return cmp.Or(p.OverSubscribe, "NO") }),
		constantNodeColumn('S', "AllocNodes", "ALLOCNODES", "all"),
		constantNodeColumn('V', "Cluster", "CLUSTER", "N/A"),
	}
}

func stateColumns() []NodeColumn {
	return []NodeColumn{
		column(aggregate, 'A', "NodeAI", "NODES(A/I)", func(b []byte, g *NodeGroup, _ *Settings) []byte {
			alloc, idle, _ := g.counts()
			return slashes(b, alloc, idle)
		}),
		column(aggregate, 'C', "CPUsState", "CPUS(A/I/O/T)", func(b []byte, g *NodeGroup, _ *Settings) []byte {
			alloc, idle, other, total := g.cpus()
			return slashes(b, alloc, idle, other, total)
		}),
		column(aggregate, 'D', "Nodes", "NODES",
			func(b []byte, g *NodeGroup, _ *Settings) []byte { return appendInt(b, len(g.Nodes)) }),
		nodeColumn('E', "Reason", "REASON", "none", func(n *status.Node) string { return n.Reason }),
		column(aggregate, 'F', "NodeAIOT", "NODES(A/I/O/T)", func(b []byte, g *NodeGroup, _ *Settings) []byte {
			alloc, idle, other := g.counts()
			return slashes(b, alloc, idle, other, alloc+idle+other)
		}),
		column(byNode, 'H', "Timestamp", "TIMESTAMP", func(b []byte, g *NodeGroup, s *Settings) []byte {
			if n := g.first(); n != nil {
				return AppendInstant(b, n.ReasonAt, "Unknown", s)
			}
			return append(b, "Unknown"...)
		}),
		untruncatedHeader(column(aggregate, 'N', "NodeList", "NODELIST",
			func(b []byte, g *NodeGroup, _ *Settings) []byte { return append(b, g.names()...) })),
		nodeColumn('t', "StateCompact", "STATE", "n/a", func(n *status.Node) string { return NodeState(n, true) }),
		nodeColumn('T', "StateLong", "STATE", "n/a", func(n *status.Node) string { return NodeState(n, false) }),
		nodeColumn('u', "User", "USER", "root", reasonBy),
		nodeColumn('U', "UserLong", "USER", "root(0)", reasonBy),
	}
}

func hardwareColumns() []NodeColumn {
	features := func(n *status.Node) string { return strings.Join(n.Features, ",") }
	return []NodeColumn{
		nodeColumn('b', "features_act", "ACTIVE_FEATURES", "(null)", func(n *status.Node) string {
			if n.ActiveFeatures != nil {
				return strings.Join(n.ActiveFeatures, ",")
			}
			return features(n)
		}),
		minimumColumn('c', "CPUs", "CPUS", func(n *status.Node) int64 { return int64(n.CPUs) }),
		minimumColumn('d', "Disk", "TMP_DISK", func(n *status.Node) int64 { return n.TmpDisk }),
		rangeColumn('e', "FreeMem", "FREE_MEM", "0", freeMem,
			func(n *status.Node) string { return strconv.FormatInt(freeMem(n), 10) }),
		nodeColumn('f', "Features", "AVAIL_FEATURES", "(null)", features),
		nodeColumn('G', "Gres", "GRES", "(null)", func(n *status.Node) string { return n.GRES }),
		minimumColumn('m', "Memory", "MEMORY", func(n *status.Node) int64 { return n.Memory }),
		untruncatedHeader(nodeColumn('n', "NodeHost", "HOSTNAMES", "",
			func(n *status.Node) string { return cmp.Or(n.Host, n.Name) })),
		untruncatedHeader(nodeColumn('o', "NodeAddr", "NODE_ADDR", "",
			func(n *status.Node) string { return n.Address })),
		rangeColumn('O', "CPUsLoad", "CPU_LOAD", "0.00",
			func(n *status.Node) int64 { return int64(n.Load) }, load),
		nodeColumn('v', "Version", "VERSION", "N/A", func(n *status.Node) string { return n.Version }),
		minimumColumn('w', "Weight", "WEIGHT", func(n *status.Node) int64 { return int64(max(1, n.Weight)) }),
		minimumColumn('X', "Sockets", "SOCKETS", func(n *status.Node) int64 { return int64(n.Sockets) }),
		minimumColumn('Y', "Cores", "CORES", func(n *status.Node) int64 { return int64(n.Cores) }),
		column(ranged, 'z', "SocketCoreThread", "S:C:T", func(b []byte, g *NodeGroup, _ *Settings) []byte {
			n := g.first()
			if n == nil {
				return append(b, "0:0:0"...)
			}
			return append(b, strings.ReplaceAll(string(
				slashes(nil, int64(n.Sockets), int64(n.Cores), int64(n.Threads))), "/", ":")...)
		}),
		minimumColumn('Z', "Threads", "THREADS", func(n *status.Node) int64 { return int64(n.Threads) }),
		nodeColumn(0, "AllocMem", "ALLOCMEM", "0", func(n *status.Node) string { return itoa(n.MemAlloc) }),
		nodeColumn(0, "GresUsed", "GRES_USED", "gpu:0", func(n *status.Node) string { return usedGRES(n, nil) }),
		nodeColumn(0, "StateComplete", "STATECOMPLETE", "n/a", func(n *status.Node) string {
			return strings.ToLower(ScontrolNodeState(n))
		}),
		nodeColumn(0, "Extra", "EXTRA", "(null)", func(n *status.Node) string { return n.Extra }),
		nodeColumn(0, "Comment", "COMMENT", "(null)", func(n *status.Node) string { return n.Comment }),
		column(aggregate, 0, "Port", "PORT", func(b []byte, g *NodeGroup, _ *Settings) []byte {
			if n := g.first(); n != nil {
				return appendInt(b, n.Port)
			}
			return append(b, '0')
		}),
	}
}
