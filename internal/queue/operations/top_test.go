package operations

import "testing"

// TestReorder: the priorities that Slurm 22.05.8 gave after scontrol top.
func TestReorder(t *testing.T) {
	for _, x := range []struct {
		name                  string
		first, others         []int64
		wantFirst, wantOthers []int64
	}{
		{"equal ones", []int64{1115, 1115}, []int64{1115}, []int64{1115, 1114}, []int64{1113}},
		{"equal ones, more others", []int64{1115, 1115}, []int64{1115, 1115, 1115}, []int64{1115, 1114},
			[]int64{1113, 1113, 1113}},
		{"the last one", []int64{1113}, []int64{1114, 1115}, []int64{1115}, []int64{1113, 1114}},
		{"all of them", []int64{1113, 1114, 1115}, nil, []int64{1115, 1114, 1113}, nil},
		{"a gain that does not divide", []int64{1065}, []int64{1113, 1115, 1114}, []int64{1115}, []int64{1097, 1098, 1097}},
		{"a gain that divides", []int64{1075}, []int64{1105, 1095, 1085}, []int64{1105}, []int64{1095, 1085, 1075}},
		{"two of four", []int64{1075, 1085}, []int64{1095, 1105}, []int64{1105, 1095}, []int64{1075, 1085}},
		{"three of five", []int64{1113, 1113, 1113}, []int64{1114, 1115}, []int64{1115, 1114, 1113}, []int64{1112, 1112}},
		{"a nice one", []int64{915}, []int64{1112, 1112, 1114, 1115}, []int64{1115}, []int64{1062, 1062, 1064, 1065}},
	} {
		list := func(priorities []int64) (out []ranked) {
			for _, p := range priorities {
				out = append(out, ranked{priority: p})
			}
			return out
		}
		first, others := list(x.first), list(x.others)
		reorder(first, others)
		for i, j := range first {
			if j.next != x.wantFirst[i] {
				t.Errorf("%s: first job %d gets %d, want %d", x.name, i, j.next, x.wantFirst[i])
			}
		}
		for i, j := range others {
			if j.next != x.wantOthers[i] {
				t.Errorf("%s: other job %d gets %d, want %d", x.name, i, j.next, x.wantOthers[i])
			}
		}
	}
}
