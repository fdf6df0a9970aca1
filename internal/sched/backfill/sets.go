package backfill

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// CPUSet is a set of CPU numbers. The zero value is empty. Methods that change
// a set have pointer receivers and may grow it; copies made by assignment
// share storage, so use Clone before changing one.
type CPUSet struct{ words []uint64 }

// NodeSet is a set of node numbers.
type NodeSet struct{ CPUSet }

// Add adds n, which must not be negative.
func (s *CPUSet) Add(n int) {
	for n/64 >= len(s.words) {
		s.words = append(s.words, 0)
	}
	s.words[n/64] |= 1 << (n % 64)
}

// AddRange adds the numbers from..to-1.
func (s *CPUSet) AddRange(from, to int) {
	if from >= to {
		return
	}
	for len(s.words) <= (to-1)/64 {
		s.words = append(s.words, 0)
	}
	for w := from / 64; w <= (to-1)/64; w++ {
		mask := ^uint64(0)
		if w == from/64 {
			mask &= ^uint64(0) << (from % 64)
		}
		if end := to - w*64; end < 64 {
			mask &= 1<<end - 1
		}
		s.words[w] |= mask
	}
}

// Remove removes n.
func (s *CPUSet) Remove(n int) {
	if n/64 < len(s.words) {
		s.words[n/64] &^= 1 << (n % 64)
	}
}

// Has reports whether n is in the set.
func (s CPUSet) Has(n int) bool {
	return n >= 0 && n/64 < len(s.words) && s.words[n/64]&(1<<(n%64)) != 0
}

// word returns the members 64*w to 64*w+63 as bits.
func (s CPUSet) word(w int) uint64 {
	if w < len(s.words) {
		return s.words[w]
	}
	return 0
}

// Len returns the number of members.
func (s CPUSet) Len() int {
	c := 0
	for _, w := range s.words {
		c += bits.OnesCount64(w)
	}
	return c
}

// Clone returns a copy that does not share storage with s.
func (s CPUSet) Clone() CPUSet {
	return CPUSet{append([]uint64(nil), s.words...)}
}

// Union adds every member of o.
func (s *CPUSet) Union(o CPUSet) {
	for len(s.words) < len(o.words) {
		s.words = append(s.words, 0)
	}
	for i, w := range o.words {
		s.words[i] |= w
	}
}

// Subtract removes every member of o.
func (s *CPUSet) Subtract(o CPUSet) {
	for i := range min(len(s.words), len(o.words)) {
		s.words[i] &^= o.words[i]
	}
}

// Intersects reports whether the sets have a common member.
func (s CPUSet) Intersects(o CPUSet) bool {
	for i := range min(len(s.words), len(o.words)) {
		if s.words[i]&o.words[i] != 0 {
			return true
		}
	}
	return false
}

// Members returns the members in ascending order.
func (s CPUSet) Members() []int {
	out := make([]int, 0, s.Len())
	for i, w := range s.words {
		for ; w != 0; w &= w - 1 {
			out = append(out, i*64+bits.TrailingZeros64(w))
		}
	}
	return out
}

// String returns the set in the list format of cpuset(7): "0-3,8".
func (s CPUSet) String() string {
	var b strings.Builder
	m := s.Members()
	for i := 0; i < len(m); {
		j := i
		for j+1 < len(m) && m[j+1] == m[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(m[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(m[j]))
		}
		i = j + 1
	}
	return b.String()
}

// maxCPU limits the numbers that ParseCPUSet accepts, and so the memory of a set.
const maxCPU = 1 << 16

// ParseCPUSet parses the form that String returns. An empty text is the empty set.
func ParseCPUSet(text string) (CPUSet, error) {
	var s CPUSet
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			return CPUSet{}, fmt.Errorf("invalid CPU list %q", text)
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(to); err != nil {
				return CPUSet{}, fmt.Errorf("invalid CPU list %q", text)
			}
		}
		if a < 0 || b < a || b >= maxCPU {
			return CPUSet{}, fmt.Errorf("invalid CPU list %q", text)
		}
		s.AddRange(a, b+1)
	}
	return s, nil
}
