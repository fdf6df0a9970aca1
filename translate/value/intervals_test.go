package value

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestIntervalsHaveTheIndexesOfArrays compares Intervals and Array for random
// specifications.
func TestIntervalsHaveTheIndexesOfArrays(t *testing.T) {
	part := rapid.Custom(func(t *rapid.T) string {
		first := rapid.IntRange(0, 40).Draw(t, "first")
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			return fmt.Sprint(first)
		case 1:
			return fmt.Sprintf("%d-%d", first, first+rapid.IntRange(-1, 20).Draw(t, "length"))
		}
		return fmt.Sprintf(
			"%d-%d:%d",
			first,
			first+rapid.IntRange(0, 20).Draw(t, "length"),
			rapid.IntRange(0, 5).Draw(t, "step"),
		)
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 1, 6).Draw(t, "parts"), ",")
		a, err := Array(text)
		s, intervalErr := ArrayIntervals(text)
		if (err == nil) != (intervalErr == nil) {
			t.Fatalf("%q: Array returns %v, ArrayIntervals %v", text, err, intervalErr)
		}
		if err != nil {
			return
		}
		for i := range int32(70) {
			if s.Has(i) != slices.Contains(a.Indexes, i) {
				t.Fatalf("%q: Has(%d) is %v, the indexes are %v, the intervals %v", text, i, s.Has(i), a.Indexes, s)
			}
		}
		one, single := s.Single()
		if single != (len(a.Indexes) == 1) || single && one != a.Indexes[0] {
			t.Fatalf("%q: Single is %d, %v", text, one, single)
		}
	})
}

// TestIntervalsAreNotExpanded checks the size of a large range.
func TestIntervalsAreNotExpanded(t *testing.T) {
	text := strings.Repeat("0-3999999,1-3999999:2,", 100) + "7"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := ArrayIntervals(text)
	runtime.ReadMemStats(&after)
	if err != nil || !s.Has(3999998) || s.Has(4000000) {
		t.Fatal(err, s)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 50*uint64(len(text)) {
		t.Errorf("a text of %d bytes needs %d bytes of memory", len(text), got)
	}
}
