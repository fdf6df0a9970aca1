package faults

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestSameSeedMakesTheSamePlan(t *testing.T) {
	a, err := Plan(7, 10*time.Minute, 5*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Plan(7, 10*time.Minute, 5*time.Second, nil)
	other, _ := Plan(8, 10*time.Minute, 5*time.Second, nil)
	if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, other) {
		t.Errorf("plans of one seed are equal: %v, of two seeds: %v", reflect.DeepEqual(a, b), reflect.DeepEqual(a, other))
	}
	seen := map[string]bool{}
	for i, f := range a {
		seen[f.Kind] = true
		if i > 0 && f.At <= a[i-1].At {
			t.Errorf("fault %d is at %v, after one at %v", i, f.At, a[i-1].At)
		}
		if again, err := Parse(f.String()); err != nil || again != f {
			t.Errorf("%q is parsed as %v, %v", f, again, err)
		}
	}
	if len(seen) < len(Kinds)-2 {
		t.Errorf("a plan of %d faults has %d kinds of %d", len(a), len(seen), len(Kinds))
	}
}

func TestPlanOfNamedKinds(t *testing.T) {
	plan, err := Plan(1, time.Minute, time.Second, []string{"agent"})
	if err != nil || len(plan) < 20 || slices.ContainsFunc(plan, func(f Fault) bool { return f.Kind != "agent" }) {
		t.Errorf("plan %v, %v", plan, err)
	}
	if _, err := Plan(1, time.Minute, time.Second, []string{"earthquake"}); err == nil {
		t.Error("an unknown kind is accepted")
	}
	for _, bad := range []string{"", "1s:agent", "soon:agent:1", "1s:earthquake:1", "1s:agent:x"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestShrink finds the two faults of a long plan that fail together.
func TestShrink(t *testing.T) {
	plan, err := Plan(3, 10*time.Minute, 5*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Fault{plan[11], plan[70]}
	calls := 0
	got := Shrink(plan, func(p []Fault) bool {
		calls++
		return slices.Contains(p, want[0]) && slices.Contains(p, want[1])
	})
	if !reflect.DeepEqual(got, want) || calls > len(plan) {
		t.Errorf("after %d runs %v, want %v", calls, got, want)
	}
	if got := Shrink(plan, func([]Fault) bool { return true }); len(got) != 0 {
		t.Errorf("a failure without faults is shrunk to %v", got)
	}
}
