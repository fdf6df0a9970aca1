package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
)

// row is one line of the queue: a job, or the head of an array or of a
// heterogeneous job whose parts are folded into it.
type row struct {
	slot   int32
	group  *group // nil: a job
	member bool   // of a group that is open, below its head
}

// group is an array or heterogeneous job of which several rows are in the list.
type group struct {
	id     int64
	het    bool
	slots  []int32
	counts map[string]int // tasks by state
	tasks  int
}

// rows is the list as it is shown: the rows of the store that the filter lets
// pass, in order, with groups folded.
type rows struct {
	store    *data.Store
	keys     []data.SortKey
	filter   *query.Query
	expanded map[int64]bool // groups that are expanded
	flat     bool           // nothing is folded (squeue -r)

	settings *format.Settings
	all      []int32 // all rows, in order
	filtered []int32 // those that pass the filter
	list     []row
	grouped  bool // list has groups
	sizes    map[string]int
	order    *data.Order
}

// rebuild puts all rows into order anew, and filters them.
func (r *rows) rebuild() {
	r.order = data.NewOrder(r.store, r.keys, r.settings)
	r.all = r.store.Slots(r.all)
	r.order.Sort(r.all)
	r.refilter()
}

// refilter filters the rows anew; their order stays as it is, so that a letter
// more in a filter does not cost a sort.
func (r *rows) refilter() {
	if r.order == nil {
		r.rebuild()
		return
	}
	pass := r.filter.Bind(r.store, r.settings.Now)
	r.filtered = r.filtered[:0]
	for _, slot := range r.all {
		if pass(slot) {
			r.filtered = append(r.filtered, slot)
		}
	}
	r.fold()
}

// manyChanges are those from which on a new list is made faster than an old
// one changed.
const maxIncremental = 2000

// apply takes in what an event has changed.
func (r *rows) apply(c data.Change) {
	if c.All || r.order == nil || len(c.Changed)+len(c.Gone) > maxIncremental {
		r.rebuild()
		return
	}
	touched := make(map[int32]bool, len(c.Changed)+len(c.Gone))
	for _, g := range c.Gone {
		touched[g.Slot] = true
	}
	var add []int32
	for _, s := range c.Changed {
		if !slices.Contains(add, s) {
			add = append(add, s)
		}
		touched[s] = true
	}
	was := func(s int32) bool { return touched[s] }
	r.all = r.order.Merge(slices.DeleteFunc(r.all, was), slices.Clone(add))
	pass := r.filter.Bind(r.store, r.settings.Now)
	add = slices.DeleteFunc(add, func(s int32) bool { return !pass(s) })
	r.filtered = r.order.Merge(slices.DeleteFunc(r.filtered, was), add)
	r.fold()
}

// groupOf is the array or heterogeneous job that a row belongs to; 0: none.
func (r *rows) groupID(slot int32) (id int64, het bool) {
	if id = r.store.Number(slot, "arrayJobID"); id != 0 {
		return id, false
	}
	return r.store.Number(slot, "hetJobID"), true
}

// fold makes the list out of the sorted rows: rows of one array become one
// line where the first of them is.
func (r *rows) fold() {
	groups := map[int64]*group{}
	if !r.flat {
		for _, slot := range r.filtered {
			if id, het := r.groupID(slot); id != 0 {
				r.join(groups, slot, id, het)
			}
		}
	}
	r.list, r.grouped = r.list[:0], false
	for _, slot := range r.filtered {
		id, _ := int64(0), false
		if len(groups) > 0 {
			id, _ = r.groupID(slot)
		}
		g := groups[id]
		switch {
		case g == nil || len(g.slots) < 2:
			r.list = append(r.list, row{slot: slot})
		case g.slots[0] == slot:
			r.grouped = true
			r.list = append(r.list, row{slot: slot, group: g})
			if r.expanded[id] {
				for _, s := range g.slots {
					r.list = append(r.list, row{slot: s, member: true})
				}
			}
		}
	}
}

func (r *rows) join(groups map[int64]*group, slot int32, id int64, het bool) {
	g := groups[id]
	if g == nil {
		g = &group{id: id, het: het, counts: map[string]int{}}
		groups[id] = g
	}
	n := r.tasks(slot)
	g.slots = append(g.slots, slot)
	g.counts[r.store.Text(slot, "state")] += n
	g.tasks += n
}

// tasks is how many jobs a row stands for.
func (r *rows) tasks(slot int32) int {
	spec := r.store.Text(slot, "arrayTaskID")
	if spec == "" {
		return 1
	}
	if _, err := strconv.Atoi(spec); err == nil {
		return 1
	}
	n, known := r.sizes[spec]
	if !known {
		if r.sizes == nil || len(r.sizes) > 1<<12 {
			r.sizes = map[string]int{}
		}
		list, _ := format.ParseTasks(spec)
		n = max(1, len(list))
		r.sizes[spec] = n
	}
	return n
}

// key names a line, so that cursor and marks can follow it: the job's id, or
// that of a group as a negative number.
func (r *rows) key(i int) int64 {
	if i < 0 || i >= len(r.list) {
		return 0
	}
	if g := r.list[i].group; g != nil {
		return -g.id
	}
	return r.store.ID(r.list[i].slot)
}

// find is where the line with the key is; -1: nowhere. A job that is folded
// away is where its group is.
func (r *rows) indexOf(key int64) int {
	if key == 0 {
		return -1
	}
	parent := int64(0)
	if slot, ok := r.store.Slot(key); ok && key > 0 {
		parent, _ = r.groupID(slot)
	}
	for i := range r.list {
		k := r.key(i)
		if k == key || parent != 0 && k == -parent && !r.expanded[parent] {
			return i
		}
	}
	if key < 0 {
		// The group has one row left, or is now something else: its first.
		return slices.IndexFunc(r.list, func(l row) bool { id, _ := r.groupID(l.slot); return id == -key })
	}
	return -1
}

// counted is a group's tasks by state: PD 900 R 88.
func (g *group) stateCounts() string {
	var out []string
	for _, s := range status.JobStates {
		if n := g.counts[s]; n > 0 {
			out = append(out, fmt.Sprintf("%s %d", status.JobState(s).Code(), n))
		}
	}
	return strings.Join(out, "  ")
}

// first is the job that a line is about.
func (r *rows) job(i int) (j status.Job, ok bool) {
	if i < 0 || i >= len(r.list) {
		return j, false
	}
	return r.store.Job(r.list[i].slot), true
}
