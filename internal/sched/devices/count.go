// Package devices counts the devices that drivers of dynamic resource allocation (DRA) publish
// for each node, by the extended resource with which a pod requests them, and adds them to the
// node's resources in memory. From there on they are planned like those of device plugins;
// kube-scheduler makes the claim for them.
package devices

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/berth-hpc/berth/internal/sched/gres"
)

// input is what the counts depend on.
type input struct {
	slices  []*resourcev1.ResourceSlice
	classes []*resourcev1.DeviceClass
	claims  []*resourcev1.ResourceClaim
	taints  []*resourcev1beta2.DeviceTaintRule
	table   gres.Table
}

// count is the number of devices that a node offers for a resource, and how many of them a pod
// may get: those without a taint.
type count struct{ all, usable int64 }

// counts are the devices of a node by resource.
type counts map[corev1.ResourceName]count

// device is a device, by the names that make it unique.
type device struct{ driver, pool, name string }

// offer is a class of devices with the resource by which pods request them.
type offer struct {
	resource corev1.ResourceName
	class    *resourcev1.DeviceClass
	rank     int
}

// selectors has the compiled selectors of classes. It is safe for concurrent use.
var selectors = cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})

// countDevices returns the devices of each node, by its Kubernetes name, and what is wrong with
// what drivers publish, by the name of the node or "" if it concerns none.
func countDevices(in *input) (nodes map[string]counts, problems map[string][]string) {
	nodes, problems = map[string]counts{}, map[string][]string{}
	offers := rankedOffers(in)
	claimed := claimedDevices(in.claims)
	pools, incomplete := currentSlices(in.slices)
	for _, p := range incomplete {
		problems[p.node] = append(problems[p.node], p.text)
	}
	for _, of := range pools {
		x := poolCount{nodes: nodes, problems: problems, taken: claimed, left: countersOf(of), taints: in.taints}
		for i := range offers {
			for _, s := range of {
				for j := range s.Spec.Devices {
					x.add(&offers[i], s, &s.Spec.Devices[j])
				}
			}
		}
	}
	return nodes, problems
}

// poolCount counts the devices of a driver's pool.
type poolCount struct {
	nodes    map[string]counts
	problems map[string][]string
	taken    map[device]bool // by claims, or counted before
	left     counters
	taints   []*resourcev1beta2.DeviceTaintRule
}

// add counts the device if it belongs to the class: to the first one that matches.
func (x *poolCount) add(o *offer, s *resourcev1.ResourceSlice, d *resourcev1.Device) {
	node, id := nodeOf(s, d), device{s.Spec.Driver, s.Spec.Pool.Name, d.Name}
	if node == "" || x.taken[id] {
		return
	}
	matches, err := matches(o.class, s.Spec.Driver, d)
	if err != nil {
		text := fmt.Sprintf("device class %s: %v", o.class.Name, err)
		if !slices.Contains(x.problems[""], text) {
			x.problems[""] = append(x.problems[""], text)
		}
		return
	}
	if !matches || !x.left.consume(d) {
		return
	}
	x.taken[id] = true
	if x.nodes[node] == nil {
		x.nodes[node] = counts{}
	}
	c := x.nodes[node][o.resource]
	c.all++
	if !isTainted(id, d, x.taints) {
		c.usable++
	}
	x.nodes[node][o.resource] = c
}

// rankedOffers returns the classes with their resources, in the order in which a device that
// several of them match belongs to one: as in the Cluster's table, then those that are generic
// resources by their names, then the others. Of the two resources of a class, its own and the one
// that it names, the first in that order counts.
func rankedOffers(in *input) []offer {
	var out []offer
	owners := resourceOwners(in.classes)
	for _, c := range in.classes {
		o := offer{class: c}
		names := []corev1.ResourceName{corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + c.Name)}
		if named := c.Spec.ExtendedResourceName; named != nil && owners[*named] == c {
			names = append([]corev1.ResourceName{corev1.ResourceName(*named)}, names...)
		}
		for i, name := range names {
			if rank := in.table.Rank(name); i == 0 || rank < o.rank {
				o.resource, o.rank = name, rank
			}
		}
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.class.Name, b.class.Name))
	})
	return out
}

// resourceOwners returns the class of each resource that classes name. If several name the same
// one, it is the newest, and of equally old ones the first by name, as in kube-scheduler.
func resourceOwners(classes []*resourcev1.DeviceClass) map[string]*resourcev1.DeviceClass {
	out := map[string]*resourcev1.DeviceClass{}
	for _, c := range classes {
		if c.Spec.ExtendedResourceName == nil {
			continue
		}
		old := out[*c.Spec.ExtendedResourceName]
		if old == nil || cmp.Or(
			old.CreationTimestamp.Compare(c.CreationTimestamp.Time), cmp.Compare(c.Name, old.Name),
		) < 0 {
			out[*c.Spec.ExtendedResourceName] = c
		}
	}
	return out
}

// claimedDevices returns the devices that claims hold which were not made for a pod's extended
// resources: no request of a pod counts them.
func claimedDevices(claims []*resourcev1.ResourceClaim) map[device]bool {
	out := map[device]bool{}
	for _, c := range claims {
		if c.Status.Allocation == nil || IsForRequest(c) {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.AdminAccess == nil || !*r.AdminAccess {
				out[device{r.Driver, r.Pool, r.Device}] = true
			}
		}
	}
	return out
}

