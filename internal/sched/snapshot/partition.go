package snapshot

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
)

// Partition is a partition of the snapshot.
type Partition struct {
	Name  string
	Spec  *v1alpha1.PartitionSpec
	Nodes backfill.NodeSet
	CPUs  int // of its nodes
	// LargestNode is the greatest number of CPUs of its nodes.
	LargestNode int32

	number int
	// billing is computed with the partition's weights; if they are invalid, the
	// CPUs are billed.
	billing limits.Billing
}

func (s *Snapshot) addPartitions(objects []*v1alpha1.Partition) {
	for _, p := range EffectivePartitions(objects) {
		billing, _ := limits.ParseBilling(p.Spec.TRESBillingWeights, limits.BillsMaxTRES(&s.params))
		nodes := s.partitionNodes(&p.Spec)
		cpus, largest := s.cpusOf(nodes)
		s.partitions = append(s.partitions, &Partition{
			Name: p.Name, Spec: &p.Spec, Nodes: nodes, CPUs: cpus, LargestNode: largest,
			number: len(s.partitions) + 1, billing: billing,
		})
	}
}

// cpusOf returns the CPUs of all nodes of the set, and those of the node that has most.
func (s *Snapshot) cpusOf(nodes backfill.NodeSet) (sum int, largest int32) {
	for i := range s.Nodes {
		if nodes.Has(i) {
			sum += s.Nodes[i].CPUs
			largest = max(largest, int32(s.Nodes[i].CPUs))
		}
	}
	return sum, largest
}

// EffectivePartitions returns the partitions that are in force, ordered by name:
// the objects with what they inherit, or the default partition if there is none.
func EffectivePartitions(objects []*v1alpha1.Partition) []*v1alpha1.Partition {
	if len(objects) == 0 {
		return []*v1alpha1.Partition{{
			ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultPartition},
			Spec:       v1alpha1.PartitionSpec{Default: true},
		}}
	}
	out := slices.Clone(objects)
	slices.SortFunc(out, func(a, b *v1alpha1.Partition) int { return strings.Compare(a.Name, b.Name) })
	for i, p := range out {
		out[i] = p.Inherit(objects)
	}
	return out
}

// Partitions returns the partitions, ordered by name.
func (s *Snapshot) Partitions() []*Partition { return s.partitions }

// IsDefault reports whether jobs that name no partition run in p.
func (s *Snapshot) IsDefault(p *Partition) bool { return p.Spec.Default || len(s.partitions) == 1 }

// Partition returns the partition with the name, the default one for "", or nil.
func (s *Snapshot) Partition(name string) *Partition {
	for _, p := range s.partitions {
		if p.Name == name || name == "" && s.IsDefault(p) {
			return p
		}
	}
	return nil
}

// PartitionFor returns the partition as it applies to the job, whose QOS may
// exempt it from limits of the partition; nil if the partition does not exist.
func (s *Snapshot) PartitionFor(b *v1alpha1.BatchJob, name string) *Partition {
	p := s.Partition(name)
	if p == nil {
		return nil
	}
	spec := limits.Overridden(p.Spec, s.qos[b.Spec.Job.QOS])
	if spec == p.Spec {
		return p
	}
	overridden := *p
	overridden.Spec = spec
	return &overridden
}

// PartitionNames returns the partitions that the job may run in, in its order.
func PartitionNames(b *v1alpha1.BatchJob) []string {
	if names := b.Spec.Job.Partitions; len(names) > 0 {
		return names
	}
	return []string{b.Spec.Partition}
}

// partitionNodes returns the nodes that the partition names and whose taints its
// pods tolerate.
func (s *Snapshot) partitionNodes(p *v1alpha1.PartitionSpec) backfill.NodeSet {
	var set backfill.NodeSet
	named := map[string]bool{}
	names, err := hostlist.ExpandLenient(p.Nodes)
	for _, n := range names {
		named[n] = true
	}
	all := strings.EqualFold(p.Nodes, "ALL") || p.Nodes == "" && p.NodeSelector == nil
	selector := labels.Nothing()
	if p.NodeSelector != nil {
		if parsed, err := metav1.LabelSelectorAsSelector(p.NodeSelector); err == nil {
			selector = parsed
		}
	}
	tolerations := templateTolerations(p)
	for i := range s.nodes {
		o := s.nodes[i].object
		member := all || err == nil && named[s.Nodes[i].Name] || selector.Matches(labels.Set(o.Labels))
		if member && toleratesTaints(tolerations, o) {
			set.Add(i)
		}
	}
	return set
}

// templateTolerations returns the tolerations in the partition's pod template.
func templateTolerations(p *v1alpha1.PartitionSpec) []corev1.Toleration {
	var t corev1.PodTemplateSpec
	if len(p.Template.Raw) == 0 || json.Unmarshal(p.Template.Raw, &t) != nil {
		return nil
	}
	return t.Spec.Tolerations
}

// restrictingTaints returns the taints that pods on n must tolerate. It omits the taints that
// Kubernetes derives from a node's state, because nodeinfo.Unavailable considers the state
// itself, and the one that announces the removal of the node: it is drained, and still belongs
// to its partitions.
func restrictingTaints(n *corev1.Node) []corev1.Taint {
	_, removal, _ := strings.Cut(n.Annotations[wire.AnnotationRemoval], " ")
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && t.Key != wire.LabelManaged && t.Key != removal &&
			!strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			out = append(out, t)
		}
	}
	return out
}

// toleratesTaints reports whether pods with these tolerations may run on n.
func toleratesTaints(tolerations []corev1.Toleration, n *corev1.Node) bool {
	for _, t := range restrictingTaints(n) {
		tolerated := func(toleration corev1.Toleration) bool { return tolerates(toleration, &t) }
		if !slices.ContainsFunc(tolerations, tolerated) {
			return false
		}
	}
	return true
}

func tolerates(toleration corev1.Toleration, t *corev1.Taint) bool {
	if toleration.Effect != "" && toleration.Effect != t.Effect {
		return false
	}
	if toleration.Key != "" && toleration.Key != t.Key {
		return false
	}
	return toleration.Operator == corev1.TolerationOpExists || toleration.Key != "" && toleration.Value == t.Value
}

// MaxTime returns the partition's longest time limit in minutes, or
// job.Unlimited.
func (p *Partition) MaxTime() int32 { return maxTime(p.Spec) }

func maxTime(p *v1alpha1.PartitionSpec) int32 {
	if p.MaxTime <= 0 {
		return job.Unlimited
	}
	return p.MaxTime
}

// TimeLimit returns the time limit of j in the partition in minutes, or
// job.Unlimited.
func TimeLimit(p *v1alpha1.PartitionSpec, j *job.Job) int32 {
	switch {
	case j.Time.Limit != 0:
		return j.Time.Limit
	case p.DefaultTime != 0:
		return p.DefaultTime
	}
	return maxTime(p)
}

// ExceedsMaxTime reports whether the time limit of j exceeds that of the
// partition.
func (p *Partition) ExceedsMaxTime(j *job.Job) bool {
	limit, maximum := TimeLimit(p.Spec, j), p.MaxTime()
	return maximum != job.Unlimited && (limit == job.Unlimited || limit > maximum)
}
