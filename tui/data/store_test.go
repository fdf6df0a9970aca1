package data_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
)

var fields = []string{
	"id",
	"name",
	"user",
	"partition",
	"state",
	"priority",
	"arrayJobID",
	"arrayTaskID",
	"hetJobID",
	"hetOffset",
	"requeue",
	"timeLimit",
}

func random(r *rand.Rand, id int64) status.Job {
	states := []string{"PENDING", "RUNNING", "COMPLETING"}
	return status.Job{
		ID:        id,
		Name:      fmt.Sprint("job", r.IntN(1000)),
		User:      fmt.Sprint("u", r.IntN(20)),
		Partition: fmt.Sprint("p", r.IntN(3)),
		State:     states[r.IntN(3)],
		Priority:  r.Int64N(100),
		Requeue:   r.IntN(2) == 0,
		TimeLimit: int32(r.IntN(100)) - 1,
	}
}

// A store has the same rows as a mirror of whole rows, however rows change.
func TestStoreEqualsMirror(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := data.NewStore(fields)
	var mirror jobs.Mirror
	for step := range 3000 {
		e := &status.JobEvent{Type: status.EventDiff, Revision: "x", Time: int64(step)}
		if step%1000 == 0 {
			e.Type = status.EventSync
		}
		for range r.IntN(8) {
			e.Items = append(e.Items, random(r, r.Int64N(200)+1))
		}
		for range r.IntN(4) {
			id := r.Int64N(200) + 1
			if !slices.ContainsFunc(e.Items, func(j status.Job) bool { return j.ID == id }) {
				e.Gone = append(e.Gone, id)
			}
		}
		s.Apply(e)
		mirror.Apply(e)
		if step%50 != 0 {
			continue
		}
		want := mirror.List()
		if s.Len() != len(want) {
			t.Fatalf("step %d: %d rows, want %d", step, s.Len(), len(want))
		}
		for _, w := range want {
			slot, ok := s.Slot(w.ID)
			if got := s.Job(slot); !ok || got != w {
				t.Fatalf("step %d: %+v, want %+v", step, got, w)
			}
		}
	}
}

func TestTextsOfRemovedRowsAreRemoved(t *testing.T) {
	s := data.NewStore(fields)
	for i := range int64(40_000) {
		e := &status.JobEvent{
			Type:     status.EventDiff,
			Revision: "x",
			Items:    []status.Job{{ID: i + 1, Name: strings.Repeat("x", 5) + fmt.Sprint(i)}},
		}
		if i > 10 {
			e.Gone = []int64{i - 9}
		}
		s.Apply(e)
	}
	if _, texts := s.Texts("name"); len(texts) > 20_000 {
		t.Errorf("%d texts for %d rows", len(texts), s.Len())
	}
	slot, ok := s.Slot(40_000)
	if j := s.Job(slot); !ok || j.Name != "xxxxx39999" {
		t.Errorf("%+v", j)
	}
}

// Merging changed rows into an order gives the same as sorting all rows, and the
// order is squeue's.
func TestMergeEqualsSort(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := data.NewStore(fields)
	var list []status.Job
	for id := range int64(500) {
		j := random(r, id+1)
		j.Priority = 1 // the order has held jobs among the others, squeue lists them last
		list = append(list, j)
	}
	s.Apply(&status.JobEvent{Type: status.EventSync, Revision: "x", Items: list})
	var keys []data.SortKey
	for _, letter := range []byte("Ptp") {
		for i := range format.JobColumns() {
			if format.JobColumns()[i].Letter == letter {
				keys = append(keys, data.SortKey{Column: &format.JobColumns()[i], Descending: letter == 'p'})
			}
		}
	}
	o := data.NewOrder(s, keys, &format.Settings{})
	all := s.Slots(nil)
	slices.Sort(all)
	merged := o.Merge(slices.Clone(all[:0]), slices.Clone(all[:200]))
	merged = o.Merge(merged, slices.Clone(all[200:]))
	var got, want []int64
	for _, slot := range merged {
		got = append(got, s.ID(slot))
	}
	for _, j := range format.SortJobs(list, "P,t,-p,i") { // the store orders equal rows by id, so that they stay
		want = append(want, j.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// Sorting a long list by ranks gives the same as sorting it by comparison.
func TestRankedSortEqualsCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s := data.NewStore(fields)
	var list []status.Job
	for id := range int64(12_000) {
		j := random(r, id+1)
		if id%2 == 0 {
			j.User = fmt.Sprint("one", id) // with the names more texts than maxRankedTexts
			j.Name = fmt.Sprint("one", id)
		}
		list = append(list, j)
	}
	s.Apply(&status.JobEvent{Type: status.EventSync, Revision: "x", Items: list})
	columns := map[byte]*format.Column[status.Job]{}
	for i := range format.JobColumns() {
		columns[format.JobColumns()[i].Letter] = &format.JobColumns()[i]
	}
	for _, letters := range []string{"Ptp", "utP", "tuj", "PjtuP", "lt", "i", "r", ""} {
		for _, descending := range []bool{false, true} {
			var keys []data.SortKey
			for i, letter := range []byte(letters) {
				keys = append(keys, data.SortKey{Column: columns[letter], Descending: descending != (i%2 == 0)})
			}
			o := data.NewOrder(s, keys, &format.Settings{})
			got := s.Slots(nil)
			want := slices.Clone(got)
			slices.SortFunc(want, o.Compare)
			if o.Sort(got); !slices.Equal(got, want) {
				t.Errorf("by %q, descending %v: another order", letters, descending)
			}
		}
	}
}
