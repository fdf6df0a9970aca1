package slurmconf

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestPolicies(t *testing.T) {
	c := parse(t, `NodeName=n1 CPUs=4
PriorityType=priority/multifactor
PriorityDecayHalfLife=1-0
PriorityCalcPeriod=5
PriorityMaxAge=7-0
PriorityFavorSmall=YES
PriorityFlags=NO_FAIR_TREE,ACCRUE_ALWAYS
PriorityWeightTRES=CPU=1000,GRES/gpu=2.5
PreemptType=preempt/qos
PreemptMode=REQUEUE
PreemptExemptTime=2
Licenses=matlab:2,fluent*30
PartitionName=main Nodes=ALL Default=YES ReqResv=YES OverTimeLimit=3
PartitionName=long Nodes=ALL OverTimeLimit=UNLIMITED
`)
	s := &c.Cluster
	if *s.PriorityDecayHalfLife != 86400 || *s.PriorityCalcPeriod != 300 || *s.PriorityMaxAge != 7*86400 || !s.PriorityFavorSmall ||
		!reflect.DeepEqual(s.PriorityFlags, []string{"NO_FAIR_TREE", "ACCRUE_ALWAYS"}) ||
		!reflect.DeepEqual(s.PriorityWeightTRES, map[string]string{"cpu": "1000", "gres/gpu": "2.5"}) ||
		s.PreemptType != "qos" || s.PreemptMode != "REQUEUE" ||
		s.PreemptExemptTime != 120 ||
		!reflect.DeepEqual(s.Licenses, map[string]int32{"matlab": 2, "fluent": 30}) {
		t.Errorf("%+v", s)
	}
	if p := c.Partitions[0].Spec; !p.ReqResv || p.OverTimeLimit == nil || *p.OverTimeLimit != 3 {
		t.Errorf("%+v", p)
	}
	if p := c.Partitions[1].Spec; p.OverTimeLimit == nil || *p.OverTimeLimit != math.MaxInt32 {
		t.Errorf("%+v", p)
	}
	for _, w := range c.Warnings {
		t.Errorf("warned: %+v", w)
	}
}

// TestUnsupportedPolicies: unsupported values are warnings, invalid ones errors.
func TestUnsupportedPolicies(t *testing.T) {
	for _, line := range []string{"PreemptMode=SUSPEND,GANG", "PriorityFlags=DEPTH_OBLIVIOUS", "PreemptType=preempt/bogus"} {
		c, err := Parse("slurm.conf", files("NodeName=n1 CPUs=4\n"+line+"\n"))
		if err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Text, "not supported") {
			t.Errorf("%s: %v %+v", line, err, c)
		}
	}
	for _, line := range []string{"PriorityWeightTRES=CPU=x", "PriorityMaxAge=soon", "PriorityType=priority/bogus"} {
		if _, err := Parse("slurm.conf", files("NodeName=n1 CPUs=4\n"+line+"\n")); err == nil {
			t.Errorf("%s: no error", line)
		}
	}
}
