package slurmconf

import (
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/option"
)

// setter sets one parameter of a cluster.
type setter func(c *v1alpha1.ClusterSpec, kv pair) error

// number returns a setter for an integer that is at least minimum.
func number(minimum int64, to func(c *v1alpha1.ClusterSpec, n int64)) setter {
	return func(c *v1alpha1.ClusterSpec, kv pair) error {
		n, err := kv.integer(minimum, maxInt32)
		if err == nil {
			to(c, n)
		}
		return err
	}
}

func weight(name string) setter {
	return number(0, func(c *v1alpha1.ClusterSpec, n int64) {
		if c.PriorityWeights == nil {
			c.PriorityWeights = map[string]int64{}
		}
		c.PriorityWeights[name] = n
	})
}

// parameters has setters for the parameters with an effect in Berth, by name in lower
// case; see also policies.
var parameters = map[string]setter{
	"clustername": func(c *v1alpha1.ClusterSpec, kv pair) error { c.ClusterName = kv.value; return nil },
	"firstjobid":  number(1, func(c *v1alpha1.ClusterSpec, n int64) { c.FirstJobID = n }),
	"maxjobid":    number(1, func(c *v1alpha1.ClusterSpec, n int64) { c.MaxJobID = n }),
	"maxjobcount": number(1, func(c *v1alpha1.ClusterSpec, n int64) { c.MaxJobs = int32(n) }),
	"minjobage":   number(0, func(c *v1alpha1.ClusterSpec, n int64) { c.MinJobAge = pointer(int32(n)) }),
	"killwait":    number(0, func(c *v1alpha1.ClusterSpec, n int64) { c.KillWait = pointer(int32(n)) }),
	"slurmdtimeout": number(0, func(c *v1alpha1.ClusterSpec, n int64) {
		c.SlurmdTimeout = pointer(int32(min(n, v1alpha1.MaxSlurmdTimeout)))
	}),
	// One more than the highest array index, so at least 1.
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
	"privatedata": func(c *v1alpha1.ClusterSpec, kv pair) error { c.PrivateData = kv.words(); return nil },
}

// exitCodes returns a setter for a list of exit codes such as "1-3,9".
func exitCodes(to func(c *v1alpha1.ClusterSpec, list string)) setter {
	return func(c *v1alpha1.ClusterSpec, kv pair) error {
		if codes := array.Parse(kv.value); len(codes) == 0 || codes[len(codes)-1] > 255 {
			return kv.invalid("exit codes from 0 to 255, separated by commas")
		}
		to(c, kv.value)
		return nil
	}
}

// noTimeout is the value of PrologEpilogTimeout for no timeout.
const noTimeout = 65534

// script returns a setter for the absolute path of a program; glob patterns are an error.
func script(to func(c *v1alpha1.ClusterSpec) *string) setter {
	return func(c *v1alpha1.ClusterSpec, kv pair) error {
		switch {
		case strings.EqualFold(kv.value, "(null)"), strings.EqualFold(kv.value, "none"):
			return nil
		case !strings.HasPrefix(kv.value, "/") || strings.ContainsAny(kv.value, "*?["):
			return kv.invalid("the absolute path of one program")
		}
		*to(c) = kv.value
		return nil
	}
}

// limitNames returns a setter for a list of resource limits, ALL or NONE.
func limitNames(to func(c *v1alpha1.ClusterSpec, names []string)) setter {
	return func(c *v1alpha1.ClusterSpec, kv pair) error {
		list := kv.words()
		if _, ok := option.RlimitNames(list); !ok {
			return kv.invalid("ALL, NONE or names of resource limits")
		}
		to(c, list)
		return nil
	}
}

func pointer[T any](v T) *T { return &v }

// minutes returns a setter for a number of minutes. UNLIMITED is maxInt32.
func minutes(to func(c *v1alpha1.ClusterSpec, n int32)) setter {
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

// accountingStorageEnforce parses a list of words. The numbers that old versions of Slurm
// accepted are an error.
func accountingStorageEnforce(c *v1alpha1.ClusterSpec, kv pair) error {
	c.AccountingStorageEnforce = nil
	for _, word := range kv.words() {
		switch word = strings.ToLower(word); word {
		case "associations", "limits", "qos", "safe", "wckeys", "all", "none":
			c.AccountingStorageEnforce = append(c.AccountingStorageEnforce, word)
		case "nojobs", "nosteps":
			return kv.invalid(
				"associations, limits, qos, safe, wckeys, all or none; jobs and steps are always accounted for",
			)
		default:
			return kv.invalid("associations, limits, qos, safe, wckeys, all or none")
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
		return kv.invalid("NO, ANY or ALL")
	}
	return nil
}

// memoryLimit sets one of the four memory parameters that clusters and partitions have in
// common; ok is false for other keys.
func memoryLimit(m *v1alpha1.MemoryLimits, kv pair) (ok bool, err error) {
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
	*to, err = kv.limit()
	return true, err
}

// parameter sets a parameter of the cluster. One without effect is kept for scontrol show
// config, and is a warning unless Berth behaves as it says.
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
	if setSupported(c, key, kv.value) {
		return nil
	}
	supported, err := p.power.powerParameter(kv)
	if err != nil {
		return err
	}
	if c.Parameters == nil {
		c.Parameters = map[string]string{}
	}
	name, known := names[key]
	if !known {
		p.warn(kv, "not a parameter of slurm.conf(5)")
		name = kv.key
	}
	c.Parameters[name] = kv.value
	switch {
	case !known || supported || isDefaultBehavior(key, kv.value):
	case daemonOnly[key]:
		p.config.Warnings = append(p.config.Warnings, Warning{
			File: kv.file, Line: kv.number, Key: kv.key, Text: "not applicable", DaemonOnly: true,
		})
	default:
		p.warn(kv, "not supported; ignored")
	}
	return nil
}

// isDefaultBehavior reports whether Berth always behaves as the parameter says.
func isDefaultBehavior(key, value string) bool {
	switch key {
	case "schedulertype":
		return strings.EqualFold(value, "sched/backfill")
	case "selecttype":
		return strings.EqualFold(value, "select/cons_tres") || strings.EqualFold(value, "select/cons_res")
	case "selecttypeparameters":
		return strings.EqualFold(value, "CR_Core_Memory") || strings.EqualFold(value, "CR_CPU_Memory")
	case "topologyplugin":
		return topologyType(value) != ""
	case "grestypes", "maxnodecount": // nodes report their own resources, and register themselves
		return true
	}
	return false
}
