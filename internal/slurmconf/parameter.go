package slurmconf

import (
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/option"
)

// set writes one parameter into the cluster's.
type set func(c *v1alpha1.ClusterSpec, kv pair) error

// number returns a setter for a whole number.
func number(least int64, to func(c *v1alpha1.ClusterSpec, n int64)) set {
	return func(c *v1alpha1.ClusterSpec, kv pair) error {
		n, err := kv.integer(least, maxInt32)
		if err == nil {
			to(c, n)
		}
		return err
	}
}

func weight(name string) set {
	return number(0, func(c *v1alpha1.ClusterSpec, n int64) {
		if c.PriorityWeights == nil {
			c.PriorityWeights = map[string]int64{}
		}
		c.PriorityWeights[name] = n
	})
}

// parameters are those of the cluster that have an effect in Berth.
var parameters = map[string]set{
	"clustername": func(c *v1alpha1.ClusterSpec, kv pair) error { c.ClusterName = kv.value; return nil },
	"firstjobid":  number(1, func(c *v1alpha1.ClusterSpec, n int64) { c.FirstJobID = n }),
	"maxjobid":    number(1, func(c *v1alpha1.ClusterSpec, n int64) { c.MaxJobID = n }),
	"maxjobcount": number(1, func(c *v1alpha1.ClusterSpec, n int64) { c.MaxJobs = int32(n) }),
	"minjobage":   number(0, func(c *v1alpha1.ClusterSpec, n int64) { c.MinJobAge = pointer(int32(n)) }),
	"killwait":    number(0, func(c *v1alpha1.ClusterSpec, n int64) { c.KillWait = pointer(int32(n)) }),
	// It is one more than the highest array index, so at least 1.
	"maxarraysize":             number(1, func(c *v1alpha1.ClusterSpec, n int64) { c.MaxArraySize = int32(n) }),
	"overtimelimit":            minutes(func(c *v1alpha1.ClusterSpec, n int32) { c.OverTimeLimit = n }),
	"resvoverrun":              minutes(func(c *v1alpha1.ClusterSpec, n int32) { c.ResvOverRun = n }),
	"jobrequeue":               number(0, func(c *v1alpha1.ClusterSpec, n int64) { c.JobRequeue = pointer(n != 0) }),
	"requeueexit":              exitCodes(func(c *v1alpha1.ClusterSpec, list string) { c.RequeueExit = list }),
	"requeueexithold":          exitCodes(func(c *v1alpha1.ClusterSpec, list string) { c.RequeueExitHold = list }),
	"enforcepartlimits":        enforcePartLimits,
	"accountingstorageenforce": accountingStorageEnforce,
	"priorityweightage":        weight("age"),
	"priorityweightfairshare":  weight("fairshare"),
	"priorityweightjobsize":    weight("jobsize"),
	"priorityweightpartition":  weight("partition"),
	"priorityweightqos":        weight("qos"),
	"priorityweightassoc":      weight("assoc"),
	"propagateresourcelimits": limitNames(
		func(c *v1alpha1.ClusterSpec, names []string) { c.PropagateResourceLimits = names },
	),
	"propagateresourcelimitsexcept": limitNames(func(c *v1alpha1.ClusterSpec, names []string) {
		c.PropagateResourceLimitsExcept = names
	}),
	"prolog":     script(func(c *v1alpha1.ClusterSpec) *string { return &c.Prolog }),
	"epilog":     script(func(c *v1alpha1.ClusterSpec) *string { return &c.Epilog }),
	"taskprolog": script(func(c *v1alpha1.ClusterSpec) *string { return &c.TaskProlog }),
	"taskepilog": script(func(c *v1alpha1.ClusterSpec) *string { return &c.TaskEpilog }),
	"srunprolog": script(func(c *v1alpha1.ClusterSpec) *string { return &c.SrunProlog }),
	"srunepilog": script(func(c *v1alpha1.ClusterSpec) *string { return &c.SrunEpilog }),
	"prologepilogtimeout": number(0, func(c *v1alpha1.ClusterSpec, n int64) {
		if n < noTimeout {
			c.PrologEpilogTimeout = int32(n)
		}
	}),
	"privatedata": func(c *v1alpha1.ClusterSpec, kv pair) error { c.PrivateData = kv.list(); return nil },
}

// exitCodes reads a list of them, "1-3,9".
func exitCodes(to func(c *v1alpha1.ClusterSpec, list string)) set {
	return func(c *v1alpha1.ClusterSpec, kv pair) error {
		if codes := array.Parse(kv.value); len(codes) == 0 || codes[len(codes)-1] > 255 {
			return kv.bad("exit codes from 0 to 255, separated by commas,")
		}
		to(c, kv.value)
		return nil
	}
}

// noTimeout is Slurm's value for no timeout.
const noTimeout = 65534

