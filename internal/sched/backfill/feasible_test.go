package backfill

import (
	"testing"

	"pgregory.net/rapid"
)

// TestNeverRunnableLeavesNothing asks about jobs of two snapshots in turns: the memory that
// the calls share must not carry the nodes of one snapshot into the answer about the other.
func TestNeverRunnableLeavesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := drawRich(t), drawRich(t)
		var jobs []*Job
		var want []string
		for _, s := range []*Snapshot{first, second, first} {
			for i := range s.Pending {
				fresh := newEngine(s, workload{}, fullSlots)
				jobs = append(jobs, &s.Pending[i])
				want = append(want, fresh.neverRunnable(&s.Pending[i]))
			}
		}
		n := 0
		for _, s := range []*Snapshot{first, second, first} {
			for range s.Pending {
				if got := s.NeverRunnable(jobs[n]); got != want[n] {
					t.Fatalf("job %d: %q, with memory of its own %q", jobs[n].ID, got, want[n])
				}
				n++
			}
		}
	})
}

// BenchmarkNeverRunnable is the check of a submission on a cluster of 5,000 nodes.
func BenchmarkNeverRunnable(b *testing.B) {
	s := &Snapshot{Nodes: make([]Node, 5000)}
	for i := range s.Nodes {
		s.Nodes[i] = Node{Name: "n", CPUs: 64, Memory: 256 << 10}
	}
	j := &Job{ID: 1, MinNodes: 1, MaxNodes: 1, Tasks: 1, CPUsPerTask: 1}
	b.ReportAllocs()
	for b.Loop() {
		if why := s.NeverRunnable(j); why != ReasonNone {
			b.Fatal(why)
		}
	}
}
