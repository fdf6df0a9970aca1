package queue

import (
	"fmt"
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
)

// ringFor has the bell rung when the marked jobs are over.
func (p *Page) toggleBell() tea.Cmd {
	n := 0
	for key := range p.marks {
		p.bells[key] = true
		n++
	}
	if n == 0 {
		key := p.rows.key(p.list.Cursor)
		if key == 0 {
			return nil
		}
		if p.bells[key] {
			delete(p.bells, key)
			return p.env.Notify("No bell for it any more.")
		}
		p.bells[key] = true
		n = 1
	}
	if n == 1 {
		return p.env.Notify("The bell rings when it is over.")
	}
	return p.env.Notify(fmt.Sprintf("The bell rings as each of the %d marked is over.", n))
}

// over tells whether a job in this state will not run again.
func over(state string) bool {
	switch state {
	case "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY":
		return true
	}
	return false
}

// ended are the jobs that an event ends.
func (p *Page) finishedBy(e *status.JobEvent) []int64 {
	out := slices.Clone(e.Gone)
	for i := range e.Items {
		j := &e.Items[i]
		if slot, ok := p.rows.store.Slot(j.ID); ok && over(j.State) && !over(p.rows.store.Text(slot, "state")) {
			out = append(out, j.ID)
		}
	}
	return out
}

// missing are the jobs of an old list that the new one has no longer, or that
// are over now.
func (p *Page) finishedSince(old *data.Store) []int64 {
	var out []int64
	for _, s := range old.Slots(nil) {
		id := old.ID(s)
		slot, ok := p.rows.store.Slot(id)
		if !ok || over(p.rows.store.Text(slot, "state")) && !over(old.Text(s, "state")) {
			out = append(out, id)
		}
	}
	return out
}

// forget takes marks off jobs that are over, and rings for them.
func (p *Page) removeFinished(ids []int64) tea.Cmd {
	var rung []string
	for _, id := range ids {
		delete(p.marks, id)
		if p.bells[id] {
			delete(p.bells, id)
			rung = append(rung, strconv.FormatInt(id, 10))
		}
	}
	if len(ids) > 0 {
		rung = append(rung, p.removeEmptyGroups()...)
	}
	if len(rung) == 0 {
		return nil
	}
	return p.env.Post(JobsEnded{Jobs: rung})
}

// forgetGroups does so for groups of which nothing is left.
func (p *Page) removeEmptyGroups() (rung []string) {
	left := map[int64]bool{}
	for key := range p.marks {
		left[key] = left[key] || key > 0
	}
	for key := range p.bells {
		left[key] = left[key] || key > 0
	}
	if len(left) == 0 {
		return nil
	}
	for _, s := range p.rows.store.Slots(nil) {
		if id, _ := p.rows.groupID(s); id != 0 && !over(p.rows.store.Text(s, "state")) {
			left[-id] = true
		}
	}
	for key, ok := range left {
		if ok {
			continue
		}
		delete(p.marks, key)
		if p.bells[key] {
			delete(p.bells, key)
			rung = append(rung, strconv.FormatInt(-key, 10))
		}
	}
	return rung
}

// Rung tells that jobs are over for which the bell was to ring.
type JobsEnded struct{ Jobs []string }
