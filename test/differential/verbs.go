package main

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
)

// sinfoNames are the columns of sinfo -O that do not depend on the machine.
var sinfoNames = []string{
	"AllocMem", "AllocNodes", "Available", "Cluster", "Comment", "Cores", "CPUs", "CPUsState", "DefaultTime",
	"Disk", "Extra", "Features", "features_act", "Gres", "GresUsed", "Groups", "MaxCPUsPerNode", "Memory", "NodeAI",
	"NodeAIOT", "NodeList", "Nodes", "OverSubscribe", "Partition", "PartitionName", "PreemptMode", "PriorityJobFactor",
	"PriorityTier", "Reason", "Root", "Size", "SocketCoreThread", "Sockets", "StateCompact", "StateComplete",
	"StateLong", "Threads", "Time", "User", "Weight",
}

// unshared are columns whose values two systems do not share: usage, ids of records, the
// priority, and the machine.
var unshared = []string{
	"ave", "max", "min", "total", "system", "usercpu", "tresusage", "consumed", "dbindex", "associd", "priority",
	"prio", "time", "batchhost", "lastsched", "reqcpufreq", "suspended", "cputime", "allocsid", "alloc_sid",
	"alloc-sid", "allocnodes", "cluster", "accruetime", "wckey", "submitline", "network",
}

// shared returns the names of columns without those of unshared.
func shared(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		lower := strings.ToLower(n)
		return slices.ContainsFunc(unshared, func(p string) bool {
			return strings.HasPrefix(lower, p) && lower != "timelimit" && lower != "timelimitraw"
		})
	})
}

// columnNames returns the names of the columns of a listing.
func columnNames[R any](columns []format.Column[R]) []string {
	var names []string
	for _, c := range columns {
		if c.Name != "" {
			names = append(names, c.Name)
		}
	}
	return shared(names)
}

// sacctNames returns the fields of sacct.
func sacctNames() []string {
	var names []string
	for _, f := range format.AcctFields {
		names = append(names, f.Name)
	}
	return shared(names)
}

// scontrolShow returns a scontrol show.
func (g *generator) scontrolShow(command string) *call {
	var parts []part
	for _, o := range []string{"-o", "-d", "-a", "--hide"} {
		if g.r.IntN(5) == 0 {
			parts = append(parts, part{name: o, words: []string{o}})
		}
	}
	entity := []string{"job", "job", "job", "node", "node", "partition", "partition", "reservation", "step", "step",
		"licenses", "hostnames", "hostlist", "hostlistsorted", "topology", "federation", "burstbuffer"}[g.r.IntN(17)]
	given := entity
	if g.r.IntN(8) == 0 {
		given = entity[:1+g.r.IntN(len(entity))]
	}
	parts = append(parts, part{words: []string{"show", given}, fixed: true})
	if id := g.recordName(entity); entity == "job" || g.r.IntN(6) > 0 {
		parts = append(parts, part{name: "name", value: id, words: []string{id}, fixed: entity == "job"})
	}
	return &call{kind: query, command: command, parts: parts}
}

// recordName returns the name of a record of scontrol show.
func (g *generator) recordName(entity string) string {
	switch entity {
	case "job":
		return pick(g.r, grammar["scontrol job"])
	case "step":
		return pick(g.r, grammar["steps"])
	case "partition":
		return pick(g.r, grammar["kind Partitions"])
	case "reservation":
		return pick(g.r, grammar["kind Reservations"])
	case "node":
		return pick(g.r, grammar["kind Nodes"])
	case "hostnames", "hostlist", "hostlistsorted":
		return pick(g.r, "n[1-3,5] a,b,a n[01-03] a[1-2]b[1-2] n3,n1,n2 a10,a9,a1 | n[1] n[3-3] '' a1,a01 , a[1-2,2] | n[ n[1- n[3-1] n[x]")
	}
	return pick(g.r, grammar["kind Free"])
}

