// Package pools has the rules of nodes that do not always run: which nodes a pool has, when
// they boot and when they are removed. Package power carries out what Next decides. The
// package is pure: objects go in, values come out, and the time is an argument.
package pools

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/nodeinfo"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// Defaults of slurm.conf(5).
const (
	defaultResumeTimeout  = 60 * time.Second
	defaultSuspendTimeout = 30 * time.Second
)

// ResumeTimeout returns how long a node of the pool may take to come.
func ResumeTimeout(s *v1alpha1.NodePoolSpec) time.Duration {
	return cmp.Or(time.Duration(s.ResumeTimeout)*time.Second, defaultResumeTimeout)
}

// SuspendTimeout returns the time from the removal of a node until it may be requested again.
func SuspendTimeout(s *v1alpha1.NodePoolSpec) time.Duration {
	return cmp.Or(time.Duration(s.SuspendTimeout)*time.Second, defaultSuspendTimeout)
}

// BootTime returns how long a node of the pool usually takes to come.
func BootTime(s *v1alpha1.NodePoolSpec) time.Duration {
	return cmp.Or(time.Duration(s.BootTime)*time.Second, ResumeTimeout(s)/2)
}

// Cost returns the cost of a node for an hour; 0: unknown.
func Cost(s *v1alpha1.NodePoolSpec) float64 {
	cost, err := strconv.ParseFloat(s.CostPerHour, 64)
	if err != nil || cost < 0 {
		return 0
	}
	return cost
}

// Has reports whether the pool has a node of that name.
func Has(p *v1alpha1.NodePool, node string) bool {
	pattern, err := hostlist.ParsePattern(p.Spec.Nodes)
	return err == nil && pattern.Match(node)
}

// Of returns the pool that has the node, or nil. If several do, it is the first by name.
func Of(all []*v1alpha1.NodePool, node string) *v1alpha1.NodePool {
	var found *v1alpha1.NodePool
	for _, p := range all {
		if (found == nil || p.Name < found.Name) && Has(p, node) {
			found = p
		}
	}
	return found
}

// Power is the state of a node of a pool.
type Power struct {
	v1alpha1.PoolNode
	Pool *v1alpha1.NodePool
	// Boot is how long the node takes until it can run jobs; 0: it runs, or cannot be used.
	Boot time.Duration
}

// IsUsable reports whether jobs may be planned on the node.
func (p *Power) IsUsable() bool {
	switch p.State {
	case v1alpha1.PoolPoweringDown, v1alpha1.PoolFailed:
		return false
	}
	return !p.PowerDown
}

// lateBoot is the remaining boot time that is assumed of a node that has already taken longer
// than usual.
const lateBoot = 5 * time.Second

// powerOf returns the state of a node, whose object may be nil. n is what the pool's status
// says about it; without a state the status does not list the node.
func powerOf(p *v1alpha1.NodePool, n v1alpha1.PoolNode, name string, object *corev1.Node, now time.Time) Power {
	switch {
	case n.State != "":
	case object != nil:
		n = v1alpha1.PoolNode{Name: name, State: v1alpha1.PoolRunning}
	default:
		n = v1alpha1.PoolNode{Name: name, State: v1alpha1.PoolPoweredDown}
	}
	out := Power{PoolNode: n, Pool: p}
	out.PowerDown = out.PowerDown || p.DeletionTimestamp != nil
	switch n.State {
	case v1alpha1.PoolPoweredDown:
		out.Boot = BootTime(&p.Spec)
	case v1alpha1.PoolPoweringUp:
		out.Boot = max(lateBoot, BootTime(&p.Spec)-now.Sub(n.Since.Time))
	}
	return out
}

// Object returns the object of the node that a pool lists with the name. Candidates, which may
// be nil, are nodes of that name (see nodeinfo.PoolName): an object of this name comes first,
// then one that Karpenter has registered, and last one that is being deleted. Karpenter may
// launch a node twice if it dies meanwhile; it registers one of both. nil: there is none.
func Object(name string, candidates ...*corev1.Node) *corev1.Node {
	var best *corev1.Node
	for _, n := range candidates {
		switch {
		case n == nil || nodeinfo.PoolName(n) != name:
		case best == nil || rank(name, n) < rank(name, best),
			rank(name, n) == rank(name, best) && n.Name < best.Name:
			best = n
		}
	}
	return best
}

// rank is the order of Object.
func rank(name string, n *corev1.Node) int {
	switch {
	case n.Name == name:
		return 0
	case n.DeletionTimestamp != nil:
		return 3
	case IsUnregistered(n):
		return 2
	}
	return 1
}

// IsUnregistered reports whether Karpenter has not registered the node yet, or never will.
func IsUnregistered(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintUnregistered })
}

