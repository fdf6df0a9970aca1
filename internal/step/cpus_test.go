package step

import (
	"reflect"
	"testing"
)

func TestCPULists(t *testing.T) {
	ids, err := ParseCPUs("8,0-3")
	if err != nil || !reflect.DeepEqual(ids, []int{0, 1, 2, 3, 8}) || FormatCPUs(ids) != "0-3,8" {
		t.Errorf("%v, %v, %s", ids, err, FormatCPUs(ids))
	}
	for _, bad := range []string{"x", "3-1", "-1", "0-99999999"} {
		if _, err := ParseCPUs(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if ids, err := ParseCPUs(""); err != nil || ids != nil {
		t.Errorf("empty: %v, %v", ids, err)
	}
}