// keyOptions maps keys of scontrol update to the options with the same values.
var keyOptions = map[string]string{
	"timelimit": "time", "timemin": "time", "numnodes": "nodes", "numcpus": "ntasks", "mincpusnode": "cpus-per-task",
	"minmemorycpu": "mem", "minmemorynode": "mem", "mintmpdisknode": "tmp", "features": "constraint", "gres": "gres",
	"dependency": "dependency", "excnodelist": "kind Nodes", "nodelist": "kind Nodes", "reqnodelist": "kind Nodes",
	"reqnodes": "nodes", "partition": "kind Partitions", "account": "account", "qos": "kind QOS", "name": "job-name",
	"jobname": "job-name", "comment": "comment", "nice": "nice", "licenses": "licenses", "deadline": "deadline",
	"switches": "switches", "mailtype": "mail-type", "mailuser": "mail-user", "reservationname": "kind Reservations",
	"endtime": "begin", "eligibletime": "begin", "shared": "key oversubscribe", "ntaskspernode": "ntasks-per-node",
	"cpuspertask": "cpus-per-task", "corespec": "core-spec", "threadspec": "thread-spec", "delayboot": "time",
	"prefer": "constraint", "wckey": "kind WCKeys", "trespernode": "gres",
}

// keyValue returns a value of a key of scontrol update job.
func (g *generator) keyValue(key string) string {
	key = strings.ToLower(key)
	if v, ok := grammar["key "+key]; ok {
		return pick(g.r, v)
	}
	if name, ok := keyOptions[key]; ok {
		return pick(g.r, grammar[name])
	}
	return pick(g.r, grammar["kind number"])
}

// scontrolChange returns an update of a fresh job, or a verb that operates on it.
func (g *generator) scontrolChange(command string) *call {
	c := &call{kind: change, command: command}
	target := pick(g.r, grammar["update job"])
	if g.r.IntN(4) == 0 {
		verbs := strings.Fields(grammar["verbs"])
		c.parts = []part{{words: []string{verbs[g.r.IntN(len(verbs))], target}, fixed: true}}
		return c
	}
	c.parts = []part{{words: []string{"update"}, fixed: true}, {words: []string{"job=" + target}, fixed: true}}
	keys := option.ScontrolKeys["job"]
	for range 1 + g.r.IntN(3) {
		k := keys[g.r.IntN(len(keys))]
		v := g.keyValue(k)
		given := k
		switch g.r.IntN(10) {
		case 0:
			given = strings.ToUpper(k)
		case 1:
			given = k[:1+g.r.IntN(len(k))]
		}
		c.parts = append(c.parts, part{name: k, value: v, words: []string{given + "=" + v}})
	}
	return c
}

// sacctmgrShow returns a sacctmgr show.
func (g *generator) sacctmgrShow(command string) *call {
	parts := []part{}
	for _, o := range []string{"-n", "-P", "-p", "-s"} {
		if g.r.IntN(4) == 0 {
			parts = append(parts, part{name: o, words: []string{o}})
		}
	}
	entities := []string{"account", "association", "qos", "tres", "user", "wckey"}
	entity := entities[g.r.IntN(len(entities))]
	parts = append(parts, part{words: []string{"show", entity}, fixed: true})
	for _, k := range option.SacctmgrKeys(entity, "show") {
		if g.r.IntN(3) > 0 {
			continue
		}
		v := ""
		switch k {
		case "Format=":
			v = g.columns(option.SacctmgrFields)
		case "Names=", "Accounts=":
			v = pick(g.r, grammar["account"])
		case "Users=":
			v = pick(g.r, grammar["kind Users"])
		case "Partitions=", "Clusters=":
			v = pick(g.r, "debug ref | '' | nosuch")
		}
		parts = append(parts, part{name: k, value: v, words: []string{k + v}})
	}
	return &call{kind: query, command: command, parts: parts}
}

// sreport returns a report.
func (g *generator) sreport(command string) *call {
	parts := g.options(command, 2)
	kinds := []string{"cluster", "job", "user"}
	of := kinds[g.r.IntN(3)]
	names := option.SreportNames[of]
	parts = append(parts, part{words: []string{of, names[g.r.IntN(len(names))]}, fixed: true})
	for _, k := range []string{"Start=", "End=", "Users=", "Accounts=", "TopCount=", "Tree", "Group"} {
		if g.r.IntN(4) > 0 {
			continue
		}
		v := ""
		switch k {
		case "Start=", "End=":
			v = pick(g.r, "2020-01-01 2030-01-01 today now-1day | now '' | x")
		case "Users=":
			v = pick(g.r, grammar["kind Users"])
		case "Accounts=":
			v = pick(g.r, grammar["account"])
		case "TopCount=":
			v = pick(g.r, grammar["kind number"])
		}
		parts = append(parts, part{name: k, value: v, words: []string{k + v}})
	}
	return &call{kind: query, command: command, parts: parts}
}
