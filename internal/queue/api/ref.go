package api

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/value"
)

// ref is what a user calls a job: 12, a task 12_3, tasks 12_[1-3,7], all tasks
// 12_*, or a component 12+1, which is meant by the id that it has.
type ref struct {
	id        int64
	tasks     value.Intervals // nil: all of the job
	component bool            // of a heterogeneous job, named as such
	leader    int64           // the 12 of 12+1
}

func parseID(text string) (r ref, ok bool) {
	number, tasks, some := strings.Cut(text, "_")
	number, offset, component := strings.Cut(number, "+")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id <= 0 || some && component {
		return ref{}, false
	}
	r.id = id
	switch {
	case component:
		n, err := strconv.ParseUint(offset, 10, 31)
		if err != nil {
			return ref{}, false
		}
		r.id, r.component, r.leader = id+int64(n), true, id
	case some && tasks != "*":
		tasks, _, _ := strings.Cut(tasks, "%")
		if r.tasks, err = value.ArrayIntervals(tasks); err != nil {
			return ref{}, false
		}
	}
	return r, true
}

// refs adds what users name to a query.
type refs struct {
	q     *table.Query
	known map[int64]bool
}

func newRefs(q *table.Query) *refs { return &refs{q, map[int64]bool{}} }

// add makes the query mean r as well.
func (l *refs) add(r ref) {
	before, some := l.q.Tasks[r.id]
	known := l.known[r.id]
	switch {
	case !r.component:
		delete(l.q.Leaders, r.id)
	case !known:
		if l.q.Leaders == nil {
			l.q.Leaders = map[int64]int64{}
		}
		l.q.Leaders[r.id] = r.leader
	}
	if l.known[r.id] = true; !known {
		l.q.IDs = append(l.q.IDs, r.id)
	}
	switch {
	case r.tasks == nil:
		delete(l.q.Tasks, r.id)
	case known && !some: // all of it is meant already
	default:
		if l.q.Tasks == nil {
			l.q.Tasks = map[int64]value.Intervals{}
		}
		l.q.Tasks[r.id] = append(before, r.tasks...)
	}
}

// finish makes the query ready for use after several calls of add.
func (l *refs) finish() {
	for id, tasks := range l.q.Tasks {
		l.q.Tasks[id] = tasks.Normalize()
	}
}

// idList splits lists of ids at the commas outside of brackets.
func idList(texts []string) []string {
	var out []string
	for _, text := range texts {
		depth, from := 0, 0
		for i := 0; i <= len(text); i++ {
			if i < len(text) && (text[i] != ',' || depth > 0) {
				switch text[i] {
				case '[':
					depth++
				case ']':
					depth--
				}
				continue
			}
			if one := strings.TrimSpace(text[from:i]); one != "" {
				out = append(out, one)
			}
			from = i + 1
		}
	}
	return out
}
