package backfill

import "sort"

// longestSimple returns the maximum duration of a job of a simple shape that starts now, or
// 0 if it cannot start. The shape has the class and needs at least that many nodes.
func (e *engine) longestSimple(c *demandClass, leastNodes int) int64 {
	if c.noSummaries {
		until := c.servingUntil(e.first)
		return e.lastsUntil(e.first + sort.Search(len(until), func(i int) bool { return int(until[i]) < leastNodes }))
	}
	lo, hi := e.first, len(e.at) // enough nodes are free up to slot lo, but not beyond hi
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if c.servingThroughout(e.first, mid, e.scratch, leastNodes) >= leastNodes {
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
