package query

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/internal/queue/table"
)

func TestParseRef(t *testing.T) {
	for _, tt := range []struct {
		text      string
		id        int64
		tasks     string // "": the whole job
		component bool
		hetJobID  int64
	}{
		{text: "12", id: 12},
		{text: "12_*", id: 12},
		{text: "12_3", id: 12, tasks: "3"},
		{text: "12_[1-3,7]%2", id: 12, tasks: "1,2,3,7"},
		{text: "12+1", id: 13, component: true, hetJobID: 12},
		{text: "12+0", id: 12, component: true, hetJobID: 12},
	} {
		r, ok := ParseRef(tt.text)
		if !ok || r.ID != tt.id || r.Component != tt.component || r.HetJobID != tt.hetJobID ||
			(r.Tasks == nil) != (tt.tasks == "") {
			t.Errorf("%s: %+v, %v", tt.text, r, ok)
		}
		for _, task := range []int32{1, 2, 3, 7} {
			if named := slices.Contains(SplitList(tt.tasks), string('0'+rune(task))); r.Tasks != nil &&
				r.Tasks.Has(task) != named {
				t.Errorf("%s: task %d: %v", tt.text, task, !named)
			}
		}
	}
	for _, text := range []string{"", "x", "0", "-1", "12_", "12_x", "12+", "12+x", "12_1+1", "12.0"} {
		if r, ok := ParseRef(text); ok {
			t.Errorf("%q is parsed as %+v", text, r)
		}
	}
}

// TestRefsWidenAQuery: each reference adds to the query; the whole job includes its
// tasks.
func TestRefsWidenAQuery(t *testing.T) {
	for _, tt := range []struct {
		refs  []string
		ids   []int64
		tasks int // of job 1; 0: no limit
	}{
		{[]string{"1_1", "1_2", "2"}, []int64{1, 2}, 2},
		{[]string{"1_1", "1"}, []int64{1}, 0},
		{[]string{"1", "1_1"}, []int64{1}, 0},
		{[]string{"1_[1-2]", "1_[2-3]"}, []int64{1}, 3},
	} {
		var q table.Query
		a := newRefAdder(&q)
		for _, text := range tt.refs {
			r, ok := ParseRef(text)
			if !ok {
				t.Fatalf("%s cannot be parsed", text)
			}
			a.add(r)
		}
		a.finish()
		tasks := 0
		for i := range int32(10) {
			if q.Tasks[1] != nil && q.Tasks[1].Has(i) {
				tasks++
			}
		}
		if !slices.Equal(q.IDs, tt.ids) || tasks != tt.tasks {
			t.Errorf("%q: ids %v, tasks %v", tt.refs, q.IDs, q.Tasks)
		}
	}
}

// TestComponentsOfTheSameID: of two references to an id as a component of different jobs,
// both count; the id by itself includes the job whatever it is a component of.
func TestComponentsOfTheSameID(t *testing.T) {
	for _, tt := range []struct {
		refs    []string
		leaders []int64 // of job 13; nil: no limit
	}{
		{[]string{"12+1"}, []int64{12}},
		{[]string{"12+1", "11+2"}, []int64{12, 11}},
		{[]string{"11+2", "12+1"}, []int64{11, 12}},
		{[]string{"12+1", "13", "11+2"}, nil},
		{[]string{"13", "12+1"}, nil},
	} {
		var q table.Query
		a := newRefAdder(&q)
		for _, text := range tt.refs {
			r, ok := ParseRef(text)
			if !ok {
				t.Fatalf("%s cannot be parsed", text)
			}
			a.add(r)
		}
		a.finish()
		if !slices.Equal(q.IDs, []int64{13}) || !slices.Equal(q.Leaders[13], tt.leaders) {
			t.Errorf("%q: ids %v, leaders %v, want %v", tt.refs, q.IDs, q.Leaders[13], tt.leaders)
		}
	}
}

func TestSplitRefs(t *testing.T) {
	got := splitRefs([]string{"1,2_[1,3], 4", "", "5_[6"})
	if want := []string{"1", "2_[1,3]", "4", "5_[6"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUnknownIDsMatchNothing: a list of names none of which is an id must not match
// every job.
func TestUnknownIDsMatchNothing(t *testing.T) {
	if ids := IDs([]string{"x"}); !slices.Equal(ids, []int64{noID}) {
		t.Errorf("%v", ids)
	}
	q, err := Parse(map[string][]string{"id": {"x"}})
	if err != nil || !slices.Equal(q.IDs, []int64{noID}) {
		t.Errorf("%v %v", q.IDs, err)
	}
}
