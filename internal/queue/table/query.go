package table

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/value"
)

// Query selects rows: each list that is not empty must contain the row's value. Names
// are exact. If States is empty, the query selects the states that squeue shows by
// default.
type Query struct {
	IDs []int64
	// Tasks restricts ids of arrays to some of their tasks. A row that represents
	// several tasks matches if one of them is included.
	Tasks map[int64]value.Intervals
	// Leaders maps ids that name components of heterogeneous jobs to the ids of the jobs
	// that they may be components of. Components of other jobs do not match.
	Leaders    map[int64][]int64
	Users      []string
	States     []string
	AllStates  bool
	Partitions []string
	Names      []string
	Accounts   []string
	QOS        []string
	Nodes      *hostlist.Pattern // of short names; jobs that have any of them match
	Extra      *Extra
}

// defaultQOS is the QOS of jobs without one.
const defaultQOS = "normal"

// shown are the states that squeue shows by default.
var shown = []string{
	v1alpha1.StatePending, v1alpha1.StateSpecialExit, v1alpha1.StateReservationDeleted, v1alpha1.StateConfiguring,
	v1alpha1.StateRunning,
	v1alpha1.StateCompleting, v1alpha1.StateSuspended,
}

var shownStates = set(shown)

type filter struct {
	ids                                       map[int64]bool // nil: all
	tasks                                     map[int64]value.Intervals
	leaders                                   map[int64][]int64
	states                                    map[string]bool // nil: all
	users, partitions, names, accounts, qoses map[string]bool
	nodes                                     *hostlist.Pattern
	extra                                     *extraFilter
}

// Filter is a Query prepared for comparing it with many rows. Safe for concurrent use.
type Filter struct{ f *filter }

// Filter returns the query's filter.
func (q *Query) Filter() Filter { return Filter{q.compile()} }

// Pass reports whether the row matches.
func (f Filter) Pass(r *Row) bool { return f.f.pass(r) }

func (q *Query) compile() *filter {
	f := &filter{
		users: set(q.Users), partitions: set(q.Partitions), names: set(q.Names),
		accounts: set(q.Accounts), qoses: set(q.QOS), nodes: q.Nodes,
	}
	if len(q.IDs) > 0 {
		f.ids, f.tasks, f.leaders = make(map[int64]bool, len(q.IDs)), q.Tasks, q.Leaders
		for _, id := range q.IDs {
			f.ids[id] = true
		}
	}
	f.extra = q.Extra.compile()
	switch {
	case q.AllStates:
	case len(q.States) > 0:
		f.states = set(q.States)
	default:
		f.states = shownStates
	}
	return f
}

func set(list []string) map[string]bool {
	if len(list) == 0 {
		return nil
	}
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[s] = true
	}
	return m
}

// hasID reports whether the row was requested by id: by its own, or by that of its
// array or heterogeneous job. r may be nil.
func (f *filter) hasID(r *Row) bool {
	switch {
	case f.ids == nil:
		return true
	case r == nil:
		return false
	case r.ArrayJobID != 0 && f.ids[r.ArrayJobID]:
		set, some := f.tasks[r.ArrayJobID]
		return !some || r.In(set) || r.ID != r.ArrayJobID && f.ids[r.ID]
	}
	leaders, some := f.leaders[r.ID]
	if some && !slices.Contains(leaders, r.HetJobID) && !slices.Contains(leaders, r.ID) {
		return false
	}
	if _, some := f.tasks[r.ID]; some && r.ArrayJobID == 0 {
		return false // a task of a job that is not an array
	}
	return f.ids[r.ID] || r.HetJobID != 0 && f.ids[r.HetJobID]
}

// In reports whether the row is one of the tasks, or represents one of them.
func (r *Row) In(set value.Intervals) bool {
	if r.Task != nil {
		return set.Has(*r.Task)
	}
	return slices.ContainsFunc(r.Rest, set.Has)
}

func (f *filter) pass(r *Row) bool {
	return f.hasID(r) && (f.states == nil || f.states[r.State]) &&
		(f.users == nil || f.users[r.User]) &&
		(f.partitions == nil || inAny(f.partitions, r.parts())) &&
		(f.names == nil || f.names[r.Name]) &&
		(f.accounts == nil || f.accounts[r.Account]) &&
		(f.qoses == nil || f.qoses[cmp.Or(r.QOS, defaultQOS)]) &&
		(f.nodes.Empty() || slices.ContainsFunc(r.Hosts, f.nodes.Match)) && f.extra.pass(r)
}

func inAny(set map[string]bool, list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return set[s] })
}
