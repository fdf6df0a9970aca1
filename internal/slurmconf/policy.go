package slurmconf

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/value"
)

// policies has setters for the parameters of priorities, preemption and licenses, by name
// in lower case.
var policies = map[string]setter{
	"prioritytype":          priorityType,
	"prioritydecayhalflife": seconds(func(c *v1alpha1.ClusterSpec) **int64 { return &c.PriorityDecayHalfLife }),
	"prioritycalcperiod":    seconds(func(c *v1alpha1.ClusterSpec) **int64 { return &c.PriorityCalcPeriod }),
	"prioritymaxage":        seconds(func(c *v1alpha1.ClusterSpec) **int64 { return &c.PriorityMaxAge }),
	"priorityusageresetperiod": func(c *v1alpha1.ClusterSpec, kv pair) error {
		c.PriorityUsageResetPeriod = strings.ToUpper(kv.value)
		return nil
	},
	"priorityfavorsmall": func(c *v1alpha1.ClusterSpec, kv pair) (err error) {
		c.PriorityFavorSmall, err = kv.boolean()
		return err
	},
	"priorityweighttres": weightTRES,
	"preemptexempttime":  exemptTime,
	"licenses":           licenses,
}

// setSupported sets a parameter of which Berth supports only some values. It reports
// whether this value is one of them.
func setSupported(c *v1alpha1.ClusterSpec, key, v string) bool {
	words := strings.FieldsFunc(strings.ToUpper(v), func(r rune) bool { return r == ',' || r == ' ' })
	switch key {
	case "preempttype":
		t := strings.TrimPrefix(strings.ToLower(v), "preempt/")
		c.PreemptType = t
		return t == "none" || t == "qos" || t == "partition_prio"
	case "preemptmode":
		c.PreemptMode = strings.ToUpper(v)
		return c.PreemptMode == "OFF" || c.PreemptMode == "CANCEL" || c.PreemptMode == "REQUEUE"
	case "priorityflags":
		c.PriorityFlags = words
		for _, w := range words {
			if !priorityFlags[w] {
				return false
			}
		}
		return true
	}
	return false
}

// priorityFlags are the values of PriorityFlags that Berth supports.
var priorityFlags = map[string]bool{
	"ACCRUE_ALWAYS":          true,
	"NO_FAIR_TREE":           true,
	"NO_NORMAL_ALL":          true,
	"NO_NORMAL_ASSOC":        true,
	"NO_NORMAL_PART":         true,
	"NO_NORMAL_QOS":          true,
	"NO_NORMAL_TRES":         true,
	"SMALL_RELATIVE_TO_TIME": true,
	"CALCULATE_RUNNING":      true,
	"NONE":                   true,
}

func priorityType(c *v1alpha1.ClusterSpec, kv pair) error {
	switch t := strings.TrimPrefix(strings.ToLower(kv.value), "priority/"); t {
	case "basic", "multifactor":
		c.PriorityType = t
		return nil
	}
	return kv.invalid("priority/basic or priority/multifactor")
}

// seconds returns a setter for a time in Slurm's notation, such as 5 (minutes) or 7-0
// (days). NONE is 0.
func seconds(to func(*v1alpha1.ClusterSpec) **int64) setter {
	return func(c *v1alpha1.ClusterSpec, kv pair) error {
		m, err := value.Minutes(kv.value)
		if strings.EqualFold(kv.value, "none") {
			m, err = 0, nil
		}
		if err != nil {
			return kv.invalid("a time such as 5, 1:30:00 or 7-0")
		}
		*to(c) = pointer(int64(max(m, 0)) * 60)
		return nil
	}
}

func exemptTime(c *v1alpha1.ClusterSpec, kv pair) error {
	m, err := value.Minutes(kv.value)
	if err != nil {
		return kv.invalid("a time such as 5 or 1:30:00")
	}
	c.PreemptExemptTime = max(m, 0) * 60
	return nil
}

func weightTRES(c *v1alpha1.ClusterSpec, kv pair) error {
	c.PriorityWeightTRES = map[string]string{}
	for _, item := range kv.list() {
		name, weight, ok := strings.Cut(item, "=")
		if _, err := strconv.ParseFloat(weight, 64); !ok || err != nil {
			return kv.invalid("weights such as CPU=1000,Mem=2000,GRES/gpu=3000")
		}
		c.PriorityWeightTRES[strings.ToLower(name)] = weight
	}
	return nil
}

func licenses(c *v1alpha1.ClusterSpec, kv pair) error {
	var j job.Job
	if err := option.Apply(option.Sbatch, &j, "licenses", strings.ReplaceAll(kv.value, "*", ":")); err != nil {
		return kv.invalid("licenses such as fluent:30,ansys:100")
	}
	c.Licenses = map[string]int32{}
	for _, l := range j.Licenses {
		c.Licenses[l.Name] += l.Count
	}
	return nil
}
