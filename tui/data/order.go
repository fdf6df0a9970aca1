package data

import (
	"cmp"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// SortKey is one column to sort by.
type SortKey struct {
	Column     *format.Column[status.Job]
	Descending bool
}

// Order is an order of the rows of a store: by its keys, and then by id, so that
// it does not depend on the order before. It is not safe for concurrent use.
type Order struct {
	store    *Store
	settings *format.Settings
	keys     []orderKey
	id       FieldSet
	a, b     status.Job
}

type orderKey struct {
	SortKey
	fields FieldSet
}

// NewOrder returns an order by keys, the first one being the most important.
func NewOrder(s *Store, keys []SortKey, settings *format.Settings) *Order {
	id := s.Select([]string{"id", "arrayJobID", "arrayTaskID", "hetJobID", "hetOffset"})
	o := &Order{store: s, settings: settings, id: id}
	for _, k := range keys {
		if k.Column != nil {
			o.keys = append(o.keys, orderKey{k, s.Select(k.Column.Fields)})
		}
	}
	return o
}

// Compare compares two rows.
func (o *Order) Compare(a, b int32) int {
	if a == b {
		return 0
	}
	return o.compareFrom(0, a, b)
}

// compareFrom compares two rows whose first keys, as many as first says, are equal.
func (o *Order) compareFrom(first int, a, b int32) int {
	for i := range o.keys[first:] {
		if c := o.compareKey(&o.keys[first+i], a, b); c != 0 {
			return c
		}
	}
	o.store.Load(&o.a, a, o.id)
	o.store.Load(&o.b, b, o.id)
	return format.CompareID(&o.a, &o.b)
}

func (o *Order) compareKey(k *orderKey, a, b int32) int {
	if len(k.fields) > 0 && o.store.Equal(a, b, k.fields) {
		return 0
	}
	o.store.Load(&o.a, a, k.fields)
	o.store.Load(&o.b, b, k.fields)
	return k.compare(&o.a, &o.b, o.settings)
}

func (k *orderKey) compare(a, b *status.Job, s *format.Settings) int {
	if missing := k.Column.Missing; missing != nil && missing(a) != missing(b) {
		if missing(a) {
			return 1
		}
		return -1
	}
	var c int
	switch {
	case k.Column.Compare != nil:
		c = k.Column.Compare(a, b)
	case k.Column.Value != nil:
		c = cmp.Compare(k.Column.Value(a, s), k.Column.Value(b, s))
	default:
		c = cmp.Compare(string(k.Column.Append(nil, a, s)), string(k.Column.Append(nil, b, s)))
	}
	if k.Descending {
		return -c
	}
	return c
}

// Merge inserts the slots of add, which need not be in order, into sorted.
func (o *Order) Merge(sorted, add []int32) []int32 {
	if len(add) == 0 {
		return sorted
	}
	o.Sort(add)
	n := len(sorted)
	sorted = append(sorted, add...)
	// From the end, so that no slot is overwritten before it has moved.
	for at, i, j := len(sorted)-1, n-1, len(add)-1; j >= 0; at-- {
		if i >= 0 && o.Compare(sorted[i], add[j]) > 0 {
			sorted[at] = sorted[i]
			i--
		} else {
			sorted[at] = add[j]
			j--
		}
	}
	return sorted
}
