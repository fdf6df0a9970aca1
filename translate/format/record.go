package format

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// Record is a Key=value description as scontrol prints it: lines of pairs.
type Record struct {
	lines  [][]string
	indent string // of the lines after the first; empty: three blanks
	tight  bool   // no empty line follows
}

// line adds a line of ready pairs.
func (r *Record) line(pairs ...string) { r.lines = append(r.lines, pairs) }

// pair makes Key=value of a value that needs escaping.
func pair(key, value string) string { return key + "=" + Escape(value) }

// Append adds the record to b: on several lines, or all on one.
func (r *Record) Append(b []byte, oneLine bool) []byte {
	for i, pairs := range r.lines {
		if i > 0 && oneLine {
			b = append(b, ' ')
		} else if i > 0 {
			b = append(append(b, '\n'), cmp.Or(r.indent, "   ")...)
		}
		b = append(b, strings.Join(pairs, " ")...)
	}
	if oneLine || r.tight {
		return append(b, '\n')
	}
	return append(b, "\n\n"...)
}

func null(text string) string {
	if text == "" {
		return "(null)"
	}
	return text
}

func itoa[T ~int32 | ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }

func digit(v bool) string {
	if v {
		return "1"
	}
	return "0"
}

// NodeRecord describes a node as scontrol show node does; with s.Details as
// with its -d.
func NodeRecord(n *status.Node, s *Settings) *Record {
	r := new(Record)
	features := null(strings.Join(n.Features, ","))
	active := features
	if n.ActiveFeatures != nil {
		active = null(strings.Join(n.ActiveFeatures, ","))
	}
	r.line("NodeName="+n.Name, pair("Arch", null(n.Arch)), "CoresPerSocket="+itoa(n.Cores)+" ")
	r.line("CPUAlloc="+itoa(n.CPUsAlloc), "CPUEfctv="+itoa(n.CPUs), "CPUTot="+itoa(n.CPUs), "CPULoad="+cmp.Or(load(n), "N/A"))
	r.line(pair("AvailableFeatures", features))
	r.line(pair("ActiveFeatures", active))
	r.line(pair("Gres", null(n.GRES)))
	if s.Details {
		r.line("GresDrain=N/A")
		r.line(pair("GresUsed", null(n.GRESUsed)))
	}
	address := []string{pair("NodeAddr", null(n.Address)), pair("NodeHostName", cmp.Or(n.Host, n.Name))}
	if n.Port != 0 {
		address = append(address, "Port="+itoa(n.Port))
	}
	r.line(append(address, pair("Version", null(n.Version)))...)
	r.line(pair("OS", null(n.OS)) + " ")
	free := "N/A"
	if n.FreeMem != 0 {
		free = itoa(n.FreeMem)
	}
	r.line("RealMemory="+itoa(n.Memory), "AllocMem="+itoa(n.MemAlloc), "FreeMem="+free, "Sockets="+itoa(n.Sockets), "Boards=1")
	r.line("State="+ScontrolNodeState(n), "ThreadsPerCore="+itoa(n.Threads), "TmpDisk="+itoa(n.TmpDisk),
		"Weight="+itoa(max(1, n.Weight)), "Owner="+cmp.Or(Escape(n.Owner), "N/A"), "MCS_label=N/A")
	r.line("Partitions=" + strings.Join(n.Partitions, ",") + " ")
	r.line("BootTime="+instantText(n.Boot, "None", s), "SlurmdStartTime="+instantText(cmp.Or(n.AgentStart, n.Boot), "None", s))
	r.line("LastBusyTime=" + instantText(n.LastBusy, "Unknown", s))
	r.line("CfgTRES=" + tres(int64(n.CPUs), n.Memory) + gresTRES(n.GRES))
	// What is in use is not billed in this line of Slurm's.
	used, _, _ := strings.Cut(tres(int64(n.CPUsAlloc), n.MemAlloc), ",billing=")
	r.line("AllocTRES=" + used + gresTRES(n.GRESUsed))
	r.line("CapWatts=n/a")
	r.line("CurrentWatts=0", "AveWatts=0")
	r.line("ExtSensorsJoules=n/s", "ExtSensorsWatts=0", "ExtSensorsTemp=n/s")
	if n.Reason != "" {
		r.line("Reason=" + Escape(n.Reason) + " [" + Escape(n.ReasonBy) + "@" + instantText(n.ReasonAt, "Unknown", s) + "]")
	}
	if n.Comment != "" {
		r.line(pair("Comment", n.Comment))
	}
	return r
}

