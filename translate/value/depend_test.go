package value

import (
	"strings"
	"testing"
)

// TestManyDependencies parses half a million terms. Comparing each of them with all
// others would exceed the timeout of the test binary.
func TestManyDependencies(t *testing.T) {
	const n = 500_000
	var text strings.Builder
	text.WriteString("afterany")
	for i := range n {
		text.WriteString(":1")
		for digit := i; digit > 0; digit /= 10 {
			text.WriteByte(byte('0' + digit%10))
		}
		text.WriteByte('1')
	}
	d, err := Dependencies(text.String())
	if err != nil || len(d.Items) < n/2 {
		t.Error(len(d.Items), err)
	}
}

// TestRepeatedDependencies checks that duplicates are dropped.
func TestRepeatedDependencies(t *testing.T) {
	d, err := Dependencies("afterok:1:1:2_3,afterok:1,after:1+5:1+5:1,singleton,singleton,afterok:2_*:2_3")
	if err != nil {
		t.Fatal(err)
	}
	if got := FormatDependencies(d); got != "afterok:1,afterok:2_3,after:1+5,after:1,singleton,afterok:2_*" {
		t.Error(got)
	}
}
