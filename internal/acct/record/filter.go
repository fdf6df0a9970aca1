package record

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// Filter decides which records a query selects (sacct(1)), by the same rules for
// records of the database and of the queue.
type Filter struct {
	q   *status.RecordQuery
	ids map[int64][]idPattern // by the number of the job

	users, groups, accounts, qos, names, wckeys, partitions, nodes map[string]bool // nil: any
	userIDs, groupIDs                                              map[int64]bool
	states, constraints                                            []string // each once
}

// NewFilter returns the filter of q.
func NewFilter(q *status.RecordQuery) *Filter {
	f := &Filter{
		q:           q,
		ids:         map[int64][]idPattern{},
		users:       set(q.Users),
		groups:      set(q.Groups),
		accounts:    set(q.Accounts),
		qos:         set(q.QOS),
		names:       set(lower(q.Names)),
		wckeys:      set(q.WCKeys),
		partitions:  set(lower(q.Partitions)),
		nodes:       set(q.Nodes),
		userIDs:     set(q.UserIDs),
		groupIDs:    set(q.GroupIDs),
		states:      unique(q.States),
		constraints: unique(q.Constraints),
	}
	for _, text := range q.Jobs {
		if p, ok := parsePattern(text); ok {
			f.ids[p.id] = append(f.ids[p.id], p)
		}
	}
	return f
}

// lower returns names in lower case: as in Slurm's database, those of jobs and partitions
// match in any case.
func lower(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.ToLower(name)
	}
	return out
}

// set returns the set of the elements of the list; nil if it is empty.
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

// Match reports whether the query selects r.
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
	}{{f.accounts, r.Account}, {f.qos, r.QOS}, {f.names, strings.ToLower(r.Name)}, {f.wckeys, r.WCKey}} {
		if c.wanted != nil && !c.wanted[c.value] {
			return false
		}
	}
	return f.runsWhere(r) && inRange(q.NNodes, int64(max(r.Nodes, 0))) && inRange(q.NCPUs, int64(r.CPUs)) &&
		inRange(q.TimeLimit, int64(r.TimeLimit)) && f.inWindow(r)
}

// named reports whether the query names the record's job, by its own number or
// by that of its array or heterogeneous job.
func (f *Filter) named(r *status.Record) bool {
	return slices.ContainsFunc([]int64{r.ID, r.ArrayJobID, r.HetJobID}, func(id int64) bool {
		return slices.ContainsFunc(f.ids[id], func(p idPattern) bool { return p.match(r) })
	})
}

// runsWhere reports whether partition, constraints and nodes are those of the
// query.
func (f *Filter) runsWhere(r *status.Record) bool {
	inPartition := func(p string) bool { return f.partitions[p] }
	if f.partitions != nil &&
		!slices.ContainsFunc(strings.Split(strings.ToLower(r.Partition), ","), inPartition) {
		return false
	}
	hasConstraint := func(c string) bool { return strings.Contains(r.Constraints, c) }
	if len(f.constraints) > 0 && !slices.ContainsFunc(f.constraints, hasConstraint) {
		return false
	}
	if f.nodes == nil {
		return true
	}
	names, err := hostlist.Expand(r.NodeList)
	return err == nil && slices.ContainsFunc(names, func(n string) bool { return f.nodes[n] })
}

// inRange reports whether n is in the range: any number if the range is zero,
// the first one alone if the second is zero.
func inRange(r [2]int64, n int64) bool {
	switch {
	case r == [2]int64{}:
		return true
	case r[1] == 0:
		return n == r[0]
	}
	return n >= r[0] && n <= r[1]
}

