package wire

import "testing"

func TestNodeAt(t *testing.T) {
	for _, tt := range []struct {
		list  string
		nodes []int
	}{
		{"0", []int{0}},
		{"0,2-4,7", []int{0, 2, 3, 4, 7}},
		{"5-6,999999999", []int{5, 6, 999999999}},
		{"", nil}, {"x", nil}, {"3-1", nil}, {"1-", nil}, {"-1", nil}, {"1,,2", []int{1}},
		{"1000000000", nil},
	} {
		for place, want := range tt.nodes {
			if got, ok := NodeAt(tt.list, place); !ok || got != want {
				t.Errorf("%q at %d: %d %t, want %d", tt.list, place, got, ok, want)
			}
		}
		if got, ok := NodeAt(tt.list, len(tt.nodes)); ok {
			t.Errorf("%q at %d: %d beyond the end", tt.list, len(tt.nodes), got)
		}
	}
	if _, ok := NodeAt("0-3", -1); ok {
		t.Error("a position before the first")
	}
}
