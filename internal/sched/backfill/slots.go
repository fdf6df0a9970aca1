package backfill

import (
	"math"
	"slices"
)

// Slots of a series that is not exact: so many of one width for the time the
// queue is expected to last, finer ones before and ever wider ones after them.
// Every width is a power of two and every boundary a multiple of it, so that
// what was rounded up to a boundary is not rounded further in a later plan.
const (
	fineSlots = 64
	evenSlots = 256
	farSlots  = 4 // of each width
	fineParts = 8 // fine slots in an even one
	// exactCells is how many amounts an exact series may come to keep.
	exactCells = 1 << 14
	longest    = int64(10 * 365 * 86400)
)

// boundaries chooses the slots for a snapshot, and whether they are exact.
func boundaries(s *Snapshot) ([]int64, bool) {
	if s.Options.slots != nil {
		return *s.Options.slots, false
	}
	at := []int64{s.Now}
	var fixed []int64
	for i := range s.Blocks {
		fixed = append(fixed, s.Blocks[i].Start, s.Blocks[i].End)
	}
	for i := range s.Running {
		at = append(at, max(s.Running[i].End, s.Now+1))
	}
	reserved := len(s.Pending)
	if s.Options.Reservations > 0 && !s.Options.PlanAll {
		reserved = min(reserved, s.Options.Reservations)
	}
	if !s.Options.coarse && (len(at)+2*reserved)*(len(s.Nodes)+1) <= exactCells {
		for i := range s.Pending {
			fixed = append(fixed, s.Pending[i].Begin)
		}
		return tidy(append(at, fixed...), s.Now), true
	}
	at = at[:1]
	even := powerAbove(horizon(s) / evenSlots)
	fine := max(1, even/fineParts)
	until := s.Now
	grow := func(slots int, width int64) {
		for until += int64(slots) * width; at[len(at)-1] < until; {
			at = append(at, (at[len(at)-1]/width+1)*width)
		}
	}
	grow(fineSlots, fine)
	grow(evenSlots, even)
	for width := 2 * even; until-s.Now < longest; width *= 2 {
		grow(farSlots, width)
	}
	return tidy(append(at, fixed[:min(len(fixed), 64)]...), s.Now), false
}

// powerAbove is the least power of two that is larger than n.
func powerAbove(n int64) int64 {
	p := int64(1)
	for p <= n {
		p *= 2
	}
	return p
}

// tidy sorts the boundaries from now on, each once.
func tidy(at []int64, now int64) []int64 {
	at = slices.DeleteFunc(at, func(t int64) bool { return t < now || t == Forever })
	slices.Sort(at)
	return slices.Compact(at)
}

// horizon estimates how long the queue will last, in seconds. It becomes no
// longer by jobs starting or ending.
func horizon(s *Snapshot) int64 {
	cpus, work := 1.0, 0.0
	for i := range s.Nodes {
		cpus += float64(s.Nodes[i].CPUs)
	}
	add := func(cpus int, duration int64, times int) {
		if duration < longest {
			work += float64(cpus) * float64(duration) * float64(times)
		}
	}
	for i := range s.Running {
		r := &s.Running[i]
		for k := range r.Held {
			add(r.Held[k].CPUs.Len(), r.End-s.Now, 1)
		}
	}
	for i := range s.Pending {
		if j := &s.Pending[i]; j.Blocked == "" {
			add(max(j.Tasks*j.perTask(), int(j.leastCPUs())*j.fewestNodes()), j.Duration, max(1, min(j.Copies, CopyReservations)))
		}
	}
	return int64(math.Min(work/cpus*1.25, float64(longest)))
}
