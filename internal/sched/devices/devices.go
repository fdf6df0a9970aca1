package devices

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/gres"
	"github.com/berth-hpc/berth/internal/wire"
)

// pauseFactor is how much longer than the last count the pause before the next one is, so that the
// devices of a large cluster, of which each driver publishes some, are not counted all the time.
const pauseFactor = 4

// Inventory has the devices of the nodes. Safe for concurrent use.
type Inventory struct {
	cluster *control.Cluster
	log     *slog.Logger
	changed chan struct{}

	mu       sync.RWMutex
	nodes    map[string]counts   // by name
	problems map[string][]string // by name of the node; "": those of no node
}

// New returns the Inventory that adds the devices that drivers publish to the nodes of c. It
// subscribes to the stores of c, which must not be filled yet.
func New(c *control.Cluster, log *slog.Logger) *Inventory {
	x := &Inventory{cluster: c, log: log, changed: make(chan struct{}, 1)}
	c.Nodes.Amend(x.amend)
	c.Devices.Slices.Subscribe(func(_, _ *resourcev1.ResourceSlice) { x.request() })
	c.Devices.Classes.Subscribe(func(_, _ *resourcev1.DeviceClass) { x.request() })
	c.Devices.Taints.Subscribe(func(_, _ *resourcev1beta2.DeviceTaintRule) { x.request() })
	c.Devices.Claims.Subscribe(func(old, now *resourcev1.ResourceClaim) {
		if changesCounts(old) || changesCounts(now) {
			x.request()
		}
	})
	c.Settings.Subscribe(func(_, _ *v1alpha1.Cluster) { x.request() })
	return x
}

func (x *Inventory) request() {
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// Run counts the devices again when what they depend on has changed, until ctx ends.
func (x *Inventory) Run(ctx context.Context) {
	for {
		select {
		case <-x.changed:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		x.Count()
		select {
		case <-time.After(pauseFactor * time.Since(began)):
		case <-ctx.Done():
			return
		}
	}
}

// changesCounts reports whether the claim, which may be nil, holds devices that no pod requests as
// extended resources.
func changesCounts(c *resourcev1.ResourceClaim) bool {
	return c != nil && c.Status.Allocation != nil && !IsForRequest(c)
}

// Count counts all devices and changes the nodes for which they differ. Call it when the stores
// are filled, and then Run.
func (x *Inventory) Count() {
	c := x.cluster
	spec := c.Parameters()
	nodes, problems := countDevices(&input{
		slices: c.Devices.Slices.List(), classes: c.Devices.Classes.List(), claims: c.Devices.Claims.List(),
		taints: c.Devices.Taints.List(), table: gres.Of(&spec),
	})
	x.mu.Lock()
	changed := map[string]bool{}
	for _, names := range [...]map[string]counts{x.nodes, nodes} {
		for name := range names {
			changed[name] = changed[name] || !maps.Equal(x.nodes[name], nodes[name])
		}
	}
	for _, names := range [...]map[string][]string{x.problems, problems} {
		for name := range names {
			changed[name] = changed[name] || !slices.Equal(x.problems[name], problems[name])
		}
	}
	for _, text := range problems[""] {
		if !slices.Contains(x.problems[""], text) {
			x.log.Warn("devices cannot be used", "problem", text)
		}
	}
	x.nodes, x.problems = nodes, problems
	x.mu.Unlock()
	for name, differs := range changed {
		if differs && name != "" {
			c.Nodes.Refresh(name)
		}
	}
}

// amend returns the node with its devices, or n itself if it has them already. What the kubelet
// reports for a resource has precedence, as in kube-scheduler.
func (x *Inventory) amend(n *corev1.Node) *corev1.Node {
	x.mu.RLock()
	of, problem := x.nodes[n.Name], strings.Join(x.problems[n.Name], "; ")
	x.mu.RUnlock()
	before, amended := n.Annotations[wire.AnnotationDevices]
	var names []string
	for r := range of {
		if own := n.Status.Allocatable[r]; own.IsZero() || slices.Contains(strings.Split(before, ","), string(r)) {
			names = append(names, string(r))
		}
	}
	slices.Sort(names)
	now := strings.Join(names, ",")
	if !amended && now == "" && problem == "" {
		return n
	}
	if amended && now == before && problem == n.Annotations[wire.AnnotationDeviceProblem] && equal(n, of, names) {
		return n
	}
	out := *n
	out.Annotations = maps.Clone(n.Annotations)
	out.Status.Allocatable, out.Status.Capacity = maps.Clone(n.Status.Allocatable), maps.Clone(n.Status.Capacity)
	for r := range strings.SplitSeq(before, ",") {
		delete(out.Status.Allocatable, corev1.ResourceName(r))
		delete(out.Status.Capacity, corev1.ResourceName(r))
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[wire.AnnotationDevices] = now
	delete(out.Annotations, wire.AnnotationDeviceProblem)
	if problem != "" {
		out.Annotations[wire.AnnotationDeviceProblem] = problem
	}
	if out.Status.Allocatable == nil {
		out.Status.Allocatable = corev1.ResourceList{}
	}
	if out.Status.Capacity == nil {
		out.Status.Capacity = corev1.ResourceList{}
	}
	for _, name := range names {
		r := corev1.ResourceName(name)
		out.Status.Allocatable[r] = *resource.NewQuantity(of[r].usable, resource.DecimalSI)
		out.Status.Capacity[r] = *resource.NewQuantity(of[r].all, resource.DecimalSI)
	}
	return &out
}

// equal reports whether the node has the devices of the resources.
func equal(n *corev1.Node, of counts, names []string) bool {
	for _, name := range names {
		r := corev1.ResourceName(name)
		allocatable, capacity := n.Status.Allocatable[r], n.Status.Capacity[r]
		if allocatable.Value() != of[r].usable || capacity.Value() != of[r].all {
			return false
		}
	}
	return true
}
