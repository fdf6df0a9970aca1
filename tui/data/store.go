package data

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// Store holds the rows of a watch of jobs. A status.Job has a hundred fields and
// takes 1.3 kB; a store holds only the watched fields, each in a column, and every
// text once, so that 100,000 jobs take about 20 MB. It is not safe for concurrent
// use.
type Store struct {
	columns  []column
	index    map[string]int // columns by JSON name
	slots    map[int64]int32
	free     []int32
	rows     int32 // slots in use or free
	capacity int32 // slots for which the columns have memory

	texts []string
	ids   map[string]uint32

	// Time is the server's clock at the last event, Unix seconds.
	Time int64
	// Complete reports whether the first list has arrived as a whole.
	Complete bool
}

// column is one field of all rows. One of the slices is in use, by the field's type.
type column struct {
	status.Field
	text  []uint32
	large []int64
	small []int32
	flag  []bool
}

// NewStore returns an empty store of the fields with these JSON names and of id.
// Unknown names are ignored.
func NewStore(fields []string) *Store {
	s := &Store{index: map[string]int{}}
	s.reset()
	for _, f := range status.Fields {
		if f.Name == "id" || slices.Contains(fields, f.Name) {
			s.index[f.Name] = len(s.columns)
			s.columns = append(s.columns, column{Field: f})
		}
	}
	return s
}

// reset removes all rows and texts.
func (s *Store) reset() {
	s.slots, s.ids = map[int64]int32{}, map[string]uint32{"": 0}
	s.texts, s.free, s.rows, s.capacity = []string{""}, nil, 0, 0
	for i := range s.columns {
		c := &s.columns[i]
		*c = column{Field: c.Field}
	}
}

// Len returns the number of rows.
func (s *Store) Len() int { return len(s.slots) }

// HasField reports whether the store holds the field.
func (s *Store) HasField(field string) bool { _, ok := s.index[field]; return ok }

// Slot returns the slot of the job's row.
func (s *Store) Slot(id int64) (int32, bool) { slot, ok := s.slots[id]; return slot, ok }

// Slots appends the slots of all rows, in no order, to buf[:0].
func (s *Store) Slots(buf []int32) []int32 {
	buf = buf[:0]
	for _, slot := range s.slots {
		buf = append(buf, slot)
	}
	return buf
}

// Change describes what an event did to the rows.
type Change struct {
	All     bool    // every row may have changed
	Changed []int32 // slots of new and changed rows
	Gone    []Gone
	More    bool // the next event continues this one
}

// Gone is a row that was removed. A row of Changed may reuse its slot.
type Gone struct {
	ID   int64
	Slot int32
}

// Apply applies an event to the rows.
func (s *Store) Apply(e *status.JobEvent) Change {
	s.Time = e.Time
	c := Change{
		All:  e.Type == status.EventSync || e.Type == status.EventMore,
		More: e.Revision == "" && e.Type != status.EventMark,
	}
	if e.Type == status.EventSync {
		s.reset()
	}
	for _, id := range e.Gone {
		if slot, ok := s.slots[id]; ok {
			delete(s.slots, id)
			s.free = append(s.free, slot)
			c.Gone = append(c.Gone, Gone{id, slot})
		}
	}
	for i := range e.Items {
		c.Changed = append(c.Changed, s.set(&e.Items[i]))
	}
	s.Complete = s.Complete || c.All && !c.More
	if len(s.texts) > 4*len(s.slots)+1<<14 {
		s.compact()
	}
	return c
}

// set stores a row and returns its slot.
func (s *Store) set(j *status.Job) int32 {
	slot, ok := s.slots[j.ID]
	switch {
	case ok:
	case len(s.free) > 0:
		slot = s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
	default:
		if s.rows == s.capacity {
			s.grow()
		}
		slot = s.rows
		s.rows++
	}
	s.slots[j.ID] = slot
	for i := range s.columns {
		c := &s.columns[i]
		switch {
		case c.Text != nil:
			c.text[slot] = s.intern(*c.Text(j))
		case c.Large != nil:
			c.large[slot] = *c.Large(j)
		case c.Small != nil:
			c.small[slot] = *c.Small(j)
		default:
			c.flag[slot] = *c.Flag(j)
		}
	}
	return slot
}

// grow doubles the capacity of the columns. append would add only a quarter to a
// long slice and copy each column of a long queue a dozen times.
func (s *Store) grow() {
	s.capacity = max(64, 2*s.capacity)
	for i := range s.columns {
		switch c := &s.columns[i]; {
		case c.Text != nil:
			c.text = grownSlice(c.text, s.capacity)
		case c.Large != nil:
			c.large = grownSlice(c.large, s.capacity)
		case c.Small != nil:
			c.small = grownSlice(c.small, s.capacity)
		default:
			c.flag = grownSlice(c.flag, s.capacity)
		}
	}
}

