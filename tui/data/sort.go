package data

import (
	"cmp"
	"slices"
)

const (
	// minRankedRows is the number of rows from which on ranks make sorting faster.
	minRankedRows = 1000
	// maxRankedTexts bounds the different texts of a column that gets ranks. With
	// more of them, computing the ranks costs as much as sorting.
	maxRankedTexts = 4096
)

// rankedRow is a row with its rank by the first keys.
type rankedRow struct {
	rank uint64
	slot int32
}

// Sort sorts slots. A long queue has few partitions, states and users: Sort
// computes the ranks of the rows by such keys once, so that most comparisons
// compare two numbers.
func (o *Order) Sort(slots []int32) {
	if len(slots) < minRankedRows {
		slices.SortFunc(slots, o.Compare)
		return
	}
	list := make([]rankedRow, len(slots))
	for i, slot := range slots {
		list[i].slot = slot
	}
	first, span := 0, uint64(1)
	for first < len(o.keys) {
		n := o.rank(&o.keys[first], list)
		if n == 0 {
			break
		}
		first++
		if span *= n; span > 1<<40 {
			break // another factor could overflow
		}
	}
	slices.SortFunc(list, func(a, b rankedRow) int {
		if c := cmp.Compare(a.rank, b.rank); c != 0 || a.slot == b.slot {
			return c
		}
		return o.compareFrom(first, a.slot, b.slot)
	})
	for i := range list {
		slots[i] = list[i].slot
	}
}

// rank refines the ranks of list by a key, and returns how many values the key
// has. It returns 0 and leaves the ranks alone if the key is not a column of few
// different texts.
func (o *Order) rank(k *orderKey, list []rankedRow) uint64 {
	if len(k.fields) != 1 || len(k.Column.Fields) != 1 || o.store.columns[k.fields[0]].text == nil {
		return 0
	}
	numbers := o.store.columns[k.fields[0]].text
	// examples has one row for each text, in the order of the key.
	examples := make([]int32, 0, 16)
	seen := make([]bool, len(o.store.texts))
	for i := range list {
		if slot := list[i].slot; !seen[numbers[slot]] {
			if len(examples) == maxRankedTexts {
				return 0
			}
			seen[numbers[slot]] = true
			examples = append(examples, slot)
		}
	}
	compare := func(a, b int32) int { return o.compareKey(k, a, b) }
	slices.SortFunc(examples, compare)
	places := make([]uint32, len(o.store.texts))
	place := uint32(0)
	for i, slot := range examples {
		if i > 0 && compare(examples[i-1], slot) != 0 {
			place++ // different texts may be equal by the key
		}
		places[numbers[slot]] = place
	}
	n := uint64(place) + 1
	for i := range list {
		list[i].rank = list[i].rank*n + uint64(places[numbers[list[i].slot]])
	}
	return n
}
