package sstat

import (
	"slices"
	"strings"
	"testing"
)

// TestWidths compares the widths of the default columns with those of sstat 22.05.8.
func TestWidths(t *testing.T) {
	want := []int{
		12, 10, 14, 14, 10, 10, 10, 10, 10, 8, 12, 14, 10, 10, 10, 10,
		10, 8, 10, 13, 13, 13, 14, 12, 15, 15, 12, 12, 16, 16, 12, 14,
		14, 18, 18, 14, 18, 18, 14, 15, 15, 19, 19, 15, 19, 19, 15,
	}
	var got []int
	for name := range strings.SplitSeq(defaults, ",") {
		for _, f := range table {
			if f.Name == name {
				got = append(got, f.Width)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
