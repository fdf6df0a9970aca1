package acct

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// Filter decides which records a query means (sacct(1)): the same rules for
// those of the database and those of the queue.
type Filter struct {
	q   *status.RecordQuery
	ids map[int64][]idPattern // by the number of the job

	users, groups, accounts, qos, names, wckeys, partitions, nodes map[string]bool // nil: any
	userIDs, groupIDs                                              map[int64]bool
	states, constraints                                            []string // each once
}

// NewFilter makes the filter of q.
func NewFilter(q *status.RecordQuery) *Filter {
	f := &Filter{
		q: q, ids: map[int64][]idPattern{},
		users: set(q.Users), groups: set(q.Groups), accounts: set(q.Accounts), qos: set(q.QOS), names: set(q.Names),
		wckeys: set(q.WCKeys), partitions: set(q.Partitions), nodes: set(q.Nodes), userIDs: set(q.UserIDs), groupIDs: set(q.GroupIDs),
		states: unique(q.States), constraints: unique(q.Constraints),
	}
	for _, text := range q.Jobs {
		if p, ok := parsePattern(text); ok {
			f.ids[p.id] = append(f.ids[p.id], p)
		}
	}
	return f
}

// set returns the elements of the list; nil if there is none.
func set[T comparable](list []T) map[T]bool {
	if len(list) == 0 {
		return nil
	}
	m := make(map[T]bool, len(list))
	for _, x := range list {
		m[x] = true
	}
	return m
}

func unique(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// Match tells whether r passes.
func (f *Filter) Match(r *status.Record) bool {
	q := f.q
	if len(q.Jobs) > 0 && !f.named(r) {
		return false
	}
	if len(f.users)+len(f.userIDs) > 0 && !f.users[r.User] && !f.userIDs[r.UserID] {
		return false
	}
	if len(f.groups)+len(f.groupIDs) > 0 && !f.groups[r.Group] && !f.groupIDs[r.GroupID] {
		return false
	}
	for _, c := range [...]struct {
		wanted map[string]bool
		value  string
	}{{f.accounts, r.Account}, {f.qos, r.QOS}, {f.names, r.Name}, {f.wckeys, r.WCKey}} {
		if c.wanted != nil && !c.wanted[c.value] {
			return false
		}
	}
	return f.place(r) && inRange(q.NNodes, int64(max(r.Nodes, 0))) && inRange(q.NCPUs, int64(r.CPUs)) &&
		inRange(q.TimeLimit, int64(r.TimeLimit)) && f.when(r)
}

// named reports whether the query names the record's job, by its own number or
// by that of its array or heterogeneous job.
func (f *Filter) named(r *status.Record) bool {
	return slices.ContainsFunc([]int64{r.ID, r.ArrayJobID, r.HetJobID}, func(id int64) bool {
		return slices.ContainsFunc(f.ids[id], func(p idPattern) bool { return p.match(r) })
	})
}

func (f *Filter) place(r *status.Record) bool {
	if f.partitions != nil && !slices.ContainsFunc(strings.Split(r.Partition, ","), func(p string) bool { return f.partitions[p] }) {
		return false
	}
	if len(f.constraints) > 0 && !slices.ContainsFunc(f.constraints, func(c string) bool { return strings.Contains(r.Constraints, c) }) {
		return false
	}
	if f.nodes == nil {
		return true
	}
	names, err := hostlist.Expand(r.NodeList)
	return err == nil && slices.ContainsFunc(names, func(n string) bool { return f.nodes[n] })
}

func inRange(r [2]int64, n int64) bool {
	switch {
	case r == [2]int64{}:
		return true
	case r[1] == 0:
		return n == r[0]
	}
	return n >= r[0] && n <= r[1]
}

// when applies the time window, by state where states are asked for.
func (f *Filter) when(r *status.Record) bool {
	q := f.q
	start, end := q.Start, q.End
	if end <= 0 {
		end = math.MaxInt64
	}
	if len(q.States) == 0 {
		if start <= 0 && (q.End <= 0 || len(q.Jobs) > 0) {
			return true
		}
		return r.Eligible != 0 && r.Eligible <= end && (r.End == 0 || r.End >= start)
	}
	return slices.ContainsFunc(f.states, func(s string) bool { return wasIn(r, s, start, end) })
}

// wasIn tells whether the record counts as having had the state between start
// and end (sacct(1), -s).
func wasIn(r *status.Record, state string, start, end int64) bool {
	switch state {
	case "PENDING":
		return r.Eligible != 0 && r.Eligible <= end && (r.Start == 0 && r.End == 0 || r.Start >= start || r.Start == 0 && r.End >= start)
	case "RUNNING", "CONFIGURING":
		return r.Start != 0 && r.Start <= end && (r.End == 0 || r.End >= start)
	case "SUSPENDED":
		return r.State == "SUSPENDED" && r.Start <= end || slices.ContainsFunc(r.History, func(c status.StateChange) bool {
			at := c.At / 1e6
			return c.State == "SUSPENDED" && at >= start && at <= end
		})
	}
	return r.State == state && r.End != 0 && r.End >= start && r.End <= end
}

// idPattern is one job of -j: a job with all its tasks and components, or one
// of them.
type idPattern struct {
	id    int64
	tasks value.Intervals // of an array; nil: all
	het   int64           // offset; -1: all
}

// parsePattern reads "12", "12_3", "12_[1-3,5]", "12+1"; a step behind a dot
// is not looked at.
func parsePattern(text string) (p idPattern, ok bool) {
	text, _, _ = strings.Cut(text, ".")
	p.het = -1
	number, task, isTask := strings.Cut(text, "_")
	number, offset, isHet := strings.Cut(number, "+")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id <= 0 {
		return p, false
	}
	p.id = id
	if isHet {
		if p.het, err = strconv.ParseInt(offset, 10, 32); err != nil {
			return p, false
		}
	}
	if isTask && task != "*" {
		if p.tasks, err = value.ArrayIntervals(task); err != nil {
			return p, false
		}
	}
	return p, true
}

func (p idPattern) match(r *status.Record) bool {
	switch {
	case p.tasks != nil:
		if r.ArrayJobID != p.id {
			return false
		}
		t, err := strconv.ParseInt(r.ArrayTaskID, 10, 32)
		return err != nil || p.tasks.Has(int32(t)) // what is left of the array may hold it
	case p.het >= 0:
		return r.HetJobID == p.id && int64(r.HetOffset) == p.het
	}
	return r.ID == p.id || r.ArrayJobID == p.id || r.HetJobID == p.id
}

// jobIDs are the numbers that the patterns name.
func jobIDs(list []string) []int64 {
	var out []int64
	for _, text := range list {
		if p, ok := parsePattern(text); ok {
			out = append(out, p.id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Newest leaves the latest run of each job id, in the order of the list, which
// must be by id.
func Newest(records []status.Record) []status.Record {
	at := map[int64]int{}
	out := records[:0]
	for i := range records {
		r := &records[i]
		if k, ok := at[r.ID]; ok {
			if later(r, &out[k]) {
				out[k] = *r
			}
			continue
		}
		at[r.ID] = len(out)
		out = append(out, *r)
	}
	return out
}

func later(a, b *status.Record) bool {
	if a.UID == b.UID {
		return a.Restarts > b.Restarts
	}
	return a.Submit > b.Submit
}