// script returns a setter for a program of the site: a path. Patterns of paths are
// refused.
func script(to func(c *v1alpha1.ClusterSpec) *string) set {
	return func(c *v1alpha1.ClusterSpec, kv pair) error {
		switch {
		case strings.EqualFold(kv.value, "(null)"), strings.EqualFold(kv.value, "none"):
			return nil
		case !strings.HasPrefix(kv.value, "/") || strings.ContainsAny(kv.value, "*?["):
			return kv.bad("the absolute path of one program")
		}
		*to(c) = kv.value
		return nil
	}
}

// limitNames returns a setter for a list of resource limits.
func limitNames(to func(c *v1alpha1.ClusterSpec, names []string)) set {
	return func(c *v1alpha1.ClusterSpec, kv pair) error {
		list := kv.list()
		if _, ok := option.RlimitNames(list); !ok {
			return kv.bad("ALL, NONE or names of resource limits")
		}
		to(c, list)
		return nil
	}
}

func pointer[T any](v T) *T { return &v }

// minutes returns a setter for a number of minutes, or UNLIMITED.
func minutes(to func(c *v1alpha1.ClusterSpec, n int32)) set {
	return func(c *v1alpha1.ClusterSpec, kv pair) error {
		if unlimited(kv.value) {
			to(c, maxInt32)
			return nil
		}
		n, err := kv.integer(0, maxInt32)
		to(c, int32(n))
		return err
	}
}

// accountingStorageEnforce reads slurm.conf's words. Numbers, which old files have
// in their place, are not read.
func accountingStorageEnforce(c *v1alpha1.ClusterSpec, kv pair) error {
	c.AccountingStorageEnforce = nil
	for _, word := range kv.list() {
		switch word = strings.ToLower(word); word {
		case "associations", "limits", "qos", "safe", "wckeys", "all", "none":
			c.AccountingStorageEnforce = append(c.AccountingStorageEnforce, word)
		case "nojobs", "nosteps":
			return kv.bad(
				"associations, limits, qos, safe, wckeys, all or none, since jobs and steps are always accounted for,",
			)
		default:
			return kv.bad("associations, limits, qos, safe, wckeys, all or none")
		}
	}
	return nil
}

func enforcePartLimits(c *v1alpha1.ClusterSpec, kv pair) error {
	switch v := strings.ToUpper(kv.value); v {
	case "NO", "ANY", "ALL":
		c.EnforcePartLimits = v
	case "YES":
		c.EnforcePartLimits = "ALL"
	default:
		return kv.bad("NO, ANY or ALL")
	}
	return nil
}

// memoryLimit parses one of the four parameters that clusters and partitions share; it
// reports whether the key is one of them.
func memoryLimit(m *v1alpha1.MemoryLimits, kv pair) (bool, error) {
	var to **int64
	switch strings.ToLower(kv.key) {
	case "defmempercpu":
		to = &m.DefMemPerCPU
	case "defmempernode":
		to = &m.DefMemPerNode
	case "maxmempercpu":
		to = &m.MaxMemPerCPU
	case "maxmempernode":
		to = &m.MaxMemPerNode
	default:
		return false, nil
	}
	var err error
	*to, err = kv.limit()
	return true, err
}

// parameter parses a parameter of the cluster. Parameters without effect are kept for
// scontrol show config, with a warning.
func (p *parser) parameter(kv pair) error {
	c := &p.config.Cluster
	if ok, err := memoryLimit(&c.MemoryLimits, kv); ok {
		return err
	}
	key := strings.ToLower(kv.key)
	if f, ok := parameters[key]; ok {
		return f(c, kv)
	}
	if f, ok := policies[key]; ok {
		return f(c, kv)
	}
	if honours(c, key, kv.value) {
		return nil
	}
	if c.Parameters == nil {
		c.Parameters = map[string]string{}
	}
	name, known := names[key]
	if !known {
		p.warn(kv, "slurm.conf(5) knows no such parameter")
		name = kv.key
	}
	c.Parameters[name] = kv.value
	switch {
	case !known || harmless(key, kv.value):
	case plumbing[key]:
		p.config.Warnings = append(p.config.Warnings, Warning{
			File: kv.file, Line: kv.number, Key: kv.key, Text: "means nothing here", Plumbing: true,
		})
	default:
		p.warn(kv, "is not honoured")
	}
	return nil
}

// harmless reports whether a parameter has a value that describes what Berth does
// anyway.
func harmless(key, value string) bool {
	switch key {
	case "schedulertype":
		return strings.EqualFold(value, "sched/backfill")
	case "selecttype":
		return strings.EqualFold(value, "select/cons_tres") || strings.EqualFold(value, "select/cons_res")
	case "selecttypeparameters":
		return strings.EqualFold(value, "CR_Core_Memory") || strings.EqualFold(value, "CR_CPU_Memory")
	case "grestypes":
		return true // nodes report their own resources
	case "maxnodecount":
		return true
	}
	return false
}
