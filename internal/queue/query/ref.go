// Package query parses which jobs a request to the queue API is about: job ids as
// users write them, and the filters of a URL's query. A Resolver looks them up in
// the table of jobs and leaves out what the caller may not see.
package query

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/value"
)

// Ref is a reference to a job as users write it: a job 12, an array task 12_3,
// several tasks 12_[1-3,7], all tasks 12_*, or a component 12+1 of a
// heterogeneous job.
type Ref struct {
	ID        int64           // the job's own id; of a component its own, 13 for 12+1
	Tasks     value.Intervals // nil: the whole job
	Component bool            // it was written as a component
	HetJobID  int64           // the 12 of 12+1; set for a component only
}

// ParseRef parses a reference to a job.
func ParseRef(text string) (r Ref, ok bool) {
	number, tasks, isTask := strings.Cut(text, "_")
	number, offset, isComponent := strings.Cut(number, "+")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id <= 0 || isTask && isComponent {
		return Ref{}, false
	}
	r.ID = id
	switch {
	case isComponent:
		n, err := strconv.ParseUint(offset, 10, 31)
		if err != nil {
			return Ref{}, false
		}
		r.ID, r.Component, r.HetJobID = id+int64(n), true, id
	case isTask && tasks != "*":
		tasks, _, _ := strings.Cut(tasks, "%")
		if r.Tasks, err = value.ArrayIntervals(tasks); err != nil {
			return Ref{}, false
		}
	}
	return r, true
}

// noID is an id that no job has. A query for it matches nothing, where a query
// without ids would match every job.
const noID = -1

// IDs returns the job ids of the references among texts, and an id that no job
// has, so that the result is not empty.
func IDs(texts []string) []int64 {
	ids := []int64{noID}
	for _, text := range texts {
		if r, ok := ParseRef(text); ok {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// refAdder adds references to a query, each of which widens it.
type refAdder struct {
	query *table.Query
	added map[int64]bool
}

func newRefAdder(q *table.Query) *refAdder { return &refAdder{q, map[int64]bool{}} }

// add includes the jobs or tasks of r in the query.
func (a *refAdder) add(r Ref) {
	known := a.added[r.ID]
	if !known {
		a.added[r.ID] = true
		a.query.IDs = append(a.query.IDs, r.ID)
	}
	a.addLeader(r, known)
	a.addTasks(r, known)
}

// addLeader limits an id that was only named as a component to components of the named
// jobs: 12+1 and 11+2 have the same id.
func (a *refAdder) addLeader(r Ref, known bool) {
	before, limited := a.query.Leaders[r.ID]
	switch {
	case !r.Component:
		delete(a.query.Leaders, r.ID)
	case known && !limited: // the query has the job by its own id already
	default:
		if a.query.Leaders == nil {
			a.query.Leaders = map[int64][]int64{}
		}
		a.query.Leaders[r.ID] = append(before, r.HetJobID)
	}
}

// addTasks limits an id that was only named with tasks to those tasks.
func (a *refAdder) addTasks(r Ref, known bool) {
	before, limited := a.query.Tasks[r.ID]
	switch {
	case r.Tasks == nil:
		delete(a.query.Tasks, r.ID)
	case known && !limited: // the query has the whole job already
	default:
		if a.query.Tasks == nil {
			a.query.Tasks = map[int64]value.Intervals{}
		}
		a.query.Tasks[r.ID] = append(before, r.Tasks...)
	}
}

// finish completes the query after the last call of add.
func (a *refAdder) finish() {
	for id, tasks := range a.query.Tasks {
		a.query.Tasks[id] = tasks.Normalize()
	}
}

// splitRefs splits lists of references at the commas outside of brackets.
func splitRefs(texts []string) []string {
	var out []string
	for _, text := range texts {
		depth, start := 0, 0
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
			if ref := strings.TrimSpace(text[start:i]); ref != "" {
				out = append(out, ref)
			}
			start = i + 1
		}
	}
	return out
}
