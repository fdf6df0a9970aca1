package backfill

import (
	"math"
	"slices"
)

// Slots of an inexact profile. Every width is a power of two and every boundary a multiple
// of it, so that a time that was rounded up to a boundary is not rounded further in a
// later plan.
const (
	fineSlots = 64
	evenSlots = 256
	farSlots  = 4 // of each width
	fineParts = 8 // fine slots in an even one
	// exactCells is the maximum number of amounts of an exact profile.
	exactCells = 1 << 14
	maxHorizon = int64(10 * 365 * 86400)
)

// boundaries returns the slots for a snapshot, and whether they are exact. Inexact slots
// depend on the length of the queue if byQueue is set.
func boundaries(s *Snapshot, w workload, byQueue bool) ([]int64, bool) {
	at := []int64{s.Now}
	fixed := reservationTimes(s)
	for _, r := range w.running {
		at = append(at, max(r.End, s.Now+max(1, s.Overtime)))
	}
	if s.fitsExactly(len(w.running), len(w.pending)) {
		for _, j := range w.pending {
			fixed = append(fixed, j.Begin)
		}
		return sortedTimes(append(at, fixed...), s.Now), true
	}
	fixed = fixed[:min(len(fixed), 64)]
	if !byQueue {
		return sortedTimes(append(geometricSlots(s.Now), fixed...), s.Now), false
	}
	g := slotBuilder{at: at[:1], until: s.Now}
	even := powerAbove(horizon(s, w) / evenSlots)
	g.grow(fineSlots, max(1, even/fineParts))
	g.grow(evenSlots, even)
	for width := 2 * even; g.until-s.Now < maxHorizon; width *= 2 {
		g.grow(farSlots, width)
	}
	return sortedTimes(append(g.at, fixed...), s.Now), false
}

// plansSparsely reports whether the policy allows so few reservations for each partition
// that they are planned on a sparse profile.
func plansSparsely(o *Policy) bool { return o.Reservations > 0 && o.Reservations <= maxSparse }

// geometricSlots returns slots that do not depend on the queue, so that jobs at
// its end do not change the reservations of others. They get wider with their
// distance from now.
func geometricSlots(now int64) []int64 {
	g := slotBuilder{at: []int64{now}, until: now}
	g.grow(fineSlots, octaveLeast/2)
	width := octaveLeast
	for ; width <= octaveMost; width *= 2 {
		g.grow(octaveSlots, width)
	}
	for ; g.until-now < maxHorizon; width *= 2 {
		g.grow(farSlots, width)
	}
	return g.at
}

// Slots of geometricSlots: octaveSlots of each width from octaveLeast to octaveMost, and a
// few wider ones.
const (
	octaveSlots = 20
	octaveLeast = int64(8)
	octaveMost  = int64(1 << 16)
)

// slotBuilder builds a list of slots.
type slotBuilder struct {
	at    []int64
	until int64
}

// grow adds slots of the width, with boundaries at multiples of it.
func (g *slotBuilder) grow(slots int, width int64) {
	for g.until += int64(slots) * width; g.at[len(g.at)-1] < g.until; {
		g.at = append(g.at, (g.at[len(g.at)-1]/width+1)*width)
	}
}

// reservationTimes returns when advance reservations begin and end.
func reservationTimes(s *Snapshot) []int64 {
	var out []int64
	for i := range s.AdvanceReservations {
		out = append(out, s.AdvanceReservations[i].Start, s.AdvanceReservations[i].End)
	}
	return out
}

// powerAbove returns the smallest power of two that is greater than n.
func powerAbove(n int64) int64 {
	p := int64(1)
	for p <= n {
		p *= 2
	}
	return p
}

// sortedTimes returns the times at or after now, sorted and without duplicates. It modifies
// at.
func sortedTimes(at []int64, now int64) []int64 {
	at = slices.DeleteFunc(at, func(t int64) bool { return t < now || t == Forever })
	slices.Sort(at)
	return slices.Compact(at)
}

// horizon estimates how long the queue will last, in seconds. It does not grow
// when jobs start or end.
func horizon(s *Snapshot, w workload) int64 {
	cpus, work := 1.0, 0.0
	for i := range s.Nodes {
		cpus += float64(s.Nodes[i].CPUs)
	}
	add := func(cpus int, duration int64, times int) {
		if duration < maxHorizon {
			work += float64(cpus) * float64(duration) * float64(times)
		}
	}
	for _, r := range w.running {
		for k := range r.Allocation {
			add(r.Allocation[k].CPUs.Len(), max(r.End-s.Now, 0), 1)
		}
	}
	for _, j := range w.pending {
		if j.Blocked == "" {
			add(
				max(j.Tasks*j.perTask(), int(j.leastCPUs())*j.fewestNodes()),
				j.Duration,
				max(1, min(j.Copies, MaxCopyReservations)),
			)
		}
	}
	return int64(math.Min(work/cpus*1.25, float64(maxHorizon)))
}
