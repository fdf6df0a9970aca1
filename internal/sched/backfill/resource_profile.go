package backfill

import (
	"slices"
	"sync"
)

// resourceProfile is the free amounts of resources over time: a row for each resource, a
// column for each time slot. Slot i is [at[i], at[i+1]); the last slot has no end.
//
// An exact profile gets a boundary at each start and end of a job or reservation. An
// inexact one has fixed slots, and a job that ends within a slot is counted until the end
// of the slot. Resources are thus never over-committed, but a job may be planned a little
// later than it could start.
type resourceProfile struct {
	at     []int64
	exact  bool
	rows   int
	stride int     // capacity of a row, in columns
	v      []int32 // row by row
}

// newResourceProfile returns a profile with these slots and room for further ones. Its amounts
// are arbitrary.
func newResourceProfile(at []int64, rows int, exact bool, room int) resourceProfile {
	s := resourceProfile{at: at, exact: exact, rows: rows, stride: len(at) + room}
	if exact {
		s.stride += 16 + len(at)/4
	}
	s.v = idleAmounts.get(rows * s.stride)
	return s
}

// amountsPool holds the memory of profiles that are no longer needed. A plan of a large cluster
// needs tens of megabytes for a moment.
type amountsPool struct{ pool sync.Pool }

var idleAmounts amountsPool

// get returns n amounts with arbitrary values.
func (p *amountsPool) get(n int) []int32 {
	if v, ok := p.pool.Get().(*[]int32); ok && cap(*v) >= n {
		return (*v)[:n]
	}
	return make([]int32, n)
}

// releaseMemory makes the memory of the profile, which is not used any more, available to others.
func (s *resourceProfile) releaseMemory() {
	if v := s.v; v != nil {
		s.v = nil
		idleAmounts.pool.Put(&v)
	}
}

// row returns the amounts of row r, one for each slot. It is valid until the
// next split.
func (s *resourceProfile) row(r int) []int32 {
	return s.v[r*s.stride : r*s.stride+len(s.at)]
}

// slotAt returns the slot that contains t, or 0 if t is before all slots.
func (s *resourceProfile) slotAt(t int64) int {
	lo := 0
	for n := len(s.at); n > 1; { // it is one of the n slots from lo on
		half := n / 2
		later := int((t - s.at[lo+half]) >> 63) // -1 if that slot begins after t, else 0
		lo += half &^ later                     // without a branch, which would often be mispredicted
		n -= half
	}
	return lo
}

// slotFrom returns the first slot that begins at t or later, or len(at).
func (s *resourceProfile) slotFrom(t int64) int {
	if t <= s.at[0] {
		return 0
	}
	i := s.slotAt(t)
	if s.at[i] == t {
		return i
	}
	return i + 1
}

// splitAt returns slotFrom(t). It first adds a boundary at t if the profile is exact.
func (s *resourceProfile) splitAt(t int64) int {
	i := s.slotFrom(t)
	if s.exact && t != Forever && i > 0 && (i == len(s.at) || s.at[i] != t) {
		s.insert(i, t)
	}
	return i
}

// insert adds a boundary at t, the beginning of the new slot i. The amounts of the slot are
// those of the slot before it.
func (s *resourceProfile) insert(i int, t int64) {
	if len(s.at) == s.stride {
		s.grow()
	}
	n := len(s.at)
	s.at = slices.Insert(s.at, i, t)
	for r := range s.rows {
		row := s.v[r*s.stride : r*s.stride+n+1]
		if n < 8 { // a sparse profile: a loop takes less time than a call of copy for each row
			for k := n; k >= i; k-- {
				row[k] = row[k-1]
			}
			continue
		}
		copy(row[i+1:], row[i:n])
		row[i] = row[i-1]
	}
}

func (s *resourceProfile) grow() {
	stride := 2*s.stride + 16
	v := make([]int32, s.rows*stride)
	for r := range s.rows {
		copy(v[r*stride:], s.row(r))
	}
	s.stride, s.v = stride, v
}

// add adds d to row r in the slots from..to-1.
func (s *resourceProfile) add(r, from, to int, d int32) {
	row := s.v[r*s.stride+from : r*s.stride+max(from, to)]
	for i := range row {
		row[i] += d
	}
}

// minimum returns the smallest amount of row r in the slots from..to-1.
func (s *resourceProfile) minimum(r, from, to int) int32 {
	row := s.v[r*s.stride+from : r*s.stride+to]
	m := row[0]
	for _, x := range row[1:] {
		m = min(m, x)
	}
	return m
}

// lastBelow returns the last of the slots from..to-1 in which row is below
// need, or -1.
func lastBelow(row []int32, from, to int, need int32) int {
	for i := to - 1; i >= from; i-- {
		if row[i] < need {
			return i
		}
	}
	return -1
}
