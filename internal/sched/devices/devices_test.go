package devices

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/gres"
)

const driver = "gpu.example.com"

func ptr[T any](v T) *T { return &v }

// slice returns the only slice of the node's pool, with devices of the model.
func slice(node, model string, devices ...string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{
		Name: node + "-" + model, UID: types.UID(node + "-" + model), ResourceVersion: "1",
	}}
	s.Spec = resourcev1.ResourceSliceSpec{
		Driver: driver, NodeName: &node,
		Pool: resourcev1.ResourcePool{Name: node + "-" + model, Generation: 1, ResourceSliceCount: 1},
	}
	for _, d := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{
			Name:       d,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}},
		})
	}
	return s
}

// class returns a class of the devices of the model; "": of all.
func class(name, model, extended string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"}}
	expression := `device.driver == "` + driver + `"`
	if model != "" {
		expression += ` && device.attributes["` + driver + `"].model == "` + model + `"`
	}
	c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	if extended != "" {
		c.Spec.ExtendedResourceName = &extended
	}
	return c
}

// implicit is the resource of a class that names none.
func implicit(class string) string { return resourcev1.ResourceDeviceClassPrefix + class }

func TestDevicesAreCountedByClass(t *testing.T) {
	a, b := slice("n1", "a100", "0", "1", "2"), slice("n1", "t4", "3")
	table := gres.Table{
		{Name: "gpu", Type: "a100", Resource: implicit("a100")}, {Name: "gpu", Resource: "example.com/gpu"},
	}
	// Every device belongs to the first class in the order of the table.
	got, problems := countDevices(&input{
		slices:  []*resourcev1.ResourceSlice{a, b, slice("n2", "t4", "0")},
		classes: []*resourcev1.DeviceClass{class("all", "", "example.com/gpu"), class("a100", "a100", "")}, table: table,
	})
	if got["n1"][corev1.ResourceName(implicit("a100"))] != (count{3, 3}) || got["n1"]["example.com/gpu"] != (count{1, 1}) ||
		got["n2"]["example.com/gpu"] != (count{1, 1}) || len(got["n2"]) != 1 || len(problems) != 0 {
		t.Errorf("%v %v", got, problems)
	}
}

// Two classes that name the same resource: kube-scheduler allocates from the newer one only.
func TestTwoClassesOfOneResource(t *testing.T) {
	old, young := class("a", "a100", "example.com/gpu"), class("b", "t4", "example.com/gpu")
	young.CreationTimestamp = metav1.Unix(10, 0)
	in := &input{
		slices:  []*resourcev1.ResourceSlice{slice("n1", "a100", "0", "1", "2"), slice("n1", "t4", "3")},
		classes: []*resourcev1.DeviceClass{old, young},
	}
	for _, want := range []int64{1, 3} { // devices of b, then, as old as a, of a
		got, _ := countDevices(in)
		if n := got["n1"]["example.com/gpu"].all; n != want {
			t.Errorf("%d devices, want %d: %v", n, want, got)
		}
		young.CreationTimestamp = old.CreationTimestamp
	}
}

func TestDevicesThatNobodyGets(t *testing.T) {
	classes := []*resourcev1.DeviceClass{class("gpu", "", "nvidia.com/gpu")}
	only := func(change func(*input, *resourcev1.ResourceSlice)) (count, map[string][]string) {
		s := slice("n1", "a100", "0", "1", "2")
		in := &input{slices: []*resourcev1.ResourceSlice{s}, classes: classes}
		change(in, s)
		nodes, problems := countDevices(in)
		return nodes["n1"]["nvidia.com/gpu"], problems
	}
	claim := func(annotations map[string]string, admin bool) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		c.Status.Allocation = &resourcev1.AllocationResult{}
		c.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{
			{Driver: driver, Pool: "n1-a100", Device: "1", AdminAccess: &admin},
		}
		return c
	}
	rule := func(effect resourcev1beta2.DeviceTaintEffect, device *string) *resourcev1beta2.DeviceTaintRule {
		r := &resourcev1beta2.DeviceTaintRule{}
		r.Spec.DeviceSelector = &resourcev1beta2.DeviceTaintSelector{Driver: ptr(driver), Device: device}
		r.Spec.Taint.Effect = effect
		return r
	}
	for name, tt := range map[string]struct {
		change  func(*input, *resourcev1.ResourceSlice)
		want    count
		problem string
	}{
		"all are usable": {func(*input, *resourcev1.ResourceSlice) {}, count{3, 3}, ""},
		"the driver's taint": {func(_ *input, s *resourcev1.ResourceSlice) {
			s.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "a/b", Effect: resourcev1.DeviceTaintEffectNoExecute}}
		}, count{3, 2}, ""},
		"a taint without effect": {func(_ *input, s *resourcev1.ResourceSlice) {
			s.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "a/b", Effect: resourcev1.DeviceTaintEffectNone}}
		}, count{3, 3}, ""},
		"an administrator's taint": {func(in *input, _ *resourcev1.ResourceSlice) {
			in.taints = append(in.taints, rule("NoSchedule", ptr("2")), rule("None", nil))
		}, count{3, 2}, ""},
		"a taint of all devices": {func(in *input, _ *resourcev1.ResourceSlice) {
			in.taints = append(in.taints, rule("NoSchedule", nil))
		}, count{3, 0}, ""},
		"the claim of another pod": {func(in *input, _ *resourcev1.ResourceSlice) {
			in.claims = append(in.claims, claim(nil, false))
		}, count{2, 2}, ""},
		"a claim with admin access": {func(in *input, _ *resourcev1.ResourceSlice) {
			in.claims = append(in.claims, claim(nil, true))
		}, count{3, 3}, ""},
		"a claim for a pod's request": {func(in *input, _ *resourcev1.ResourceSlice) {
			in.claims = append(in.claims, claim(map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}, false))
		}, count{3, 3}, ""},
		"an older generation": {func(in *input, s *resourcev1.ResourceSlice) {
			old := s.DeepCopy()
			s.Spec.Pool.Generation++
			in.slices = append(in.slices, old)
		}, count{3, 3}, ""},
		"a slice is missing": {func(_ *input, s *resourcev1.ResourceSlice) { s.Spec.Pool.ResourceSliceCount = 2 }, count{},
			"driver gpu.example.com has published 1 of 2 slices of pool n1-a100"},
		"a device twice": {func(_ *input, s *resourcev1.ResourceSlice) { s.Spec.Devices[1].Name = "0" }, count{},
			"driver gpu.example.com has published device 0 of pool n1-a100 twice"},
		"devices of several nodes": {func(_ *input, s *resourcev1.ResourceSlice) {
			s.Spec.NodeName, s.Spec.AllNodes = nil, ptr(true)
		}, count{}, ""},
	} {
		got, problems := only(tt.change)
		if got != tt.want || tt.problem == "" && len(problems) > 0 ||
			tt.problem != "" && !slices.Equal(problems["n1"], []string{tt.problem}) {
			t.Errorf("%s: %v %q, want %v %q", name, got, problems, tt.want, tt.problem)
		}
	}
}