// gresTRES is ",gres/gpu=2" of a text such as gpu:tesla:2(S:0).
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
		out += ",gres/" + Escape(name) + "=" + itoa(sum[name])
	}
	return out
}

func tres(cpus, mib int64) string {
	if cpus == 0 && mib == 0 {
		return ""
	}
	return "cpu=" + itoa(cpus) + ",mem=" + itoa(mib) + "M,billing=" + itoa(cpus)
}

// PartitionRecord describes a partition as scontrol show partition does. nodes
// are those of the cluster.
func PartitionRecord(p *status.Partition, nodes []status.Node) *Record {
	r := new(Record)
	cpus, mib := int64(0), int64(0)
	member := memberNodes([]status.Partition{*p}, nodes)
	var devices []string
	for _, n := range member {
		cpus, mib = cpus+int64(n.CPUs), mib+n.Memory
		devices = append(devices, n.GRES)
	}
	group := NodeGroup{Nodes: member}
	r.line("PartitionName=" + p.Name)
	r.line("AllowGroups="+joined(p.AllowGroups, "ALL"), allowed("Accounts", p.AllowAccounts, p.DenyAccounts), allowed("Qos", p.AllowQOS, p.DenyQOS))
	r.line("AllocNodes=ALL", "Default="+upperYesNo(p.Default), "QoS="+cmp.Or(Escape(p.QOS), "N/A"))
	r.line("DefaultTime="+partLimit(p.DefaultTime, "NONE"), "DisableRootJobs=NO", "ExclusiveUser="+upperYesNo(p.ExclusiveUser),
		"GraceTime="+itoa(p.GraceTime), "Hidden="+upperYesNo(p.Hidden))
	r.line("MaxNodes="+orUnlimited(int64(p.MaxNodes)), "MaxTime="+partLimit(p.MaxTime, "UNLIMITED"), "MinNodes="+itoa(p.MinNodes), "LLN=NO",
		"MaxCPUsPerNode="+orUnlimited(int64(p.MaxCPUs)))
	r.line("Nodes=" + null(group.names()))
	r.line("PriorityJobFactor="+itoa(p.PriorityJobFactor), "PriorityTier="+itoa(p.PriorityTier), "RootOnly="+upperYesNo(p.RootOnly),
		"ReqResv="+upperYesNo(p.ReqResv), "OverSubscribe="+cmp.Or(p.OverSubscribe, "NO"))
	over := "NONE"
	if p.OverTimeLimit > 0 {
		over = itoa(p.OverTimeLimit)
	}
	r.line("OverTimeLimit="+over, "PreemptMode="+cmp.Or(p.PreemptMode, "OFF"))
	r.line("State="+p.State, "TotalCPUs="+itoa(cpus), "TotalNodes="+strconv.Itoa(len(member)), "SelectTypeParameters=NONE")
	r.line("JobDefaults=(null)")
	r.line(memoryLimit("Def", p.DefMemPerCPU, p.DefMemPerNode), memoryLimit("Max", p.MaxMemPerCPU, p.MaxMemPerNode))
	r.line("TRES=cpu=" + itoa(cpus) + ",mem=" + itoa(mib) + "M,node=" + strconv.Itoa(len(member)) + ",billing=" + itoa(cpus) + gresTRES(strings.Join(devices, ",")))
	return r
}

// allowed is AllowX=..., or DenyX=... where that is what is set.
func allowed(what string, allow, deny []string) string {
	if len(allow) == 0 && len(deny) > 0 {
		return "Deny" + what + "=" + Escape(strings.Join(deny, ","))
	}
	return "Allow" + what + "=" + joined(allow, "ALL")
}

func orUnlimited(n int64) string {
	if n <= 0 {
		return "UNLIMITED"
	}
	return itoa(n)
}

// memoryLimit is DefMemPerCPU=.. or DefMemPerNode=.., in MiB.
func memoryLimit(which string, cpu, node int64) string {
	if cpu > 0 {
		return which + "MemPerCPU=" + itoa(cpu)
	}
	return which + "MemPerNode=" + orUnlimited(node)
}

func upperYesNo(v bool) string { return strings.ToUpper(yesNo(v)) }

func partLimit(minutes int32, none string) string {
	if minutes == 0 {
		return none
	}
	return limitLong(minutes)
}
