package backfill

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// occupant returns a running job with the given number of CPUs, the first free ones, of one
// node.
func occupant(id int64, node, from, cpus int) Running {
	r := Running{ID: id, End: Forever, Allocation: []NodeAllocation{{Node: node}}}
	r.Allocation[0].CPUs.AddRange(from, from+cpus)
	return r
}

func TestPreempt(t *testing.T) {
	s := &Snapshot{Now: 100, Nodes: []Node{{Name: "a", CPUs: 4}, {Name: "b", CPUs: 4}},
		Running: []Running{occupant(1, 0, 0, 4), occupant(2, 1, 0, 2), occupant(3, 1, 2, 2)}}
	job := func(nodes, cpus int) *Job { return &Job{ID: 9, MinNodes: nodes, MinCPUs: cpus, Duration: 60} }
	for _, tt := range []struct {
		name       string
		job        *Job
		candidates []int64
		want       []int64
	}{
		{"one will do", job(1, 2), []int64{2, 3, 1}, []int64{2}},
		{"a whole node", job(1, 4), []int64{1, 2, 3}, []int64{1}},
		{"both on it", job(1, 4), []int64{2, 3}, []int64{2, 3}},
		{"a job that is not needed keeps running", job(1, 4), []int64{2, 1, 3}, []int64{1}},
		{"not enough", job(2, 4), []int64{2, 3}, nil},
		{"all of them", job(2, 4), []int64{3, 2, 1}, []int64{3, 2, 1}},
		{"no candidates", job(1, 1), nil, nil},
	} {
		if got := s.Victims(tt.job, tt.candidates); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	s.Running = s.Running[:2]
	if got := s.Victims(job(1, 2), []int64{1, 2}); got != nil {
		t.Errorf("there is room, and yet %v", got)
	}
}

// Victims are candidates; the job fits if all of them end, and not if one of them
// continues.
func TestVictimsAreNoMoreThanNeeded(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := &Snapshot{Now: 1, Policy: rapid.SampledFrom([]Policy{{}, DefaultPolicy()}).Draw(r, "options")}
		id := int64(0)
		var candidates []int64
		for n := range rapid.IntRange(1, 4).Draw(r, "nodes") {
			s.Nodes = append(s.Nodes, Node{Name: string(rune('a' + n)), CPUs: 4})
			for at := 0; at < 4; {
				cpus := rapid.IntRange(1, 4-at).Draw(r, "cpus")
				if rapid.Bool().Draw(r, "busy") {
					id++
					s.Running = append(s.Running, occupant(id, n, at, cpus))
					if rapid.Bool().Draw(r, "candidate") {
						candidates = append(candidates, id)
					}
				}
				at += cpus
			}
		}
		j := &Job{ID: 99, MinNodes: rapid.IntRange(1, 3).Draw(r, "min"), MinCPUs: rapid.IntRange(1, 4).Draw(r, "each"), Duration: 10}
		victims := s.Victims(j, candidates)
		for _, v := range victims {
			if !slices.Contains(candidates, v) {
				t.Fatalf("%d is no candidate", v)
			}
		}
		if victims == nil {
			return
		}
		if !s.newTrial(j).plan(victims) {
			t.Fatalf("it does not fit without %v", victims)
		}
		for i, v := range victims {
			if s.newTrial(j).plan(slices.Delete(slices.Clone(victims), i, i+1)) {
				t.Fatalf("%d of %v is preempted without need", v, victims)
			}
		}
	})
}
