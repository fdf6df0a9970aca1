package backfill

import (
	"iter"
	"math/bits"
)

// memberships holds, for each node, the numbers of the demand classes that it may satisfy, as
// a bitmap: a change of the node then reads no other class.
type memberships struct {
	classes int
	words   int // of one node's bitmap
	bits    []uint64
}

// addClass makes room for one more class and returns its number. Classes are numbered in the
// order in which they are added.
func (m *memberships) addClass(nodes int) int {
	if m.classes == m.words*64 {
		wider := make([]uint64, nodes*(m.words+1))
		for i := range nodes {
			copy(wider[i*(m.words+1):], m.bits[i*m.words:(i+1)*m.words])
		}
		m.words, m.bits = m.words+1, wider
	}
	m.classes++
	return m.classes - 1
}

// set sets whether the node may satisfy the class.
func (m *memberships) set(node, class int, may bool) {
	p, bit := &m.bits[node*m.words+class/64], uint64(1)<<(class%64)
	if *p &^= bit; may {
		*p |= bit
	}
}

// of yields the numbers of the classes that the node may satisfy.
func (m *memberships) of(node int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for w, x := range m.bits[node*m.words : (node+1)*m.words] {
			for ; x != 0; x &= x - 1 {
				if !yield(w*64 + bits.TrailingZeros64(x)) {
					return
				}
			}
		}
	}
}
