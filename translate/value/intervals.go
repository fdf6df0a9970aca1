package value

import (
	"cmp"
	"slices"
	"strings"
)

// Interval represents the indexes First, First+Step, ... up to Last. Step is at least 1.
type Interval struct{ First, Last, Step int32 }

// Intervals is a set of array indexes whose size in memory depends on the length of the
// text from which it was parsed, not on the number of indexes. Intervals of step 1 come
// first, sorted and disjoint; nil is the empty set.
type Intervals []Interval

// ArrayIntervals parses indexes, ranges and steps like Array, without %N, and does not
// expand them.
func ArrayIntervals(s string) (Intervals, error) {
	s = strings.Trim(s, blanks)
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	var list Intervals
	for part := range strings.SplitSeq(s, ",") {
		part = strings.Trim(part, blanks)
		if part == "" { // as in Slurm, empty elements are ignored
			continue
		}
		i, err := interval(part)
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	if len(list) == 0 {
		return nil, ErrInvalid
	}
	return list.Normalize(), nil
}

func interval(part string) (Interval, error) {
	span, stepText, stepped := strings.Cut(part, ":")
	low, high, ranged := strings.Cut(span, "-")
	first, err1 := index(low)
	i := Interval{First: first, Last: first, Step: 1}
	var err2, err3 error
	if ranged {
		i.Last, err2 = index(high)
	}
	if stepped {
		i.Step, err3 = index(stepText)
	}
	if err1 != nil || err2 != nil || err3 != nil || stepped && !ranged || i.Last < i.First || i.Step < 1 {
		return i, ErrInvalid
	}
	i.Last -= (i.Last - i.First) % i.Step
	if i.First == i.Last {
		i.Step = 1
	}
	return i, nil
}

// Normalize sorts and merges intervals for Has. It may modify s.
func (s Intervals) Normalize() Intervals {
	slices.SortFunc(s, func(a, b Interval) int {
		return cmp.Or(cmp.Compare(min(a.Step, 2), min(b.Step, 2)), cmp.Compare(a.First, b.First),
			cmp.Compare(a.Last, b.Last), cmp.Compare(a.Step, b.Step))
	})
	out := s[:0]
	for _, i := range s {
		if n := len(out); n > 0 {
			last := &out[n-1]
			if i == *last {
				continue
			}
			if i.Step == 1 && last.Step == 1 && i.First <= last.Last+1 {
				last.Last = max(last.Last, i.Last)
				continue
			}
		}
		out = append(out, i)
	}
	return out
}

// Has reports whether the index is in the set.
func (s Intervals) Has(index int32) bool {
	at, found := slices.BinarySearchFunc(s, index, func(i Interval, index int32) int {
		if i.Step > 1 {
			return 1
		}
		return cmp.Compare(i.First, index)
	})
	if found || at > 0 && index <= s[at-1].Last {
		return true
	}
	for ; at < len(s); at++ {
		i := s[at]
		if i.Step > 1 && index >= i.First && index <= i.Last && (index-i.First)%i.Step == 0 {
			return true
		}
	}
	return false
}

// Single returns the index of a set with one index.
func (s Intervals) Single() (index int32, ok bool) {
	if len(s) != 1 || s[0].First != s[0].Last {
		return 0, false
	}
	return s[0].First, true
}

// expand returns the indexes, sorted and unique.
func (s Intervals) expand() ([]int32, error) {
	count := 0
	for _, i := range s {
		count += int(i.Last-i.First)/int(i.Step) + 1
	}
	if count > maxArrayIndex+1 {
		return nil, ErrInvalid
	}
	list := make([]int32, 0, count)
	for _, i := range s {
		for n := int64(i.First); n <= int64(i.Last); n += int64(i.Step) {
			list = append(list, int32(n))
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
