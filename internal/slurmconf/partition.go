package slurmconf

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// readPartitions parses the PartitionName lines.
func (p *parser) readPartitions() error {
	byDefault := -1
	for _, all := range p.partitionLines {
		first := all[0]
		if isDefault(first.value) {
			p.partitionDefaults = append(p.partitionDefaults, all[1:]...)
			continue
		}
		part, ok, err := p.partition(first, all[1:])
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if part.Spec.Default { // the last one wins
			if byDefault >= 0 {
				p.config.Partitions[byDefault].Spec.Default = false
			}
			byDefault = len(p.config.Partitions)
		}
		if part.Annotations == nil {
			part.Annotations = map[string]string{}
		}
		part.Annotations[v1alpha1.OrderAnnotation] = strconv.Itoa(len(p.config.Partitions) + 1)
		p.config.Partitions = append(p.config.Partitions, *part)
	}
	return nil
}

// partition parses one partition; ok is false if it has no nodes and is ignored.
func (p *parser) partition(first pair, own []pair) (part *v1alpha1.Partition, ok bool, err error) {
	name := first.value
	if old, ok := p.partitions[name]; ok {
		return nil, false, first.errorf("partition %s is defined already (%s:%d)", first.value, old.file, old.number)
	}
	p.partitions[name] = first.line
	part = v1alpha1.NewPartition(name)
	part.Spec.PriorityJobFactor, part.Spec.PriorityTier = 1, 1
	for _, kv := range slices.Concat(p.partitionDefaults, own) {
		if err := p.partitionValue(&part.Spec, kv); err != nil {
			return nil, false, err
		}
	}
	if part.Spec.Nodes == "" {
		p.warn(first, "partition has no nodes; ignored")
		return nil, false, nil
	}
	return part, true, nil
}

// partitionValue sets one parameter of a partition.
func (p *parser) partitionValue(s *v1alpha1.PartitionSpec, kv pair) error {
	if ok, err := memoryLimit(&s.MemoryLimits, kv); ok {
		return err
	}
	if set := partitionValues[strings.ToLower(kv.key)]; set != nil {
		return set(s, kv)
	}
	switch strings.ToLower(kv.key) {
	case "nodes":
		return p.partitionNodes(s, kv)
	case "priority":
		n, err := kv.integer(0, 65533)
		s.PriorityJobFactor, s.PriorityTier = int32(n), int32(n)
		return err
	case "oversubscribe", "shared":
		return p.overSubscribe(s, kv)
	case "alternate", "lln", "cpubind", "selecttypeparameters":
		if strings.EqualFold(kv.value, "NO") {
			return nil
		}
	}
	p.warn(kv, "not supported for partitions; ignored")
	return nil
}

// partitionSetter sets one parameter of a partition.
type partitionSetter func(s *v1alpha1.PartitionSpec, kv pair) error

// setParsed returns a setter that stores the value that parse returns.
func setParsed[T any](parse func(pair) (T, error), to func(s *v1alpha1.PartitionSpec) *T) partitionSetter {
	return func(s *v1alpha1.PartitionSpec, kv pair) error {
		v, err := parse(kv)
		if err == nil {
			*to(s) = v
		}
		return err
	}
}

func setList(to func(s *v1alpha1.PartitionSpec) *[]string) partitionSetter {
	return func(s *v1alpha1.PartitionSpec, kv pair) error {
		*to(s) = kv.list()
		return nil
	}
}

type spec = v1alpha1.PartitionSpec

