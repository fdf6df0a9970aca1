package backfill

import "math"

// For most jobs, a cycle over a long queue reads only eight bytes (durationBound), and a
// bound that the jobs of one request shape and partition share (shapeBounds).

// durationBound is the shortest duration of a job and the index of its shape's
// bound. If the duration is above the bound, the job neither starts now nor
// gets a reservation.
type durationBound struct{ least, shape uint32 }

// shapeBounds holds, for each shape and partition, an upper bound for the duration of a job
// that starts now, as far as it was computed.
type shapeBounds struct {
	limits  []uint32
	shapes  []boundedShape      // of each limit
	indexes map[[2]int32]uint32 // by the shape's number and the partition's index
}

// boundedShape is what a bound depends on. It copies what the shape has, so that all of them
// are close together in memory.
type boundedShape struct {
	class          *demandClass
	leastTasks     int64
	leastTotalCPUs int32
	leastNodes     int32
	number         int32 // of the shape
	partition      int32 // see planner.partitionIndex
	reserved       bool  // the shape is that of jobs in an advance reservation
}

// neverBound is the index of a bound that every job exceeds; unbounded is the value of a
// bound that was not computed.
const (
	neverBound = 0
	unbounded  = math.MaxUint32
)

// indexOf returns the index of the bound of a shape in a partition, which it
// adds if it is missing.
func (b *shapeBounds) indexOf(s *requestShape, partition int32) uint32 {
	if b.indexes == nil {
		b.indexes, b.limits, b.shapes = map[[2]int32]uint32{}, []uint32{neverBound: 0}, make([]boundedShape, 1)
	}
	k := [2]int32{s.number, partition}
	at, ok := b.indexes[k]
	if !ok {
		at = uint32(len(b.limits))
		b.indexes[k], b.limits = at, append(b.limits, unbounded)
		b.shapes = append(b.shapes, boundedShape{
			class: s.class, leastTasks: s.leastTasks, leastTotalCPUs: s.leastTotalCPUs,
			leastNodes: int32(s.leastNodes), number: s.number, partition: partition, reserved: s.Reservation != "",
		})
	}
	return at
}

// reset makes all bounds unbounded.
func (b *shapeBounds) reset() {
	for i := range b.limits {
		if i != neverBound {
			b.limits[i] = unbounded
		}
	}
}

// clampUint32 returns the number of seconds, limited to the range of a bound. Jobs with a
// longer duration are always considered.
func clampUint32(seconds int64) uint32 { return uint32(min(max(seconds, 0), unbounded)) }
