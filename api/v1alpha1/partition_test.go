package v1alpha1

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestPartitionNames: every name of a partition has an object of its own, from which the
// name follows.
func TestPartitionNames(t *testing.T) {
	objects := map[string]string{}
	for _, name := range []string{
		"debug", "gpu-short", "gpu_short", "GPU-short", "gpu.x", "Gpu.x", "QA", "qa", "a+b", "a:b", "a@b", "_", "-", "-a",
		"Ä", strings.Repeat("x", 100), strings.Repeat("X", 100), strings.Repeat("X", 53) + "_" + "y",
	} {
		p := NewPartition(name)
		if other, taken := objects[p.Name]; taken {
			t.Errorf("%q and %q are the object %s", name, other, p.Name)
		}
		objects[p.Name] = name
		if why := validation.IsDNS1123Subdomain(p.Name); len(why) > 0 {
			t.Errorf("%q: object %q: %s", name, p.Name, why)
		}
		if got := PartitionName(p.Name, p.Annotations); got != name {
			t.Errorf("%q is known as %q", name, got)
		}
		if why := validation.IsValidLabelValue(PartitionLabel(name)); len(why) > 0 {
			t.Errorf("%q: label %q: %s", name, PartitionLabel(name), why)
		}
	}
	if p := NewPartition("debug"); p.Name != "debug" || p.Annotations != nil {
		t.Errorf("%+v", p.ObjectMeta)
	}
	if got := NewPartition("gpu_short").Name; got != "gpu-short-26982789" {
		t.Errorf("the object of gpu_short is %s; the chart has the same rule", got)
	}
	if got := PartitionLabel("Gpu_Short"); got != "Gpu_Short" {
		t.Errorf("label %q", got)
	}
	for object, want := range map[string]string{"gpu-short": "GPU_Short", "other": "other"} {
		if got := PartitionName(object, map[string]string{NameAnnotation: "GPU_Short"}); got != want {
			t.Errorf("object %s with the annotation GPU_Short is known as %q, want %q", object, got, want)
		}
	}
}

// TestInherit: who has no template takes that of the default partition, and
// keeps what it says itself.
func TestInherit(t *testing.T) {
	one := func(name string, spec PartitionSpec, template string) *Partition {
		p := &Partition{Spec: spec}
		p.Name = name
		if template != "" {
			p.Spec.Template.Raw = []byte(template)
		}
		return p
	}
	z := one("z", PartitionSpec{SharedPaths: []string{"/z"}, Agent: AgentSource{HostPath: "/agent"}}, `{"z":1}`)
	y := one("y", PartitionSpec{SharedPaths: []string{"/y"}}, `{"y":1}`)
	plain := one("a", PartitionSpec{Default: true, Nodes: "n1"}, "")
	own := one("b", PartitionSpec{SharedPaths: []string{"/b"}, Agent: AgentSource{Image: "mine"}}, "")
	isDefault := one("z", z.Spec, string(z.Spec.Template.Raw))
	isDefault.Spec.Default = true

	for name, c := range map[string]struct {
		of   *Partition
		all  []*Partition
		want PartitionSpec
	}{
		"nobody has one":       {plain, []*Partition{plain, own}, plain.Spec},
		"one's own":            {y, []*Partition{isDefault, y}, y.Spec},
		"not the default one":  {plain, []*Partition{y, z, plain}, plain.Spec},
		"the default one":      {plain, []*Partition{y, isDefault, plain}, PartitionSpec{Default: true, Nodes: "n1", Template: z.Spec.Template, SharedPaths: []string{"/z"}, Agent: z.Spec.Agent}},
		"what it says remains": {own, []*Partition{own, isDefault}, PartitionSpec{Template: z.Spec.Template, SharedPaths: []string{"/b"}, Agent: AgentSource{Image: "mine"}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.of.DeepCopy()
			if got := c.of.Inherit(c.all); got.Name != c.of.Name || !reflect.DeepEqual(got.Spec, c.want) {
				t.Errorf("%+v, want %+v", got.Spec, c.want)
			}
			if !reflect.DeepEqual(before, c.of) {
				t.Errorf("it was changed: %+v", c.of)
			}
		})
	}
}
