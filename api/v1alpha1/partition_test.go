package v1alpha1

import (
	"reflect"
	"testing"
)

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
