package format

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/status"
)

// NodeRecord returns the record of a node in scontrol show node. s.Details
// corresponds to -d.
func NodeRecord(n *status.Node, s *Settings) *Record {
	r := new(Record)
	features := orNull(strings.Join(n.Features, ","))
	active := features
	if n.ActiveFeatures != nil {
		active = orNull(strings.Join(n.ActiveFeatures, ","))
	}
	machine := []string{"NodeName=" + n.Name, pair("Arch", orNull(n.Arch))}
	if n.CPUBind != "" {
		machine = append(machine, pair("CpuBind", n.CPUBind))
	}
	r.line(append(machine, "CoresPerSocket="+itoa(n.Cores)+" ")...)
	r.line("CPUAlloc="+itoa(n.CPUsAlloc), "CPUEfctv="+itoa(n.CPUs), "CPUTot="+itoa(n.CPUs),
		"CPULoad="+cmp.Or(load(n), "N/A"))
	r.line(pair("AvailableFeatures", features))
	r.line(pair("ActiveFeatures", active))
	r.line(pair("Gres", orNull(n.GRES)))
	if s.Details {
		r.line("GresDrain=N/A")
		r.line(pair("GresUsed", orNull(usedGRES(n, s.GRESNames))))
	}
	address := []string{pair("NodeAddr", orNull(n.Address)), pair("NodeHostName", cmp.Or(n.Host, n.Name))}
	if n.Port != 0 {
		address = append(address, "Port="+itoa(n.Port))
	}
	r.line(append(address, pair("Version", orNull(n.Version)))...)
	r.line(pair("OS", orNull(n.OS)) + " ")
	free := "N/A"
	if n.FreeMem != 0 {
		free = itoa(n.FreeMem)
	}
	r.line("RealMemory="+itoa(n.Memory), "AllocMem="+itoa(n.MemAlloc), "FreeMem="+free,
		"Sockets="+itoa(n.Sockets), "Boards=1")
	r.line("State="+ScontrolNodeState(n), "ThreadsPerCore="+itoa(n.Threads), "TmpDisk="+itoa(n.TmpDisk),
		"Weight="+itoa(max(1, n.Weight)), "Owner="+cmp.Or(printable.Escape(n.Owner), "N/A"), "MCS_label=N/A")
	if n.NextState != "" {
		r.line(pair("NextState", n.NextState))
	}
	r.line("Partitions=" + strings.Join(n.Partitions, ",") + " ")
	r.line("BootTime="+instantText(n.Boot, "None", s),
		"SlurmdStartTime="+instantText(cmp.Or(n.AgentStart, n.Boot), "None", s))
	r.line("LastBusyTime=" + instantText(n.LastBusy, "Unknown", s))
	r.line("CfgTRES=" + tres(int64(n.CPUs), n.Memory) + gresTRES(n.GRES))
	// Slurm shows no billing in this line.
	used, _, _ := strings.Cut(tres(int64(n.CPUsAlloc), n.MemAlloc), ",billing=")
	r.line("AllocTRES=" + used + gresTRES(n.GRESUsed))
	r.line("CapWatts=n/a")
	r.line("CurrentWatts=0", "AveWatts=0")
	r.line("ExtSensorsJoules=n/s", "ExtSensorsWatts=0", "ExtSensorsTemp=n/s")
	if n.Reason != "" {
		set := printable.Escape(n.ReasonBy) + "@" + instantText(n.ReasonAt, "Unknown", s)
		r.line("Reason=" + printable.Escape(n.Reason) + " [" + set + "]")
	}
	if n.Comment != "" {
		r.line(pair("Comment", n.Comment))
	}
	if n.Extra != "" {
		r.line(pair("Extra", n.Extra))
	}
	return r
}

// gresTRES returns the TRES of generic resources: ",gres/gpu=2" for a text such as
// gpu:tesla:2(S:0).
func gresTRES(text string) string {
	sum := map[string]int64{}
	var order []string
	for g := range strings.SplitSeq(text, ",") {
		g, _, _ = strings.Cut(g, "(")
		first, last := strings.IndexByte(g, ':'), strings.LastIndexByte(g, ':')
		n, err := strconv.ParseInt(g[last+1:], 10, 64)
		if first < 0 || err != nil || n == 0 {
			continue
		}
		if _, seen := sum[g[:first]]; !seen {
			order = append(order, g[:first])
		}
		sum[g[:first]] += n
	}
	out := ""
	for _, name := range order {
		out += ",gres/" + printable.Escape(name) + "=" + itoa(sum[name])
	}
	return out
}

func tres(cpus, mib int64) string {
	if cpus == 0 && mib == 0 {
		return ""
	}
	return "cpu=" + itoa(cpus) + ",mem=" + itoa(mib) + "M,billing=" + itoa(cpus)
}

// GRESNames returns the names of the generic resources that any of the nodes has, sorted.
func GRESNames(nodes []status.Node) []string {
	var names []string
	for i := range nodes {
		for item := range strings.SplitSeq(nodes[i].GRES, ",") {
			if name, _, _ := strings.Cut(item, ":"); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// usedGRES returns how many of each generic resource of a node are in use; a node without any has
// the cluster's.
func usedGRES(n *status.Node, cluster []string) string {
	var out []string
	used := splitGRES(cmp.Or(n.GRESDevices, n.GRESUsed))
	if n.GRES == "" && len(used) == 0 {
		for _, name := range cluster {
			out = append(out, printable.Escape(name)+":0")
		}
		return strings.Join(out, ",")
	}
	for _, item := range splitGRES(n.GRES) {
		name := item
		if i := strings.LastIndexByte(item, ':'); i > 0 {
			name = item[:i]
		}
		i := slices.IndexFunc(used, func(u string) bool {
			count, found := strings.CutPrefix(u, name+":")
			return found && count != "" && !strings.Contains(strings.SplitN(count, "(", 2)[0], ":")
		})
		if i < 0 {
			out = append(out, name+":0(IDX:N/A)")
			continue
		}
		out = append(out, used[i])
		used = slices.Delete(used, i, i+1)
	}
	return strings.Join(append(out, used...), ",") // the rest are in use although the node has them no more
}

// splitGRES splits a list such as gpu:a100:2(IDX:0,2),fpga:1.
func splitGRES(list string) []string {
	var out []string
	start, depth := 0, 0
	for i := range len(list) {
		switch list[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, list[start:i])
				start = i + 1
			}
		}
	}
	if start < len(list) {
		out = append(out, list[start:])
	}
	return out
}
