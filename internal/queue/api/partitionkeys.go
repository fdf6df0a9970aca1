package api

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// partitionSettings makes all settings or none that fails.
func partitionSettings(p *v1alpha1.PartitionSpec, set map[string]string) error {
	for key, v := range set {
		f, ok := partitionKeys[key]
		if !ok {
			return change.Unknown(key, v)
		}
		if err := f(p, v); err != nil {
			return err
		}
	}
	return nil
}

// partitionSetter takes a value over, or says in scontrol's words why not.
type partitionSetter func(p *v1alpha1.PartitionSpec, v string) error

// partitionKeys are scontrol's parameters of a partition, in lower case.
var partitionKeys = map[string]partitionSetter{
	"state": oneOf("State", "UP, DOWN, DRAIN and INACTIVE", func(p *v1alpha1.PartitionSpec) *string { return &p.State }, "UP", "DOWN", "DRAIN", "INACTIVE"),
	"nodes": func(p *v1alpha1.PartitionSpec, v string) error {
		if _, err := hostlist.Expand(v); err != nil {
			return errBadNode
		}
		p.Nodes = v
		return nil
	},
	"default":       flagOf("Default", func(p *v1alpha1.PartitionSpec) *bool { return &p.Default }),
	"hidden":        flagOf("Hidden", func(p *v1alpha1.PartitionSpec) *bool { return &p.Hidden }),
	"rootonly":      flagOf("RootOnly", func(p *v1alpha1.PartitionSpec) *bool { return &p.RootOnly }),
	"reqresv":       flagOf("ReqResv", func(p *v1alpha1.PartitionSpec) *bool { return &p.ReqResv }),
	"exclusiveuser": flagOf("ExclusiveUser", func(p *v1alpha1.PartitionSpec) *bool { return &p.ExclusiveUser }),

	"maxtime":     minutesOf("maxtime", func(p *v1alpha1.PartitionSpec) *int32 { return &p.MaxTime }),
	"defaulttime": minutesOf("defaulttime", func(p *v1alpha1.PartitionSpec) *int32 { return &p.DefaultTime }),
	"maxnodes": countOf(math.MaxInt32, func(v string) error { return notNumeric(v, "MaxNodes") },
		func(p *v1alpha1.PartitionSpec) *int32 { return &p.MaxNodes }),
	"minnodes": countOf(math.MaxInt32, func(v string) error { return Refused(strconv.Quote(v) + " is not a valid node count") },
		func(p *v1alpha1.PartitionSpec) *int32 { return &p.MinNodes }),
	"maxcpuspernode":    countOf(math.MaxInt32, noValueOf("MaxCPUsPerNode"), func(p *v1alpha1.PartitionSpec) *int32 { return &p.MaxCPUs }),
	"priorityjobfactor": countOf(mostPriority, noValueOf("PriorityJobFactor"), func(p *v1alpha1.PartitionSpec) *int32 { return &p.PriorityJobFactor }),
	"prioritytier":      countOf(mostPriority, noValueOf("PriorityTier"), func(p *v1alpha1.PartitionSpec) *int32 { return &p.PriorityTier }),
	"gracetime":         countOf(math.MaxInt32, noValueOf("GraceTime"), func(p *v1alpha1.PartitionSpec) *int32 { return &p.GraceTime }),
	"overtimelimit": func(p *v1alpha1.PartitionSpec, v string) error {
		n, err := value.CountOrZero(v)
		if err != nil {
			return noValueOf("OverTimeLimit")(v)
		}
		p.OverTimeLimit = &n
		return nil
	},

	"defmempercpu":  memoryOf("DefMemPerCPU", func(p *v1alpha1.PartitionSpec) **int64 { return &p.DefMemPerCPU }),
	"defmempernode": memoryOf("DefMemPerNode", func(p *v1alpha1.PartitionSpec) **int64 { return &p.DefMemPerNode }),
	"maxmempercpu":  memoryOf("MaxMemPerCPU", func(p *v1alpha1.PartitionSpec) **int64 { return &p.MaxMemPerCPU }),
	"maxmempernode": memoryOf("MaxMemPerNode", func(p *v1alpha1.PartitionSpec) **int64 { return &p.MaxMemPerNode }),

	"allowaccounts": listOf(func(p *v1alpha1.PartitionSpec) *[]string { return &p.AllowAccounts }),
	"denyaccounts":  listOf(func(p *v1alpha1.PartitionSpec) *[]string { return &p.DenyAccounts }),
	"allowgroups":   listOf(func(p *v1alpha1.PartitionSpec) *[]string { return &p.AllowGroups }),
	"allowqos":      listOf(func(p *v1alpha1.PartitionSpec) *[]string { return &p.AllowQOS }),
	"denyqos":       listOf(func(p *v1alpha1.PartitionSpec) *[]string { return &p.DenyQOS }),

	"qos":         func(p *v1alpha1.PartitionSpec, v string) error { p.QOS = v; return nil },
	"alternate":   func(p *v1alpha1.PartitionSpec, v string) error { p.Alternate = v; return nil },
	"preemptmode": oneOf("PreemptMode", "", func(p *v1alpha1.PartitionSpec) *string { return &p.PreemptMode }, "OFF", "CANCEL", "REQUEUE", "SUSPEND", "GANG", "SUSPEND,GANG", "WITHIN"),
	"oversubscribe": func(p *v1alpha1.PartitionSpec, v string) error {
		mode, jobs, counted := strings.Cut(strings.ToUpper(v), ":")
		if _, err := value.Count(jobs); counted && err != nil || !slices.Contains([]string{"NO", "YES", "FORCE", "EXCLUSIVE"}, mode) {
			return Refused("Invalid input: oversubscribe=" + v + "\nAcceptable OverSubscribe values are NO, EXCLUSIVE, YES:#, and FORCE:#")
		}
		p.OverSubscribe = strings.ToUpper(v)
		return nil
	},
	"tresbillingweights": func(p *v1alpha1.PartitionSpec, v string) error {
		if _, err := limits.ParseBilling(v, false); err != nil {
			return errBilling
		}
		p.TRESBillingWeights = v
		return nil
	},
}

