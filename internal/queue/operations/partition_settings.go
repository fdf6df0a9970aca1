package operations

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

type partitionSpec = v1alpha1.PartitionSpec

// partitionSetter parses a value and sets a field, or returns scontrol's refusal.
type partitionSetter func(p *partitionSpec, v string) error

// maxPartitionPriority is the highest priority of a partition, as in Slurm.
const maxPartitionPriority = 1<<16 - 3

// partitionSetters are scontrol's parameters of a partition, in lower case.
var partitionSetters = map[string]partitionSetter{
	"state": keywordSetter("State", "UP, DOWN, DRAIN and INACTIVE",
		func(p *partitionSpec) *string { return &p.State }, "UP", "DOWN", "DRAIN", "INACTIVE"),
	"nodes": setPartitionNodes,

	"default":       flagSetter("Default", func(p *partitionSpec) *bool { return &p.Default }),
	"hidden":        flagSetter("Hidden", func(p *partitionSpec) *bool { return &p.Hidden }),
	"rootonly":      flagSetter("RootOnly", func(p *partitionSpec) *bool { return &p.RootOnly }),
	"reqresv":       flagSetter("ReqResv", func(p *partitionSpec) *bool { return &p.ReqResv }),
	"exclusiveuser": flagSetter("ExclusiveUser", func(p *partitionSpec) *bool { return &p.ExclusiveUser }),

	"maxtime":     minutesSetter("maxtime", func(p *partitionSpec) *int32 { return &p.MaxTime }),
	"defaulttime": minutesSetter("defaulttime", func(p *partitionSpec) *int32 { return &p.DefaultTime }),

	"maxnodes": countSetter(math.MaxInt32, notNumeric("MaxNodes"),
		func(p *partitionSpec) *int32 { return &p.MaxNodes }),
	"minnodes": countSetter(math.MaxInt32, notNodeCount,
		func(p *partitionSpec) *int32 { return &p.MinNodes }),
	"maxcpuspernode": countSetter(math.MaxInt32, invalidValue("MaxCPUsPerNode"),
		func(p *partitionSpec) *int32 { return &p.MaxCPUs }),
	"priorityjobfactor": countSetter(maxPartitionPriority, invalidValue("PriorityJobFactor"),
		func(p *partitionSpec) *int32 { return &p.PriorityJobFactor }),
	"prioritytier": countSetter(maxPartitionPriority, invalidValue("PriorityTier"),
		func(p *partitionSpec) *int32 { return &p.PriorityTier }),
	"priority": setPriority,
	"gracetime": countSetter(math.MaxInt32, invalidValue("GraceTime"),
		func(p *partitionSpec) *int32 { return &p.GraceTime }),
	"overtimelimit": setOverTimeLimit,

	"defmempercpu":  memorySetter("DefMemPerCPU", func(p *partitionSpec) **int64 { return &p.DefMemPerCPU }),
	"defmempernode": memorySetter("DefMemPerNode", func(p *partitionSpec) **int64 { return &p.DefMemPerNode }),
	"maxmempercpu":  memorySetter("MaxMemPerCPU", func(p *partitionSpec) **int64 { return &p.MaxMemPerCPU }),
	"maxmempernode": memorySetter("MaxMemPerNode", func(p *partitionSpec) **int64 { return &p.MaxMemPerNode }),

	"allowaccounts": listSetter(func(p *partitionSpec) *[]string { return &p.AllowAccounts }),
	"denyaccounts":  listSetter(func(p *partitionSpec) *[]string { return &p.DenyAccounts }),
	"allowgroups":   listSetter(func(p *partitionSpec) *[]string { return &p.AllowGroups }),
	"allowqos":      listSetter(func(p *partitionSpec) *[]string { return &p.AllowQOS }),
	"denyqos":       listSetter(func(p *partitionSpec) *[]string { return &p.DenyQOS }),

	"qos":       func(p *partitionSpec, v string) error { p.QOS = v; return nil },
	"alternate": func(p *partitionSpec, v string) error { p.Alternate = v; return nil },
	"preemptmode": keywordSetter("PreemptMode", "", func(p *partitionSpec) *string { return &p.PreemptMode },
		"OFF", "CANCEL", "REQUEUE", "SUSPEND", "GANG", "SUSPEND,GANG", "WITHIN"),
	"oversubscribe":      setOverSubscribe,
	"tresbillingweights": setBillingWeights,
}

// applyPartitionSettings sets all settings, or returns the first refusal in the order of
// their names; then p has some of them.
func applyPartitionSettings(p *partitionSpec, settings map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		set, ok := partitionSetters[key]
		if !ok {
			return change.UnknownParameter(key, settings[key])
		}
		if err := set(p, settings[key]); err != nil {
			return err
		}
	}
	return nil
}

// invalidValue returns a function that returns the refusal of a value of the named
// parameter.
func invalidValue(name string) func(v string) error {
	return func(v string) error {
		return refuseSetting(status.CodeInvalidValue, name, v, "Invalid "+name+" value: "+v)
	}
}

func notNumeric(name string) func(v string) error {
	return func(v string) error {
		return refuseSetting(
			status.CodeInvalidCount, name, v, "Invalid numeric value "+strconv.Quote(v)+" for "+name+".",
		)
	}
}