// Merge adds the nodes of pools to those that exist. It returns the object of every node, and
// the state of those that belong to a pool, by the name of their object. The object of a node
// that does not run has the name that the pool lists, and describes what the node will have.
// Further objects of a node (see Object) are left out, and so are Machines of Cluster API that are
// not yet a node of their pool.
func Merge(
	all []*v1alpha1.NodePool, nodes []*corev1.Node, now time.Time,
) (merged []*corev1.Node, power map[string]Power) {
	if len(all) == 0 {
		return nodes, nil
	}
	existing := make(map[string]*corev1.Node, len(nodes))
	for _, n := range nodes {
		name := nodeinfo.PoolName(n)
		existing[name] = Object(name, existing[name], n)
	}
	power = map[string]Power{}
	running := map[string]bool{} // by the names that pools list
	replaced := map[string]*corev1.Node{}
	var added []*corev1.Node
	assigned := Assign(all)
	for _, p := range all {
		t, listed := newTemplate(p), listedNodes(p)
		for _, name := range assigned[p.Name] {
			object := existing[name]
			state := powerOf(p, listed[name], name, object, now)
			switch {
			case object == nil:
				if state.State == v1alpha1.PoolRunning { // it has vanished; the status says so soon
					state.State = v1alpha1.PoolPoweringDown
				}
				added = append(added, t.node(name, &state))
			case state.State == v1alpha1.PoolPoweringUp: // what it reports may be incomplete
				replaced[object.Name] = t.node(name, &state)
			default:
				power[object.Name], running[name] = state, true
				continue
			}
			power[name] = state
		}
	}
	for _, n := range nodes {
		name := nodeinfo.PoolName(n)
		_, listed := power[name]
		switch r := replaced[n.Name]; {
		case r != nil:
			merged = append(merged, r)
		case name != n.Name && (listed || running[name]) && existing[name] != n: // another object is that node
		case isSpare(all, n):
		default:
			merged = append(merged, n)
		}
	}
	return append(merged, added...), power
}

// StateOf returns the state of a node of the pool, whose object may be nil.
func StateOf(p *v1alpha1.NodePool, node string, object *corev1.Node, now time.Time) Power {
	return powerOf(p, listedNodes(p)[node], node, object, now)
}

// listedNodes returns the nodes in the pool's status by name.
func listedNodes(p *v1alpha1.NodePool) map[string]v1alpha1.PoolNode {
	out := make(map[string]v1alpha1.PoolNode, len(p.Status.Nodes))
	for _, n := range p.Status.Nodes {
		out[n.Name] = n
	}
	return out
}

// Assign returns the names of the nodes of each pool, by the pool's name. A node that several
// pools have belongs to the first by name.
func Assign(all []*v1alpha1.NodePool) map[string][]string {
	out, taken := map[string][]string{}, map[string]bool{}
	order := slices.Clone(all)
	slices.SortFunc(order, func(a, b *v1alpha1.NodePool) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range order {
		for _, name := range names(p) {
			if !taken[name] {
				taken[name] = true
				out[p.Name] = append(out[p.Name], name)
			}
		}
	}
	return out
}

// names returns the names of the pool's nodes that can be names of Node objects.
func names(p *v1alpha1.NodePool) []string {
	all, err := hostlist.ExpandLenient(p.Spec.Nodes)
	if err != nil {
		return nil
	}
	valid := validation.IsDNS1123Subdomain
	if p.Spec.NamesObjects() {
		valid = validation.IsDNS1123Label // it is the short name; the object has another
	}
	return slices.DeleteFunc(all, func(n string) bool { return len(valid(n)) > 0 })
}

// template has what the objects of a pool's nodes share.
type template struct {
	pool        *v1alpha1.NodePool
	labels      map[string]string
	annotations map[string]string
}

func newTemplate(p *v1alpha1.NodePool) template {
	t := template{pool: p, labels: maps.Clone(p.Spec.Labels), annotations: map[string]string{}}
	if t.labels == nil {
		t.labels = map[string]string{}
	}
	for _, f := range p.Spec.Features {
		t.labels[wire.LabelFeature+f] = "true"
	}
	for key, n := range map[string]int32{
		wire.AnnotationSockets: p.Spec.Sockets, wire.AnnotationCores: p.Spec.CoresPerSocket,
		wire.AnnotationThreads: p.Spec.ThreadsPerCore, wire.AnnotationWeight: p.Spec.Weight,
	} {
		if n > 0 {
			t.annotations[key] = strconv.Itoa(int(n))
		}
	}
	return t
}

// Metadata returns the labels and annotations that the pool promises of its nodes. The caller
// may change them.
func Metadata(p *v1alpha1.NodePool) (labels, annotations map[string]string) {
	t := newTemplate(p)
	return t.labels, t.annotations
}

// node returns the object of a node that does not run.
func (t *template) node(name string, state *Power) *corev1.Node {
	annotations := t.annotations
	if state.State == v1alpha1.PoolFailed {
		annotations = maps.Clone(annotations)
		annotations[wire.AnnotationState], annotations[wire.AnnotationReason] = "down", state.Reason
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: t.labels, Annotations: annotations},
		Spec:       corev1.NodeSpec{Taints: t.pool.Spec.Taints},
		Status: corev1.NodeStatus{
			Allocatable: t.pool.Spec.Resources, Capacity: t.pool.Spec.Resources,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// isInitialized reports whether pods can be bound to a node that has just become ready: some
// taints go a moment later, or when the cloud's controller has seen the node.
func isInitialized(s *v1alpha1.NodePoolSpec, n *corev1.Node) bool {
	if s.Karpenter != nil && n.Labels[labelInitialized] != "true" {
		return false
	}
	return !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == taintUninitialized || t.Key == taintMachine
	}) && !IsUnregistered(n)
}

// labelInitialized is the label of nodes that Karpenter has found ready, with the devices that
// the NodeClaim requests.
const labelInitialized = "karpenter.sh/initialized"

// taintUnregistered is the taint of nodes that Karpenter has not seen: it has not copied labels,
// annotations and taints of the NodeClaim to the Node.
const taintUnregistered = "karpenter.sh/unregistered"

// taintUninitialized is the taint of nodes that the cloud's controller has not seen
// (cloudproviderapi.TaintExternalCloudProvider).
const taintUninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// IsReady reports whether the kubelet of the node says that it can run pods.
func IsReady(n *corev1.Node) bool {
	switch nodeinfo.Unavailable(n) {
	case nodeinfo.Unknown, nodeinfo.Down:
		return false
	}
	return true
}
