package affinity

import (
	"reflect"
	"testing"
)

func TestCPUList(t *testing.T) {
	ids, err := ParseCPUList("8,0-3")
	if err != nil || !reflect.DeepEqual(ids, []int{0, 1, 2, 3, 8}) || FormatCPUList(ids) != "0-3,8" {
		t.Errorf("%v, %v, %s", ids, err, FormatCPUList(ids))
	}
	for _, bad := range []string{"x", "3-1", "-1", "0-99999999"} {
		if _, err := ParseCPUList(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if ids, err := ParseCPUList(""); err != nil || ids != nil {
		t.Errorf("empty: %v, %v", ids, err)
	}
}