// inWindow applies the time window: to the eligible time and the end, or to the requested
// states. As in Slurm, it is that of the submission for jobs that are named.
func (f *Filter) inWindow(r *status.Record) bool {
	q := f.q
	w := window{q.Start, q.End}
	if q.End <= 0 {
		w.end = math.MaxInt64
	}
	if len(q.States) > 0 {
		return slices.ContainsFunc(f.states, func(state string) bool { return w.hasState(r, state) })
	}
	if len(q.Jobs) > 0 {
		return r.Submit <= w.end && (r.End == 0 || r.End >= w.start)
	}
	return w.start <= 0 && q.End <= 0 || r.Eligible != 0 && r.Eligible <= w.end && (r.End == 0 || r.End >= w.start)
}

// window is a time window in Unix seconds.
type window struct{ start, end int64 }

// includes reports whether a time is in the window.
func (w window) includes(at int64) bool { return at >= w.start && at <= w.end }

// hasState reports whether the record counts as having had the state in the
// window (sacct(1), -s).
func (w window) hasState(r *status.Record, state string) bool {
	switch state {
	case "PENDING":
		return r.Eligible != 0 && r.Eligible <= w.end && !w.leftQueueBefore(r)
	case "RUNNING", "CONFIGURING":
		return r.Start != 0 && r.Start <= w.end && (r.End == 0 || r.End >= w.start)
	case "SUSPENDED":
		suspendedThen := func(c status.StateChange) bool { return c.State == state && w.includes(c.At/1e6) }
		return r.State == state && r.Start <= w.end || slices.ContainsFunc(r.History, suspendedThen)
	}
	return r.State == state && r.End != 0 && w.includes(r.End)
}

// leftQueueBefore reports whether the job started, or ended without a start,
// before the window.
func (w window) leftQueueBefore(r *status.Record) bool {
	switch {
	case r.Start != 0:
		return r.Start < w.start
	case r.End != 0:
		return r.End < w.start
	}
	return false
}

// idPattern is one job of -j: a job with all its tasks and components, or one
// of them.
type idPattern struct {
	id    int64
	tasks value.Intervals // of an array; nil: all
	het   int64           // offset; -1: all
}

// parsePattern parses "12", "12_3", "12_[1-3,5]" or "12+1". A step after a dot is
// ignored.
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
		n, err := strconv.ParseUint(offset, 10, 31)
		if err != nil {
			return p, false
		}
		p.het = int64(n)
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
		return err == nil && p.tasks.Has(int32(t)) // as in Slurm, a range of pending tasks is not one of them
	case p.het >= 0:
		return r.HetJobID == p.id && int64(r.HetOffset) == p.het
	}
	return r.ID == p.id || r.ArrayJobID == p.id || r.HetJobID == p.id
}

// JobIDs returns the job ids that the patterns of -j name, in ascending order.
func JobIDs(list []string) []int64 {
	var out []int64
	for _, text := range list {
		if p, ok := parsePattern(text); ok {
			out = append(out, p.id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// MayMatchUser reports whether records of the user can pass. It is a quick check
// before a record is made.
func (f *Filter) MayMatchUser(user string) bool {
	return len(f.q.Users) == 0 || len(f.q.UserIDs) > 0 || slices.Contains(f.q.Users, user)
}

// MayMatchID reports whether records with any of the ids (of the job, its array or
// its heterogeneous job) can pass. It is a quick check before a record is made.
func (f *Filter) MayMatchID(ids ...int64) bool {
	named := func(id int64) bool { return len(f.ids[id]) > 0 }
	return len(f.q.Jobs) == 0 || slices.ContainsFunc(ids, named)
}

// Newest returns the latest run of each job id. The list must be sorted by id;
// its array is reused.
func Newest(records []status.Record) []status.Record {
	index := map[int64]int{}
	out := records[:0]
	for i := range records {
		r := &records[i]
		if k, ok := index[r.ID]; ok {
			if isLater(r, &out[k]) {
				out[k] = *r
			}
			continue
		}
		index[r.ID] = len(out)
		out = append(out, *r)
	}
	return out
}

// isLater reports whether a is of a later run than b.
func isLater(a, b *status.Record) bool {
	if a.UID == b.UID {
		return a.Restarts > b.Restarts
	}
	return a.Submit > b.Submit
}
