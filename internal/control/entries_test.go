package control

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestEntriesAreAMap: entries have what a map of the same changes has.
func TestEntriesAreAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e entries[*int]
		want := map[types.UID]*int{}
		ids := rapid.SampledFrom([]types.UID{"a", "b", "c"})
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			id := ids.Draw(t, "id")
			if rapid.Bool().Draw(t, "added") {
				want[id] = new(int)
				e = e.with(id, want[id])
			} else {
				delete(want, id)
				e = e.without(id)
			}
			if e.len() != len(want) {
				t.Fatalf("%d entries, want %d", e.len(), len(want))
			}
			got := slices.Collect(e.all())
			for _, obj := range want {
				if !slices.Contains(got, obj) {
					t.Fatalf("an entry of %d is missing", len(want))
				}
			}
			if len(got) != len(want) {
				t.Fatalf("all yields %d of %d", len(got), len(want))
			}
		}
	})
}
