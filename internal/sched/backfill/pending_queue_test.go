package backfill

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// However long it is, a pending queue is in order, and the job that is removed
// from it is the one that was named.
func TestPendingQueueKeepsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l pendingQueue
		var all []*Job
		for id := range rapid.IntRange(0, 3*maxChunk).Draw(t, "first") {
			all = append(all, &Job{ID: int64(id % 500), Priority: int64(id * 7919 % 13)})
			l.add(all[id])
		}
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 1<<20), 0, 200).Draw(t, "then") {
			if len(all) > 0 && n%3 > 0 {
				n %= len(all)
				l.remove(all[n])
				all = slices.Delete(all, n, n+1)
				continue
			}
			j := &Job{ID: int64(n % 1000), Priority: int64(i % 13)}
			all = append(all, j)
			l.add(j)
		}
		slices.SortStableFunc(all, compareQueueOrder)
		if got := l.jobs(); !slices.Equal(got, all) || l.n != len(all) {
			t.Fatalf("%d jobs in the queue (%d counted), want %d, or in another order", len(got), l.n, len(all))
		}
	})
}
