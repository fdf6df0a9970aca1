package step

import (
	"reflect"
	"testing"
)

func TestBind(t *testing.T) {
	ids := []int{4, 5, 6, 7}
	for _, c := range []struct {
		text string
		want [][]int // of two local tasks with two CPUs each
	}{
		{"", [][]int{{4, 5}, {6, 7}}},
		{"verbose,cores", [][]int{{4, 5}, {6, 7}}},
		{"none", [][]int{nil, nil}},
		{"rank", [][]int{{4}, {5}}},
		{"map_cpu:7,0x4", [][]int{{7}, {4}}},
		{"v,mask_cpu:0xF0,30", [][]int{{4, 5, 6, 7}, {4, 5}}},
		{"mask_cpu:0x10*2", [][]int{{4}, {4}}},
	} {
		b, err := ParseBind(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		for local, want := range c.want {
			if got := b.CPUs(ids, local, 2, 2); !reflect.DeepEqual(got, want) {
				t.Errorf("%q: task %d on %v, want %v", c.text, local, got, want)
			}
		}
	}
	for _, bad := range []string{"nonsense", "map_cpu", "map_cpu:x", "mask_cpu:0", "mask_cpu:g", "map_cpu:1*0", "map_cpu:-1"} {
		if _, err := ParseBind(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if got := Mask([]int{0, 1, 8}); got != "0x103" {
		t.Error(got)
	}
}
