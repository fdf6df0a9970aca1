package backfill

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whichever jobs the backfill order puts first, the jobs ahead of them are decided about as if
// those did not exist: no reservation is delayed.
func TestNoBackfillOrderDelaysAReservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRich(t)
		s.Policy = rapid.SampledFrom([]Policy{SJBF(), LXBF()}).Draw(t, "policy")
		s.Policy.Reservations = rapid.IntRange(1, 3).Draw(t, "reservations of a partition")
		for i := range s.Pending {
			s.Pending[i].Group = 0 // its jobs are decided about in place of the first
			s.Pending[i].Partition = rapid.IntRange(0, 1).Draw(t, "partition")
			s.Pending[i].Since = rapid.Int64Range(0, 5).Draw(t, "since")
		}
		all := counted(s.Plan())
		without := *s
		without.Pending = aheadOfBackfill(s, all)
		want := counted(without.Plan())
		for _, d := range want.Decisions {
			same := func(o Decision) bool {
				return o.ID == d.ID && reflect.DeepEqual(o.Nodes, d.Nodes) && o.Start == d.Start
			}
			if !slices.ContainsFunc(all.Decisions, same) {
				t.Fatalf("job %d: %+v is not decided with the other jobs:\n%+v", d.ID, d, all)
			}
		}
	})
}

// aheadOfBackfill returns the pending jobs up to the one that gets the last reservation of
// its partition, for each partition.
func aheadOfBackfill(s *Snapshot, p Plan) []Job {
	reservations := map[int]int{}
	var out []Job
	for _, j := range byPriority(s.Pending) {
		if reservations[j.Partition] >= s.Policy.Reservations {
			continue
		}
		out = append(out, *j)
		for _, d := range p.Decisions {
			if d.ID == j.ID && !d.StartNow && d.Nodes != nil {
				reservations[j.Partition]++
			}
		}
	}
	return out
}

// Of jobs that can only be backfilled, the shortest starts, or the one that has waited longest in
// proportion to its time limit; without an order the first in the queue.
func TestBackfillOrders(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		want   int64
	}{{EASY(), 3}, {SJBF(), 4}, {LXBF(), 5}} {
		s := &Snapshot{
			Now: 1000, Nodes: nodes(1, 4), Policy: c.policy,
			Running: []Running{{ID: 1, End: 2000, Allocation: []NodeAllocation{held(0, 0, 3)}}},
			Pending: []Job{
				{ID: 2, Priority: 9, Submit: 1, Since: 1, Duration: 100, MinNodes: 1, CPUsPerTask: 4},
				{ID: 3, Priority: 5, Submit: 2, Since: 990, Duration: 900, MinNodes: 1},
				{ID: 4, Priority: 4, Submit: 3, Since: 995, Duration: 300, MinNodes: 1},
				{ID: 5, Priority: 3, Submit: 4, Since: 10, Duration: 800, MinNodes: 1},
			},
		}
		q := NewQueue(s)
		if got := q.Decide(s.Now); len(got) != 1 || got[0].ID != c.want {
			t.Errorf("%+v: %+v starts, want job %d", c.policy, got, c.want)
		}
	}
}