var partitionValues = map[string]partitionSetter{
	"default":           setParsed(pair.boolean, func(s *spec) *bool { return &s.Default }),
	"state":             partitionState,
	"maxtime":           setParsed(pair.minutes, func(s *spec) *int32 { return &s.MaxTime }),
	"defaulttime":       defaultTime,
	"maxnodes":          setParsed(pair.count, func(s *spec) *int32 { return &s.MaxNodes }),
	"minnodes":          setParsed(pair.count, func(s *spec) *int32 { return &s.MinNodes }),
	"maxcpuspernode":    setParsed(pair.count, func(s *spec) *int32 { return &s.MaxCPUs }),
	"priorityjobfactor": setParsed(pair.count, func(s *spec) *int32 { return &s.PriorityJobFactor }),
	"prioritytier":      setParsed(pair.count, func(s *spec) *int32 { return &s.PriorityTier }),
	"exclusiveuser":     setParsed(pair.boolean, func(s *spec) *bool { return &s.ExclusiveUser }),
	"hidden":            setParsed(pair.boolean, func(s *spec) *bool { return &s.Hidden }),
	"rootonly":          setParsed(pair.boolean, func(s *spec) *bool { return &s.RootOnly }),
	"gracetime":         setParsed(pair.count, func(s *spec) *int32 { return &s.GraceTime }),
	"preemptmode":       func(s *spec, kv pair) error { s.PreemptMode = strings.ToUpper(kv.value); return nil },
	"reqresv":           setParsed(pair.boolean, func(s *spec) *bool { return &s.ReqResv }),
	"overtimelimit": func(s *spec, kv pair) error {
		if unlimited(kv.value) {
			s.OverTimeLimit = pointer[int32](maxInt32)
			return nil
		}
		n, err := kv.count()
		s.OverTimeLimit = &n
		return err
	},
	"qos":           func(s *spec, kv pair) error { s.QOS = kv.value; return nil },
	"allowaccounts": setList(func(s *spec) *[]string { return &s.AllowAccounts }),
	"denyaccounts":  setList(func(s *spec) *[]string { return &s.DenyAccounts }),
	"allowgroups":   setList(func(s *spec) *[]string { return &s.AllowGroups }),
	"allowqos":      setList(func(s *spec) *[]string { return &s.AllowQOS }),
	"denyqos":       setList(func(s *spec) *[]string { return &s.DenyQOS }),
}

func partitionState(s *spec, kv pair) error {
	switch v := strings.ToUpper(kv.value); v {
	case "UP", "DOWN", "DRAIN", "INACTIVE":
		s.State = v
		return nil
	}
	return kv.invalid("UP, DOWN, DRAIN or INACTIVE")
}

func defaultTime(s *spec, kv pair) error {
	if strings.EqualFold(kv.value, "NONE") {
		s.DefaultTime = 0
		return nil
	}
	m, err := kv.minutes()
	s.DefaultTime = m
	return err
}

// partitionNodes sets the nodes of a partition: the list as it is in the file, unless it
// contains node sets or nodes in state FUTURE. Sets are replaced by their nodes, and
// FUTURE nodes are removed.
func (p *parser) partitionNodes(s *spec, kv pair) error {
	switch {
	case strings.EqualFold(kv.value, "ALL"):
		s.Nodes = "ALL"
		return nil
	case kv.value == "", strings.EqualFold(kv.value, "(null)"):
		s.Nodes = ""
		return nil
	}
	written, err := p.hosts(kv)
	if err != nil {
		return err
	}
	var names []string
	for _, name := range written {
		members, isSet := p.sets[name]
		switch {
		case isSet:
			names = append(names, members...)
		case p.nodes[name] == nil:
			return kv.errorf("%s: there is no node %s", kv.key, name)
		default:
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return p.future[n] })
	if slices.Equal(names, written) {
		s.Nodes = kv.value
		return nil
	}
	hostlist.Sort(names)
	s.Nodes = hostlist.Fold(slices.Compact(names))
	return nil
}

func (p *parser) overSubscribe(s *spec, kv pair) error {
	word, share, _ := strings.Cut(strings.ToUpper(kv.value), ":")
	switch word {
	case "NO", "EXCLUSIVE":
		s.OverSubscribe = word
	case "YES", "FORCE":
		s.OverSubscribe = word
		if share != "1" {
			p.warn(kv, "jobs never share CPUs")
		}
	default:
		return kv.invalid("NO, YES, FORCE or EXCLUSIVE")
	}
	return nil
}