const (
	mostPriority = 1<<16 - 3 // of a partition, as in Slurm

	errBilling Refused = "Invalid TRESBillingWeights specification"
)

// noValueOf is the answer to what is no value of a parameter.
func noValueOf(name string) func(v string) error {
	return func(v string) error { return Refused("Invalid " + name + " value: " + v) }
}

func notNumeric(v, name string) error {
	return Refused("Invalid numeric value " + strconv.Quote(v) + " for " + name + ".")
}

// oneOf takes one of the words; acceptable is how scontrol lists them.
func oneOf(name, acceptable string, field func(*v1alpha1.PartitionSpec) *string, words ...string) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) error {
		text := "Invalid input: " + strings.ToLower(name) + "=" + v
		if acceptable != "" {
			text += "\nAcceptable " + name + " values are " + acceptable
		}
		if !slices.Contains(words, strings.ToUpper(v)) {
			return Refused(text)
		}
		*field(p) = strings.ToUpper(v)
		return nil
	}
}

func flagOf(name string, field func(*v1alpha1.PartitionSpec) *bool) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) error {
		word := ""
		if err := oneOf(name, "YES and NO", func(*v1alpha1.PartitionSpec) *string { return &word }, "YES", "NO")(p, v); err != nil {
			return err
		}
		*field(p) = word == "YES"
		return nil
	}
}

func minutesOf(key string, field func(*v1alpha1.PartitionSpec) *int32) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) error {
		if strings.EqualFold(v, "none") {
			*field(p) = 0
			return nil
		}
		m, err := value.Minutes(v)
		switch {
		case err != nil:
			return Refused("Invalid input " + key + "=" + v)
		case m == 0:
			m = job.Unlimited
		}
		*field(p) = m
		return nil
	}
}

func countOf(most int64, wrong func(v string) error, field func(*v1alpha1.PartitionSpec) *int32) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) error {
		if strings.EqualFold(v, "unlimited") || strings.EqualFold(v, "infinite") {
			*field(p) = 0
			return nil
		}
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 0 || n > most {
			return wrong(v)
		}
		*field(p) = int32(n)
		return nil
	}
}

func memoryOf(name string, field func(*v1alpha1.PartitionSpec) **int64) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) error {
		if *field(p) = nil; strings.EqualFold(v, "unlimited") {
			return nil
		}
		n, err := value.Megabytes(v)
		if err != nil {
			return noValueOf(name)(v)
		}
		*field(p) = &n
		return nil
	}
}

func listOf(field func(*v1alpha1.PartitionSpec) *[]string) partitionSetter {
	return func(p *v1alpha1.PartitionSpec, v string) error {
		if *field(p) = nil; v != "" && !strings.EqualFold(v, "all") {
			*field(p) = list(map[string][]string{"": {v}}, "")
		}
		return nil
	}
}
