package queue

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// target is one job, array task or group that an operation applies to.
type target struct {
	id    string // in the form that commands accept
	owner string
	count map[string]int // tasks by state
}

// isMarked reports whether a row or its group is marked.
func (p *Page) isMarked(i int) bool {
	if len(p.marks) == 0 {
		return false
	}
	if p.marks[p.rows.key(i)] {
		return true
	}
	id, _ := p.rows.groupID(p.rows.list[i].slot)
	return id != 0 && p.marks[-id]
}

// toggleMark marks the current row or removes its mark, and moves to the next row.
func (p *Page) toggleMark() {
	key := p.rows.key(p.list.Cursor)
	if key == 0 {
		return
	}
	p.anchor = key
	if p.marks[key] {
		delete(p.marks, key)
	} else {
		p.marks[key] = true
	}
	p.list.Move(1)
	p.noteCursor()
}

// markRange marks the rows from the last mark to the cursor.
func (p *Page) markRange() {
	from := p.rows.indexOf(p.anchor)
	if from < 0 {
		from = p.list.Cursor
	}
	for i := min(from, p.list.Cursor); i <= max(from, p.list.Cursor); i++ {
		if key := p.rows.key(i); key != 0 {
			p.marks[key] = true
		}
	}
	p.anchor = p.rows.key(p.list.Cursor)
}

// markAll marks all rows, or removes all marks if all rows are marked.
func (p *Page) markAll() {
	all := len(p.rows.list) > 0
	for i := range p.rows.list {
		all = all && p.isMarked(i)
	}
	clear(p.marks)
	if !all {
		for i := range p.rows.list {
			p.marks[p.rows.key(i)] = true
		}
	}
}

// Unmark removes all marks. It returns false if there were none.
func (p *Page) Unmark() bool {
	had := len(p.marks) > 0
	clear(p.marks)
	return had
}

// targets returns the marked jobs and groups, or else what the cursor is on.
func (p *Page) targets() []target {
	keys := slices.Sorted(maps.Keys(p.marks))
	if len(keys) == 0 {
		if key := p.rows.key(p.list.Cursor); key != 0 {
			keys = []int64{key}
		}
	}
	members := map[int64][]int32{}
	if len(keys) > 0 && keys[0] < 0 {
		for _, slot := range p.rows.store.Slots(nil) {
			if id, _ := p.rows.groupID(slot); id != 0 && contains(keys, -id) {
				members[id] = append(members[id], slot)
			}
		}
	}
	var out []target
	for _, key := range keys {
		if key < 0 {
			if t, ok := p.groupTarget(-key, members[-key]); ok {
				out = append(out, t)
			}
			continue
		}
		slot, ok := p.rows.store.Slot(key)
		if id, _ := p.rows.groupID(slot); !ok || id != 0 && contains(keys, -id) {
			continue // its group is a target
		}
		j := p.rows.store.Job(slot)
		out = append(out, target{id: operand(&j), owner: j.User, count: map[string]int{j.State: p.rows.tasks(slot)}})
	}
	return out
}

func contains(sorted []int64, key int64) bool {
	_, ok := slices.BinarySearch(sorted, key)
	return ok
}

// groupTarget returns a group as one target; ok is false if it has no rows.
func (p *Page) groupTarget(id int64, slots []int32) (t target, ok bool) {
	t = target{id: strconv.FormatInt(id, 10), count: map[string]int{}}
	for _, s := range slots {
		t.owner = p.rows.store.Text(s, "user")
		t.count[p.rows.store.Text(s, "state")] += p.rows.tasks(s)
	}
	return t, len(slots) > 0
}

// operand returns a job's id in the form that operations accept.
func operand(j *status.Job) string {
	if j.ArrayJobID != 0 {
		spec, _, _ := strings.Cut(j.ArrayTaskID, "%")
		if _, err := strconv.Atoi(spec); err == nil || spec == "" {
			return format.JobID(j)
		}
		return fmt.Sprintf("%d_[%s]", j.ArrayJobID, spec)
	}
	return format.JobID(j)
}
