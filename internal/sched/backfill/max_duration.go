package backfill

import "sort"

// longestSimple returns the maximum duration of a job of a simple shape that starts now, or
// 0 if it cannot start.
func (e *engine) longestSimple(s *requestShape) int64 {
	if s.class.noSummaries {
		until := s.class.servingUntil(e.first)
		return e.lastsUntil(e.first + sort.Search(len(until), func(i int) bool { return int(until[i]) < s.leastNodes }))
	}
	lo, hi := e.first, len(e.at) // enough nodes are free up to slot lo, but not beyond hi
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if s.class.servingThroughout(e.first, mid, e.scratch, s.leastNodes) >= s.leastNodes {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return e.lastsUntil(lo)
}

// lastsUntil returns the time from now until the slot.
func (e *engine) lastsUntil(slot int) int64 {
	switch slot {
	case e.first:
		return 0
	case len(e.at):
		return Forever
	}
	return e.at[slot] - e.now
}
