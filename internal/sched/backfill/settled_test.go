package backfill

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Who waited when nothing has become free since need not be looked at again: a
// scheduler that does so all the same starts the same jobs, and tells the same.
func TestWhatFreesNothingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Snapshot{Nodes: []Node{{CPUs: 8, Memory: 20}}, Policy: Policy{
			Reservations: rapid.IntRange(1, 2).Draw(t, "reservations"), ShortestFirst: rapid.Bool().Draw(t, "shortest first")}}
		q, again := NewScheduler(s), NewScheduler(s)
		ends := map[int64]int64{}
		for id := range int64(rapid.IntRange(1, 40).Draw(t, "events")) {
			now := q.e.now + rapid.Int64Range(0, 6).Draw(t, "pass")
			for other := range id {
				if end, runs := ends[other]; runs && end <= now {
					q.End(other)
					again.End(other)
					delete(ends, other)
				}
			}
			q.Advance(now)
			again.Advance(now)
			if rapid.IntRange(0, 3).Draw(t, "comes") > 0 {
				j := drawJob(t, id, 1)
				q.Submit(&j)
				again.Submit(&j)
			}
			again.settled.is = false
			started := slices.Clone(q.Plan())
			if all := again.Plan(); len(all)+len(started) > 0 && !reflect.DeepEqual(started, all) {
				t.Fatalf("at %d:\n%+v\nwhere all are looked at again:\n%+v", now, started, all)
			}
			for _, d := range started {
				ends[d.ID] = now + rapid.Int64Range(1, d.Duration+3).Draw(t, "runs")
			}
			for i, w := range q.queue {
				if !reflect.DeepEqual(w.told, again.queue[i].told) {
					t.Fatalf("at %d: %+v\nwhere all are looked at again: %+v", now, w.told, again.queue[i].told)
				}
			}
		}
	})
}