// IsForRequest reports whether kube-scheduler made the claim for extended resources that a pod
// requests.
func IsForRequest(c *resourcev1.ResourceClaim) bool {
	return c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true"
}

// poolName is a driver's pool.
type poolName struct{ driver, pool string }

// problem is what is wrong with what a driver publishes for a node.
type problem struct{ node, text string }

// currentSlices returns the slices of the newest generation of each pool, ordered by name, and
// the pools of which a driver has not published all slices: kube-scheduler does not use them.
func currentSlices(all []*resourcev1.ResourceSlice) (pools map[poolName][]*resourcev1.ResourceSlice, bad []problem) {
	pools = map[poolName][]*resourcev1.ResourceSlice{}
	newest := map[poolName]int64{}
	for _, s := range all {
		p := poolName{s.Spec.Driver, s.Spec.Pool.Name}
		newest[p] = max(newest[p], s.Spec.Pool.Generation)
	}
	for _, s := range all {
		if p := (poolName{s.Spec.Driver, s.Spec.Pool.Name}); s.Spec.Pool.Generation == newest[p] {
			pools[p] = append(pools[p], s)
		}
	}
	for p, of := range pools {
		slices.SortFunc(of, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
		text := ""
		if want := of[0].Spec.Pool.ResourceSliceCount; int64(len(of)) != want {
			text = fmt.Sprintf("driver %s has published %d of %d slices of pool %s", p.driver, len(of), want, p.pool)
		} else if twice := repeatedDevice(of); twice != "" {
			text = fmt.Sprintf("driver %s has published device %s of pool %s twice", p.driver, twice, p.pool)
		}
		if text != "" {
			node := ""
			if n := of[0].Spec.NodeName; n != nil {
				node = *n
			}
			bad = append(bad, problem{node, text})
			delete(pools, p)
		}
	}
	slices.SortFunc(bad, func(a, b problem) int { return cmp.Compare(a.text, b.text) })
	return pools, bad
}

// repeatedDevice returns the name of a device that the slices of a pool have twice, or "".
func repeatedDevice(of []*resourcev1.ResourceSlice) string {
	seen := map[string]bool{}
	for _, s := range of {
		for i := range s.Spec.Devices {
			name := s.Spec.Devices[i].Name
			if seen[name] {
				return name
			}
			seen[name] = true
		}
	}
	return ""
}

// nodeOf returns the node of a device, or "" if it belongs to several nodes.
func nodeOf(s *resourcev1.ResourceSlice, d *resourcev1.Device) string {
	switch {
	case s.Spec.NodeName != nil:
		return *s.Spec.NodeName
	case d.NodeName != nil:
		return *d.NodeName
	}
	return ""
}

// matches reports whether all selectors of the class match the device.
func matches(c *resourcev1.DeviceClass, driver string, d *resourcev1.Device) (bool, error) {
	for _, s := range c.Spec.Selectors {
		if s.CEL == nil {
			return false, nil
		}
		compiled := selectors.GetOrCompile(s.CEL.Expression)
		if compiled.Error != nil {
			return false, compiled.Error
		}
		ok, _, err := compiled.DeviceMatches(context.Background(), cel.Device{
			Driver: driver, AllowMultipleAllocations: d.AllowMultipleAllocations,
			Attributes: d.Attributes, Capacity: d.Capacity,
		})
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// isTainted reports whether the device has a taint, its driver's or an administrator's, with which
// no pod may get it.
func isTainted(id device, d *resourcev1.Device, rules []*resourcev1beta2.DeviceTaintRule) bool {
	for _, t := range d.Taints {
		if keepsAway(string(t.Effect)) {
			return true
		}
	}
	for _, r := range rules {
		s := r.Spec.DeviceSelector
		if s == nil || !keepsAway(string(r.Spec.Taint.Effect)) {
			continue
		}
		if isOrAny(s.Driver, id.driver) && isOrAny(s.Pool, id.pool) && isOrAny(s.Device, id.name) {
			return true
		}
	}
	return false
}

func keepsAway(effect string) bool {
	return effect == string(resourcev1.DeviceTaintEffectNoSchedule) ||
		effect == string(resourcev1.DeviceTaintEffectNoExecute)
}

func isOrAny(want *string, is string) bool { return want == nil || *want == is }

// counters are what is left of the counters that the devices of a pool share, such as the memory
// of a GPU that can be partitioned, by set and name.
type counters map[[2]string]resource.Quantity

func countersOf(of []*resourcev1.ResourceSlice) counters {
	out := counters{}
	for _, s := range of {
		for _, set := range s.Spec.SharedCounters {
			for name, c := range set.Counters {
				out[[2]string{set.Name, name}] = c.Value
			}
		}
	}
	return out
}

// consume subtracts what the device consumes. It returns false, and subtracts nothing, if less is
// left: the device cannot exist beside those that were counted before.
func (c counters) consume(d *resourcev1.Device) bool {
	if len(d.ConsumesCounters) == 0 {
		return true
	}
	after := maps.Clone(c)
	for _, set := range d.ConsumesCounters {
		for name, n := range set.Counters {
			key := [2]string{set.CounterSet, name}
			left := after[key].DeepCopy()
			left.Sub(n.Value)
			if left.Sign() < 0 {
				return false
			}
			after[key] = left
		}
	}
	maps.Copy(c, after)
	return true
}
