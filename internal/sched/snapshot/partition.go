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

// DefaultPartition is assumed when there is no Partition object.
const DefaultPartition = "main"

type partition struct {
	number int
	name   string
	spec   *v1alpha1.PartitionSpec
	nodes  backfill.NodeSet
	// billing is by the partition's weights; those that cannot be read bill the
	// CPUs.
	billing limits.Billing
	largest int32 // CPUs of its largest node
}

func (v *View) addPartitions(objects []*v1alpha1.Partition) {
	for _, p := range Partitions(objects) {
		b, _ := limits.ParseBilling(p.Spec.TRESBillingWeights, limits.GreatestTRES(&v.params))
		nodes := v.nodesOf(&p.Spec)
		v.partitions = append(v.partitions, &partition{len(v.partitions) + 1, p.Name, &p.Spec, nodes, b, v.largest(nodes)})
	}
}

func (v *View) largest(nodes backfill.NodeSet) (cpus int32) {
	for i := range v.Nodes {
		if nodes.Has(i) {
			cpus = max(cpus, int32(v.Nodes[i].CPUs))
		}
	}
	return cpus
}

// LargestNode is the number of CPUs of the partition's largest node; 0: there is
// no such partition, or it has none.
func (v *View) LargestNode(name string) int32 {
	for _, p := range v.partitions {
		if p.name == name {
			return p.largest
		}
	}
	return 0
}

// Partitions is the list in force, by name: objects, or the assumed one.
func Partitions(objects []*v1alpha1.Partition) []*v1alpha1.Partition {
	if len(objects) == 0 {
		return []*v1alpha1.Partition{{
			ObjectMeta: metav1.ObjectMeta{Name: DefaultPartition},
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

// partition by name; "" is the default one. nil: unknown.
func (v *View) partition(name string) *partition {
	for _, p := range v.partitions {
		if p.name == name || name == "" && (p.spec.Default || len(v.partitions) == 1) {
			return p
		}
	}
	return nil
}

// partitionOf is partition for the job, whose QOS may free it of limits.
func (v *View) partitionOf(b *v1alpha1.BatchJob, name string) *partition {
	p := v.partition(name)
	if p == nil {
		return nil
	}
	spec := limits.Overridden(p.spec, v.qos[b.Spec.Job.QOS])
	if spec == p.spec {
		return p
	}
	own := *p
	own.spec = spec
	return &own
}

// nodesOf is the set of nodes that the partition names and its pods tolerate.
func (v *View) nodesOf(p *v1alpha1.PartitionSpec) backfill.NodeSet {
	var set backfill.NodeSet
	named := map[string]bool{}
	names, err := hostlist.Expand(p.Nodes)
	for _, n := range names {
		named[n] = true
	}
	every := strings.EqualFold(p.Nodes, "ALL") || p.Nodes == "" && p.NodeSelector == nil
	selector := labels.Nothing()
	if p.NodeSelector != nil {
		if s, err := metav1.LabelSelectorAsSelector(p.NodeSelector); err == nil {
			selector = s
		}
	}
	tolerations := tolerationsOf(p)
	for i := range v.nodes {
		o := v.nodes[i].object
		in := every || err == nil && named[v.Nodes[i].Name] || selector.Matches(labels.Set(o.Labels))
		if in && tolerated(o, tolerations) {
			set.Add(i)
		}
	}
	return set
}

// tolerationsOf reads the tolerations in the partition's pod template.
func tolerationsOf(p *v1alpha1.PartitionSpec) []corev1.Toleration {
	var t corev1.PodTemplateSpec
	if len(p.Template.Raw) == 0 || json.Unmarshal(p.Template.Raw, &t) != nil {
		return nil
	}
	return t.Spec.Tolerations
}

// tolerated tells whether pods with these tolerations may be placed on n. The
// taints that Kubernetes derives from a node's state do not count: the state
// itself does.
func tolerated(n *corev1.Node, tolerations []corev1.Toleration) bool {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect == corev1.TaintEffectPreferNoSchedule || strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Key == wire.LabelManaged {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(tol corev1.Toleration) bool { return tolerates(tol, t) }) {
			return false
		}
	}
	return true
}

func tolerates(tol corev1.Toleration, t *corev1.Taint) bool {
	if tol.Effect != "" && tol.Effect != t.Effect || tol.Key != "" && tol.Key != t.Key {
		return false
	}
	return tol.Operator == corev1.TolerationOpExists || tol.Key != "" && tol.Value == t.Value
}

// maxTime in minutes, or job.Unlimited.
func (p *partition) maxTime() int32 {
	if p.spec.MaxTime <= 0 {
		return job.Unlimited
	}
	return p.spec.MaxTime
}

// timeLimit of j here, in minutes, or job.Unlimited.
func (p *partition) timeLimit(j *job.Job) int32 {
	switch {
	case j.Time.Limit != 0:
		return j.Time.Limit
	case p.spec.DefaultTime != 0:
		return p.spec.DefaultTime
	}
	return p.maxTime()
}

// TimeLimit of j in a partition, in minutes, or job.Unlimited.
func TimeLimit(p *v1alpha1.PartitionSpec, j *job.Job) int32 {
	return (&partition{spec: p}).timeLimit(j)
}

// exceeds tells whether limit is longer than most; both minutes or Unlimited.
func exceeds(limit, most int32) bool {
	return most != job.Unlimited && (limit == job.Unlimited || limit > most)
}