// A selector that fails for a device keeps it out of the class, as in kube-scheduler, and is
// reported once.
func TestSelectorThatFails(t *testing.T) {
	c := class("gpu", "", "nvidia.com/gpu")
	c.Spec.Selectors[0].CEL.Expression = `device.attributes["` + driver + `"].missing == "x"`
	got, problems := countDevices(&input{
		slices:  []*resourcev1.ResourceSlice{slice("n1", "a100", "0", "1")},
		classes: []*resourcev1.DeviceClass{c},
	})
	if len(got) != 0 || len(problems[""]) != 1 {
		t.Errorf("%v %q", got, problems)
	}
}

// A GPU and its partitions share memory, so that not all of them exist at a time: those of the
// class that is first in the table are counted first.
func TestPartitionsShareCounters(t *testing.T) {
	s := slice("n1", "whole", "gpu")
	s.Spec.SharedCounters = []resourcev1.CounterSet{{
		Name: "gpu", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("40Gi")}},
	}}
	consume := func(d *resourcev1.Device, memory string) {
		d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{
			CounterSet: "gpu", Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(memory)}},
		}}
	}
	consume(&s.Spec.Devices[0], "40Gi")
	for _, part := range slice("n1", "1g.5gb", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8").Spec.Devices {
		consume(&part, "5Gi")
		s.Spec.Devices = append(s.Spec.Devices, part)
	}
	whole, part := class("whole", "whole", ""), class("part", "1g.5gb", "")
	for _, tt := range []struct {
		first string
		want  counts
	}{
		{"whole", counts{corev1.ResourceName(implicit("whole")): {1, 1}}},
		{"part", counts{corev1.ResourceName(implicit("part")): {8, 8}}},
	} {
		got, _ := countDevices(&input{
			slices: []*resourcev1.ResourceSlice{s}, classes: []*resourcev1.DeviceClass{whole, part},
			table: gres.Table{{Name: "gpu", Resource: implicit(tt.first)}},
		})
		if !maps.Equal(got["n1"], tt.want) {
			t.Errorf("%s first: %v", tt.first, got["n1"])
		}
	}
}

// Nodes in memory have the devices, whatever comes first, and follow their changes.
func TestNodesHaveTheirDevices(t *testing.T) {
	c, err := control.New(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	x := New(c, slog.New(slog.DiscardHandler))
	node := func(version string, own string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1", ResourceVersion: version}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4")}
		if own != "" {
			n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse(own)
		}
		n.Status.Capacity = n.Status.Allocatable
		return n
	}
	check := func(when string, want int64, missing string) {
		t.Helper()
		n, _ := c.Nodes.Get("n1")
		got := n.Status.Allocatable["nvidia.com/gpu"]
		if text := gres.Table(nil).Missing(n); got.Value() != want || text != missing {
			t.Errorf("%s: %d GPUs, %q; want %d, %q", when, got.Value(), text, want, missing)
		}
	}
	c.Nodes.Apply(node("1", ""))
	x.Count()
	check("at first", 0, "")
	c.Devices.Classes.Apply(class("gpu", "", "nvidia.com/gpu"))
	s := slice("n1", "a100", "0", "1")
	c.Devices.Slices.Apply(s)
	x.Count()
	check("with a driver", 2, "")
	c.Nodes.Apply(node("2", "0"))
	check("with a new version of the node", 2, "")
	s = s.DeepCopy()
	s.ResourceVersion = "2"
	s.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "a/b", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	c.Devices.Slices.Apply(s)
	x.Count()
	check("with a taint", 1, "gres/gpu count reported lower than configured (1 < 2)")
	c.Nodes.Apply(node("3", "7"))
	check("with a device plugin", 7, "")
	c.Nodes.Apply(node("4", ""))
	check("without it", 1, "gres/gpu count reported lower than configured (1 < 2)")
	c.Devices.Slices.Remove(s, time.Now())
	x.Count()
	check("without the driver", 0, "")
	if n, _ := c.Nodes.Get("n1"); len(n.Status.Allocatable) != 1 {
		t.Errorf("%v", n.Status.Allocatable)
	}
	c.Settings.Apply(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterName}})
	select {
	case <-x.changed:
	default:
		t.Error("a change of the Cluster does not count")
	}
}
