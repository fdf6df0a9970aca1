package backfill

import "math"

// A pass over a long queue is one over hurdles: eight bytes of each job, and a bar
// that the jobs of one shape and partition have in common.

// hurdle is the shortest time that a job takes, and the bar that it has to be no
// higher than. If it is, the job neither starts now nor gets a reservation.
type hurdle struct{ least, bar uint32 }

// bars say how long a job may take to start now, as far as anybody has asked.
type bars struct {
	at    []uint32
	known map[[2]int32]uint32 // by the shape's number and the partition's place
}

// barred is the bar that nothing passes, noBar how high one is of which nothing is known.
const (
	barred = 0
	noBar  = math.MaxUint32
)

// of finds or makes the bar of a shape in a partition.
func (b *bars) of(shape, place int32) uint32 {
	if b.known == nil {
		b.known, b.at = map[[2]int32]uint32{}, []uint32{barred: 0}
	}
	k := [2]int32{shape, place}
	at, ok := b.known[k]
	if !ok {
		at = uint32(len(b.at))
		b.known[k], b.at = at, append(b.at, noBar)
	}
	return at
}

// lift forgets them all.
func (b *bars) lift() {
	for i := range b.at {
		if i != barred {
			b.at[i] = noBar
		}
	}
}

// clip makes a time fit a hurdle, or a bar. What does not fit is looked at.
func clip(seconds int64) uint32 { return uint32(min(max(seconds, 0), noBar)) }
