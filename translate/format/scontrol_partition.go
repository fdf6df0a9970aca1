package format

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/status"
)

// PartitionRecord returns the record of a partition in scontrol show partition.
// nodes are all nodes of the cluster.
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
	r.line("AllowGroups="+joined(p.AllowGroups, "ALL"),
		allowOrDeny("Accounts", p.AllowAccounts, p.DenyAccounts), allowOrDeny("Qos", p.AllowQOS, p.DenyQOS))
	r.line("AllocNodes=ALL", "Default="+upperYesNo(p.Default), "QoS="+cmp.Or(printable.Escape(p.QOS), "N/A"))
	r.line("DefaultTime="+partitionLimit(p.DefaultTime, "NONE"), "DisableRootJobs=NO",
		"ExclusiveUser="+upperYesNo(p.ExclusiveUser), "GraceTime="+itoa(p.GraceTime), "Hidden="+upperYesNo(p.Hidden))
	r.line("MaxNodes="+orUnlimited(int64(p.MaxNodes)), "MaxTime="+partitionLimit(p.MaxTime, "UNLIMITED"),
		"MinNodes="+itoa(p.MinNodes), "LLN=NO", "MaxCPUsPerNode="+orUnlimited(int64(p.MaxCPUs)))
	r.line("Nodes=" + orNull(group.names()))
	r.line(
		"PriorityJobFactor="+itoa(p.PriorityJobFactor),
		"PriorityTier="+itoa(p.PriorityTier),
		"RootOnly="+upperYesNo(
			p.RootOnly,
		),
		"ReqResv="+upperYesNo(p.ReqResv),
		"OverSubscribe="+cmp.Or(p.OverSubscribe, "NO"),
	)
	r.line("OverTimeLimit="+overTimeLimit(p.OverTimeLimit), "PreemptMode="+cmp.Or(p.PreemptMode, "OFF"))
	r.line(
		"State="+p.State,
		"TotalCPUs="+itoa(cpus),
		"TotalNodes="+strconv.Itoa(len(member)),
		"SelectTypeParameters=NONE",
	)
	r.line("JobDefaults=(null)")
	r.line(memoryLimit("Def", p.DefMemPerCPU, p.DefMemPerNode), memoryLimit("Max", p.MaxMemPerCPU, p.MaxMemPerNode))
	if len(member) == 0 {
		r.line("TRES=(null)")
		return r
	}
	r.line("TRES=cpu=" + itoa(cpus) + ",mem=" + itoa(mib) + "M,node=" + strconv.Itoa(len(member)) +
		",billing=" + itoa(cpus) + gresTRES(strings.Join(devices, ",")))
	return r
}

// allowOrDeny returns AllowX=..., or DenyX=... if only that list is set.
func allowOrDeny(what string, allow, deny []string) string {
	if len(allow) == 0 && len(deny) > 0 {
		return "Deny" + what + "=" + printable.Escape(strings.Join(deny, ","))
	}
	return "Allow" + what + "=" + joined(allow, "ALL")
}

// overTimeLimit returns minutes as a number, NONE or UNLIMITED (math.MaxInt32).
func overTimeLimit(minutes int32) string {
	switch {
	case minutes <= 0:
		return "NONE"
	case minutes == math.MaxInt32:
		return "UNLIMITED"
	}
	return itoa(minutes)
}

func orUnlimited(n int64) string {
	if n <= 0 {
		return "UNLIMITED"
	}
	return itoa(n)
}

// memoryLimit returns DefMemPerCPU=N or DefMemPerNode=N, in MiB, for which "Def".
func memoryLimit(which string, cpu, node int64) string {
	if cpu > 0 {
		return which + "MemPerCPU=" + itoa(cpu)
	}
	return which + "MemPerNode=" + orUnlimited(node)
}

func upperYesNo(v bool) string { return strings.ToUpper(yesNo(v)) }

func partitionLimit(minutes int32, none string) string {
	if minutes == 0 {
		return none
	}
	return limitLong(minutes)
}
