package queue

import (
	"fmt"
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
)

// toggleBell has the bell ring when the marked jobs end. Without marks it switches
// the bell of the current job on or off.
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
			return p.env.Notify("The bell no longer rings for this job.")
		}
		p.bells[key] = true
		n = 1
	}
	if n == 1 {
		return p.env.Notify("The bell rings when the job ends.")
	}
	return p.env.Notify(fmt.Sprintf("The bell rings when each of the %d marked jobs ends.", n))
}

func isFinal(state string) bool { return status.JobState(state).IsFinal() }

// finishedBy returns the jobs that an event removes or moves to a final state. Call
// it before the event is applied.
func (p *Page) finishedBy(e *status.JobEvent) []int64 {
	out := slices.Clone(e.Gone)
	for i := range e.Items {
		j := &e.Items[i]
		if slot, ok := p.rows.store.Slot(j.ID); ok && isFinal(j.State) && !isFinal(p.rows.store.Text(slot, "state")) {
			out = append(out, j.ID)
		}
	}
	return out
}

// finishedSince returns the jobs of an old list that are not in the present one, or
// are in a final state only now.
func (p *Page) finishedSince(old *data.Store) []int64 {
	var out []int64
	for _, s := range old.Slots(nil) {
		id := old.ID(s)
		slot, ok := p.rows.store.Slot(id)
		if !ok || isFinal(p.rows.store.Text(slot, "state")) && !isFinal(old.Text(s, "state")) {
			out = append(out, id)
		}
	}
	return out
}

// removeFinished removes the marks of finished jobs and rings their bells.
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

// removeEmptyGroups removes the marks of groups that have no unfinished job left. It
// returns those whose bell is to ring.
func (p *Page) removeEmptyGroups() (rung []string) {
	groups := map[int64]bool{} // by key; true: an unfinished job is left
	for key := range p.marks {
		if key < 0 {
			groups[key] = false
		}
	}
	for key := range p.bells {
		if key < 0 {
			groups[key] = false
		}
	}
	if len(groups) == 0 {
		return nil
	}
	for _, s := range p.rows.store.Slots(nil) {
		if id, _ := p.rows.groupID(s); id != 0 && !isFinal(p.rows.store.Text(s, "state")) {
			groups[-id] = true
		}
	}
	for key, unfinished := range groups {
		if unfinished {
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

// JobsEnded reports that jobs have ended for which the bell is to ring.
type JobsEnded struct{ Jobs []string }