func grownSlice[T any](old []T, n int32) []T {
	out := make([]T, n)
	copy(out, old)
	return out
}

// intern returns the number of a text, which it stores if it is new.
func (s *Store) intern(text string) uint32 {
	if id, ok := s.ids[text]; ok {
		return id
	}
	text = strings.Clone(text) // it may share the memory of a whole event
	id := uint32(len(s.texts))
	s.texts = append(s.texts, text)
	s.ids[text] = id
	return id
}

// compact removes texts that no row has any more.
func (s *Store) compact() {
	old := s.texts
	s.texts, s.ids = []string{""}, map[string]uint32{"": 0}
	for i := range s.columns {
		if c := &s.columns[i]; c.text != nil {
			for _, slot := range s.slots {
				c.text[slot] = s.intern(old[c.text[slot]])
			}
			for _, slot := range s.free {
				c.text[slot] = 0
			}
		}
	}
}

// ID returns the id of the job in the slot.
func (s *Store) ID(slot int32) int64 { return s.columns[s.index["id"]].large[slot] }

// Text returns a field of text, empty if the store does not hold it.
func (s *Store) Text(slot int32, field string) string {
	if i, ok := s.index[field]; ok && s.columns[i].text != nil {
		return s.texts[s.columns[i].text[slot]]
	}
	return ""
}

// Texts returns a column of text: the number of the text in each slot, and all
// texts by number. numbers is nil if the store does not hold the field. Callers
// must not change the slices; they are valid until the next Apply.
func (s *Store) Texts(field string) (numbers []uint32, texts []string) {
	if i, ok := s.index[field]; ok {
		return s.columns[i].text, s.texts
	}
	return nil, s.texts
}

// Number returns a field that is a number, 0 if the store does not hold it.
func (s *Store) Number(slot int32, field string) int64 {
	i, ok := s.index[field]
	if !ok {
		return 0
	}
	switch c := &s.columns[i]; {
	case c.large != nil:
		return c.large[slot]
	case c.small != nil:
		return int64(c.small[slot])
	}
	return 0
}

// FieldSet is a set of fields of a store, looked up once.
type FieldSet []int

// Select returns the set of these fields, without those that the store does not
// hold.
func (s *Store) Select(fields []string) FieldSet {
	var p FieldSet
	for _, f := range fields {
		if i, ok := s.index[f]; ok && !slices.Contains(p, i) {
			p = append(p, i)
		}
	}
	return p
}

// Load sets the selected fields of j from a row.
func (s *Store) Load(j *status.Job, slot int32, p FieldSet) {
	for _, i := range p {
		s.columns[i].load(s, j, slot)
	}
}

// Job returns a row with all the fields that the store holds.
func (s *Store) Job(slot int32) status.Job {
	var j status.Job
	for i := range s.columns {
		s.columns[i].load(s, &j, slot)
	}
	return j
}

// Find returns the row for a job id in a store that holds only the rows that match
// the id: the row with exactly that id, or else (for the id of an array) the first.
func (s *Store) Find(id string) (status.Job, bool) {
	slots := s.Slots(nil)
	if len(slots) == 0 {
		return status.Job{}, false
	}
	best := slices.MinFunc(slots, func(a, b int32) int { return cmp.Compare(s.ID(a), s.ID(b)) })
	for _, slot := range slots {
		if strconv.FormatInt(s.ID(slot), 10) == id {
			best = slot
		}
	}
	return s.Job(best), true
}

// Equal reports whether two rows have equal values in the selected fields.
func (s *Store) Equal(a, b int32, p FieldSet) bool {
	for _, i := range p {
		switch c := &s.columns[i]; {
		case c.text != nil:
			if c.text[a] != c.text[b] {
				return false
			}
		case c.large != nil:
			if c.large[a] != c.large[b] {
				return false
			}
		case c.small != nil:
			if c.small[a] != c.small[b] {
				return false
			}
		case c.flag[a] != c.flag[b]:
			return false
		}
	}
	return true
}

func (c *column) load(s *Store, j *status.Job, slot int32) {
	switch {
	case c.text != nil:
		*c.Text(j) = s.texts[c.text[slot]]
	case c.large != nil:
		*c.Large(j) = c.large[slot]
	case c.small != nil:
		*c.Small(j) = c.small[slot]
	case c.flag != nil:
		*c.Flag(j) = c.flag[slot]
	}
}
