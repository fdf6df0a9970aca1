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

// row is one line of the queue: a job, or the header of an array or heterogeneous
// job.
type row struct {
	slot   int32
	group  *group // nil: a job
	member bool   // below the header of an expanded group
}

// group is an array or heterogeneous job that has several rows in the list.
type group struct {
	id     int64
	het    bool
	slots  []int32
	counts map[string]int // tasks by state
	tasks  int
}

// rows is the list that is shown: the rows of the store that pass the filter, in
// order, with groups collapsed.
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

// rebuild sorts and filters all rows.
func (r *rows) rebuild() {
	r.order = data.NewOrder(r.store, r.keys, r.settings)
	r.all = r.store.Slots(r.all)
	r.order.Sort(r.all)
	r.refilter()
}

// refilter filters all rows. Their order stays as it is, so that typing a filter
// does not cost a sort for each letter.
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

// maxIncremental is the number of changes beyond which rebuilding the list is
// faster than updating it.
const maxIncremental = 2000

// apply updates the list after a change of the store.
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
	isTouched := func(s int32) bool { return touched[s] }
	r.all = r.order.Merge(slices.DeleteFunc(r.all, isTouched), slices.Clone(add))
	pass := r.filter.Bind(r.store, r.settings.Now)
	add = slices.DeleteFunc(add, func(s int32) bool { return !pass(s) })
	r.filtered = r.order.Merge(slices.DeleteFunc(r.filtered, isTouched), add)
	r.fold()
}

// groupID returns the array or heterogeneous job that a row belongs to; 0: none.
func (r *rows) groupID(slot int32) (id int64, het bool) {
	if id = r.store.Number(slot, "arrayJobID"); id != 0 {
		return id, false
	}
	return r.store.Number(slot, "hetJobID"), true
}

// fold makes the list from the filtered rows: the rows of one group become one
// line in the place of the first of them.
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
		id := int64(0)
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

// join adds a row to its group.
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

// tasks returns how many jobs a row stands for: several for the pending tasks of an
// array.
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

// key returns the key by which cursor and marks follow a line: the job's id, or the
// negated id of a group.
func (r *rows) key(i int) int64 {
	if i < 0 || i >= len(r.list) {
		return 0
	}
	if g := r.list[i].group; g != nil {
		return -g.id
	}
	return r.store.ID(r.list[i].slot)
}

// indexOf returns the index of the line with the key, or -1. A job in a collapsed
// group is at the group's line.
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
		// The group may have one row left, which is not grouped.
		return slices.IndexFunc(r.list, func(l row) bool { id, _ := r.groupID(l.slot); return id == -key })
	}
	return -1
}

// stateCounts returns a group's tasks by state, such as "PD 900  R 88".
func (g *group) stateCounts() string {
	var out []string
	for _, s := range status.JobStates {
		if n := g.counts[s]; n > 0 {
			out = append(out, fmt.Sprintf("%s %d", status.JobState(s).Code(), n))
		}
	}
	return strings.Join(out, "  ")
}

// job returns the job of a line, or the first one of a group.
func (r *rows) job(i int) (j status.Job, ok bool) {
	if i < 0 || i >= len(r.list) {
		return j, false
	}
	return r.store.Job(r.list[i].slot), true
}
