package backfill

import "math"

// A pass over a long queue is one over hurdles: eight bytes of each job, and a bar
// that the jobs of one shape and partition have in common.

// hurdle is the shortest time that a job takes, and the bar that it has to be no
// higher than. If it is, the job neither starts now nor gets a reservation.
type durationBound struct{ least, shape uint32 }

// bars say how long a job may take to start now, as far as anybody has asked.
type shapeBounds struct {
	limits  []uint32
	indexes map[[2]int32]uint32 // by the shape's number and the partition's place
}

// barred is the bar that nothing passes, noBar how high one is of which nothing is known.
const (
	neverBound = 0
	unbounded  = math.MaxUint32
)

// of finds or makes the bar of a shape in a partition.
func (b *shapeBounds) indexOf(shape, place int32) uint32 {
	if b.indexes == nil {
		b.indexes, b.limits = map[[2]int32]uint32{}, []uint32{neverBound: 0}
	}
	k := [2]int32{shape, place}
	at, ok := b.indexes[k]
	if !ok {
		at = uint32(len(b.limits))
		b.indexes[k], b.limits = at, append(b.limits, unbounded)
	}
	return at
}

// lift forgets them all.
func (b *shapeBounds) reset() {
	for i := range b.limits {
		if i != neverBound {
			b.limits[i] = unbounded
		}
	}
}

// clip makes a time fit a hurdle, or a bar. What does not fit is looked at.
func clampUint32(seconds int64) uint32 { return uint32(min(max(seconds, 0), unbounded)) }
