package squeue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// filter selects jobs. The server applies most of it; conditions for which it has no
// parameter are applied here.
type filter struct {
	jobs.Filter
	onlyMe  bool
	notMe   bool
	self    string // name or uid of the calling user, if notMe
	pending bool   // --start
	nothing bool   // a list without any element selects nothing
}

// lists are the options whose value is a list of what the jobs must be one of.
var lists = []string{"partition", "name", "account", "qos", "reservation", "licenses", "user", "states",
	"nodelist"}

func (f *filter) set(v *option.Values) (err error) {
	f.Partitions, f.Names = v.List("partition"), v.List("name")
	f.Accounts, f.QOS = lower(v.List("account")), lower(v.List("qos"))
	f.Reservations, f.Licenses = v.List("reservation"), v.List("licenses")
	f.Users = v.List("user")
	f.Hide = !v.Has("all") && len(f.Partitions) == 0
	f.nothing = slices.ContainsFunc(lists, func(name string) bool { return isEmpty(v, name) })
	f.onlyMe, f.notMe, f.pending = v.Has("me"), v.Has("notme"), v.Has("start")
	switch {
	case v.Last("me", "user") == "user": // the last of the two counts
		f.onlyMe = false
	case f.onlyMe:
		f.Users = nil
	}
	if f.States, err = states(v.List("states")); err != nil {
		return err
	}
	if f.Nodes, err = nodes(v.Get("nodelist")); err != nil {
		return err
	}
	if f.pending && len(f.States) == 0 {
		f.States = []string{"PENDING"}
	}
	return nil
}

// isEmpty reports whether the option's value is a list without elements.
func isEmpty(v *option.Values, name string) bool { return v.Has(name) && len(v.List(name)) == 0 }

// lower returns the names of accounts or QOS as they are stored.
func lower(names []string) []string {
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	return names
}

// ids parses job ids; the server parses 12_[1-3]. As in Slurm, text after the number is
// ignored unless it is a task: a component stands for its whole heterogeneous job.
func ids(list []string) ([]string, error) {
	var out []string
	for _, text := range list {
		digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
		if _, ok := jobs.ParseID(digits); !ok {
			return nil, slurmerr.Newf(slurmerr.Refused, "Invalid job id: %s", printable.Escape(text))
		}
		if after := text[len(digits):]; after == "" || after[0] != '_' {
			text = digits
		}
		out = append(out, text)
	}
	return out, nil
}

// me replaces --me by a filter for the user, and completes --notme.
func (f *filter) me(user string, p *stdio.Process) {
	if user == "" {
		user = strconv.Itoa(p.UID)
	}
	if f.onlyMe {
		f.Users = append(f.Users, user)
	}
	if f.notMe {
		f.self = user
	}
}

// fields returns the row fields that keep reads.
func (f *filter) fields() []string {
	names := []string{"id", "arrayJobID", "arrayTaskID", "arrayWhole", "hetJobID", "hetOffset"}
	if f.notMe {
		names = append(names, "user", "uid")
	}
	return names
}

// single returns the id if exactly one job is requested.
func (f *filter) single() (id string, ok bool) {
	if len(f.IDs) != 1 {
		return "", false
	}
	return f.IDs[0], true
}

// narrow reports whether there are conditions besides ids, so that the list may omit an
// existing job.
func (f *filter) narrow() bool {
	return len(f.Users)+len(f.Partitions)+len(f.Names)+len(f.Accounts)+len(f.QOS)+
		len(f.Nodes)+len(f.Reservations)+len(f.Licenses) > 0 || !slices.Equal(f.States, jobs.AllStates)
}

// keep returns the rows that match. It replaces the row of an array by rows of the tasks
// that were requested by id.
func (f *filter) keep(rows []status.Job) []status.Job {
	if f.notMe {
		rows = slices.DeleteFunc(slices.Clone(rows), func(j status.Job) bool {
			return j.User == f.self || strconv.FormatInt(j.UID, 10) == f.self
		})
	}
	if !slices.ContainsFunc(f.IDs, func(id string) bool { return strings.Contains(id, "_") }) {
		return rows
	}
	out := rows[:0:0]
	for _, r := range rows {
		if r.ArrayJobID == 0 || slices.Contains(f.IDs, fmt.Sprint(r.ArrayJobID)) {
			out = append(out, r)
			continue
		}
		out = append(out, joined(r, f.tasks(format.ExpandArrays([]status.Job{r})))...)
	}
	return out
}

// joined returns the tasks of a row as one row, as in Slurm, if there are several.
func joined(row status.Job, tasks []status.Job) []status.Job {
	if len(tasks) < 2 {
		return tasks
	}
	indexes := make([]int32, len(tasks))
	for i := range tasks {
		n, err := strconv.ParseInt(tasks[i].ArrayTaskID, 10, 32)
		if err != nil {
			return tasks
		}
		indexes[i] = int32(n)
	}
	slices.Sort(indexes)
	row.ArrayTaskID = value.ArraySpec(indexes, 0)
	return []status.Job{row}
}

// tasks returns the requested array tasks, if any were requested.
func (f *filter) tasks(rows []status.Job) []status.Job {
	var wanted []string
	for _, id := range f.IDs {
		if !strings.Contains(id, "_") {
			return rows
		}
		wanted = append(wanted, expandTask(id)...)
	}
	if len(wanted) == 0 {
		return rows
	}
	return slices.DeleteFunc(rows, func(j status.Job) bool {
		return j.ArrayJobID != 0 && !slices.Contains(wanted, format.JobID(&j))
	})
}

// expandTask returns the ids of 12_[1-3].
func expandTask(id string) []string {
	list, err := hostlist.Expand(id)
	if err != nil {
		return []string{id}
	}
	return list
}