func notNodeCount(v string) error {
	return refuseSetting(status.CodeInvalidCount, "MinNodes", v, strconv.Quote(v)+" is not a valid node count")
}

func refuseSetting(code status.ErrorCode, parameter, v, message string) error {
	return refusal.Setting{Message: refusal.Text(message), Code: code, Parameter: parameter, Value: v}
}

// keywordSetter sets one of several keywords, upper case. acceptable is the list
// of them in scontrol's refusal; "" if the refusal has none.
func keywordSetter(name, acceptable string, field func(*partitionSpec) *string, keywords ...string) partitionSetter {
	return func(p *partitionSpec, v string) error {
		keyword := strings.ToUpper(v)
		if !slices.Contains(keywords, keyword) {
			return invalidKeyword(name, acceptable, v)
		}
		*field(p) = keyword
		return nil
	}
}

func invalidKeyword(name, acceptable, v string) error {
	key := strings.ToLower(name)
	text := "Invalid input: " + key + "=" + v
	if acceptable != "" {
		text += "\nAcceptable " + name + " values are " + acceptable
	}
	return refuseSetting(status.CodeInvalidValue, key, v, text)
}

func flagSetter(name string, field func(*partitionSpec) *bool) partitionSetter {
	return func(p *partitionSpec, v string) error {
		switch strings.ToUpper(v) {
		case "YES":
			*field(p) = true
		case "NO":
			*field(p) = false
		default:
			return invalidKeyword(name, "YES and NO", v)
		}
		return nil
	}
}

func minutesSetter(key string, field func(*partitionSpec) *int32) partitionSetter {
	return func(p *partitionSpec, v string) error {
		if strings.EqualFold(v, "none") {
			*field(p) = 0
			return nil
		}
		m, err := value.Minutes(v)
		switch {
		case err != nil:
			return refuseSetting(status.CodeInvalidValue, key, v, "Invalid input "+key+"="+v)
		case m == 0:
			m = job.Unlimited
		}
		*field(p) = m
		return nil
	}
}

func countSetter(highest int64, invalid func(v string) error, field func(*partitionSpec) *int32) partitionSetter {
	return func(p *partitionSpec, v string) error {
		if strings.EqualFold(v, "unlimited") || strings.EqualFold(v, "infinite") {
			*field(p) = 0
			return nil
		}
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 0 || n > highest {
			return invalid(v)
		}
		*field(p) = int32(n)
		return nil
	}
}

func memorySetter(name string, field func(*partitionSpec) **int64) partitionSetter {
	return func(p *partitionSpec, v string) error {
		if strings.EqualFold(v, "unlimited") {
			*field(p) = nil
			return nil
		}
		n, err := value.Megabytes(v)
		if err != nil {
			return invalidValue(name)(v)
		}
		*field(p) = &n
		return nil
	}
}

// listSetter sets a list of names; "ALL" and "" mean that there is no list.
func listSetter(field func(*partitionSpec) *[]string) partitionSetter {
	return func(p *partitionSpec, v string) error {
		*field(p) = nil
		if !strings.EqualFold(v, "all") {
			*field(p) = query.SplitList(v)
		}
		return nil
	}
}

func setPartitionNodes(p *partitionSpec, v string) error {
	if v == "" {
		p.Nodes = v1alpha1.NoNodes
		return nil
	}
	if _, err := hostlist.ExpandLenient(v); err != nil {
		return refusal.InvalidNode
	}
	p.Nodes = v
	return nil
}

// setPriority sets both priorities of a partition, as slurm.conf's Priority does.
func setPriority(p *partitionSpec, v string) error {
	both := func(p *partitionSpec) *int32 { return &p.PriorityTier }
	if err := countSetter(maxPartitionPriority, invalidValue("Priority"), both)(p, v); err != nil {
		return err
	}
	p.PriorityJobFactor = p.PriorityTier
	return nil
}

// setOverTimeLimit sets a number of minutes. UNLIMITED is math.MaxInt32.
func setOverTimeLimit(p *partitionSpec, v string) error {
	if strings.EqualFold(v, "unlimited") || strings.EqualFold(v, "infinite") {
		v = strconv.Itoa(math.MaxInt32)
	}
	n, err := value.CountOrZero(v)
	if err != nil {
		return invalidValue("OverTimeLimit")(v)
	}
	p.OverTimeLimit = &n
	return nil
}

func setOverSubscribe(p *partitionSpec, v string) error {
	mode, jobs, counted := strings.Cut(strings.ToUpper(v), ":")
	valid := slices.Contains([]string{"NO", "YES", "FORCE", "EXCLUSIVE"}, mode)
	if counted {
		_, err := value.Count(jobs)
		valid = valid && err == nil
	}
	if !valid {
		return invalidKeyword("OverSubscribe", "NO, EXCLUSIVE, YES:#, and FORCE:#", v)
	}
	p.OverSubscribe = strings.ToUpper(v)
	return nil
}

func setBillingWeights(p *partitionSpec, v string) error {
	if _, err := limits.ParseBilling(v, false); err != nil {
		return refusal.InvalidBillingWeights
	}
	p.TRESBillingWeights = v
	return nil
}
