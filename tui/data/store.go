package data

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// Store is the rows of a watch. A status.Job has a hundred members and takes
// 1.3 kB; a store keeps the watched ones only, each in a column, and every
// text once, so that 100,000 jobs take some 20 MB. It is for one goroutine.
type Store struct {
	columns  []column
	index    map[string]int // columns by JSON name
	slots    map[int64]int32
	free     []int32
	rows     int32 // slots in use or free
	capacity int32 // slots that the columns have room for

	texts []string
	ids   map[string]uint32

	// Time is the server's clock at the last event, Unix seconds.
	Time int64
	// Complete tells that the first list has come in whole.
	Complete bool
}

// column is one field of all rows; one of the slices is used.
type column struct {
	status.Field
	text  []uint32
	large []int64
	small []int32
	flag  []bool
}

// NewStore makes an empty store of the fields with these JSON names; id is
// always among them, and unknown names are left out.
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

// reset forgets all rows and texts.
func (s *Store) reset() {
	s.slots, s.ids = map[int64]int32{}, map[string]uint32{"": 0}
	s.texts, s.free, s.rows, s.capacity = []string{""}, nil, 0, 0
	for i := range s.columns {
		c := &s.columns[i]
		*c = column{Field: c.Field}
	}
}

// Len is the number of rows.
func (s *Store) Len() int { return len(s.slots) }

// Has tells whether the field is kept.
func (s *Store) HasField(field string) bool { _, ok := s.index[field]; return ok }

// Slot is where the job's row is.
func (s *Store) Slot(id int64) (int32, bool) { slot, ok := s.slots[id]; return slot, ok }

// Slots lists the rows, in no order, into buf.
func (s *Store) Slots(buf []int32) []int32 {
	buf = buf[:0]
	for _, slot := range s.slots {
		buf = append(buf, slot)
	}
	return buf
}

// Change is what an event did to the rows.
type Change struct {
	All     bool    // everything may be another
	Changed []int32 // slots of new and changed rows
	Gone    []Gone
	More    bool // the event goes on in the next one
}

// Gone is a row that is no longer there; its slot may be used again by a row
// of Changed.
type Gone struct {
	ID   int64
	Slot int32
}

// Apply takes an event in.
func (s *Store) Apply(e *status.JobEvent) Change {
	s.Time = e.Time
	c := Change{All: e.Type == status.EventSync || e.Type == status.EventMore, More: e.Revision == "" && e.Type != status.EventMark}
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

// grow doubles the room: append adds a quarter to long slices, so that each
// column of a long queue would be copied a dozen times.
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

func (s *Store) intern(text string) uint32 {
	if id, ok := s.ids[text]; ok {
		return id
	}
	text = strings.Clone(text) // it may be a part of a whole event
	id := uint32(len(s.texts))
	s.texts = append(s.texts, text)
	s.ids[text] = id
	return id
}

// compact forgets texts that no row has any more.
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

// ID is the id of the job in the slot.
func (s *Store) ID(slot int32) int64 { return s.columns[s.index["id"]].large[slot] }

// Text is a field of text; empty if it is not kept.
func (s *Store) Text(slot int32, field string) string {
	if i, ok := s.index[field]; ok && s.columns[i].text != nil {
		return s.texts[s.columns[i].text[slot]]
	}
	return ""
}

// Texts is a column of text as numbers of texts, by slot, and the texts by
// number; nil if it is not kept. Callers must not change them, nor keep them
// over an event.
func (s *Store) Texts(field string) (numbers []uint32, texts []string) {
	if i, ok := s.index[field]; ok {
		return s.columns[i].text, s.texts
	}
	return nil, s.texts
}

// Number is a field that is a number; 0 if it is not kept.
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

// Picked are some fields of a store, found once.
type FieldSet []int

// Pick finds fields; those that are not kept are left out.
func (s *Store) Select(fields []string) FieldSet {
	var p FieldSet
	for _, f := range fields {
		if i, ok := s.index[f]; ok && !slices.Contains(p, i) {
			p = append(p, i)
		}
	}
	return p
}

// Load puts the picked fields of a row into j.
func (s *Store) Load(j *status.Job, slot int32, p FieldSet) {
	for _, i := range p {
		s.columns[i].load(s, j, slot)
	}
}

// Job is a whole row, as far as it is kept.
func (s *Store) Job(slot int32) status.Job {
	var j status.Job
	for i := range s.columns {
		s.columns[i].load(s, &j, slot)
	}
	return j
}

// Meant is the row that an id means, among those that were asked for by it: of
// an array what has that very id, else the first.
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

// Same tells whether two rows have the same values in the picked fields.
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
