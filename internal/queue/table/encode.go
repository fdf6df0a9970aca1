package table

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// field is one field of status.Job.
type field struct {
	*status.Field
	key []byte // `"name":`
}

// planned are the fields that a plan, or the begin time of the job, changes; they are
// encoded when read.
var planned = map[string]bool{
	"reason": true, "priority": true, "start": true, "accrue": true, "plannedNodes": true, "dependency": true,
	"nodes": true,
}

var allFields, fixedFields, plannedFields = jobFields()

func jobFields() (all, fixed, dynamic []field) {
	for i := range status.Fields {
		f := field{&status.Fields[i], []byte(`"` + status.Fields[i].Name + `":`)}
		all = append(all, f)
		if planned[f.Name] {
			dynamic = append(dynamic, f)
		} else {
			fixed = append(fixed, f)
		}
	}
	return all, fixed, dynamic
}

// Projection chooses the fields to send. nil: all.
type Projection struct{ fields []field }

// Project returns a projection to the named fields (their JSON names). Names that do
// not exist are ignored; without names it has every field.
func Project(names []string) *Projection {
	if len(names) == 0 {
		return nil
	}
	p := &Projection{}
	want := set(names)
	for _, f := range allFields {
		if want[f.Name] {
			p.fields = append(p.fields, f)
		}
	}
	return p
}

// Plans reports whether a change of the plan alone can change the encoded row.
func (p *Projection) Plans() bool {
	return p == nil || slices.ContainsFunc(p.fields,
		func(f field) bool { return planned[f.Name] && f.Name != "priority" && f.Name != "accrue" })
}

// AppendJSON appends the rows as a JSON array, merged with the newest plan.
func (t *Table) AppendJSON(b []byte, rows []*Row, p *Projection) []byte {
	b, _ = t.AppendRows(append(b, '['), rows, p, math.MaxInt)
	return append(b, ']')
}

// AppendRows appends rows as the elements of a JSON array, merged with the newest plan,
// until they take most bytes. n is the number of rows it has appended, at least one if there
// are any.
func (t *Table) AppendRows(b []byte, rows []*Row, p *Projection, most int) (out []byte, n int) {
	start, now := len(b), time.Now().Unix()
	var scratch status.Job
	nodes := p == nil || slices.ContainsFunc(p.fields, func(f field) bool { return f.Name == "plannedNodes" })
	for i, r := range rows {
		if len(b)-start >= most {
			return b, i
		}
		if i > 0 {
			b = append(b, ',')
		}
		j := t.merged(r, now, &scratch, nodes)
		if p != nil {
			b = append(b, '{')
			b = appendFields(b, j, p.fields)
			b = append(b, '}')
			continue
		}
		b = append(b, r.fixed...)
		b = append(b, ',')
		b = appendFields(b, j, plannedFields)
		b = append(b, '}')
	}
	return b, len(rows)
}

// Merged returns the row's job with the newest plan merged in.
func (t *Table) Merged(r *Row) status.Job {
	return *t.merged(r, time.Now().Unix(), new(status.Job), true)
}

// merged returns the row's own job, or scratch with the plan merged in. now is in seconds
// since the epoch. With nodes it includes the planned nodes, which take the longest.
func (t *Table) merged(r *Row, now int64, scratch *status.Job, nodes bool) *status.Job {
	if r.State != v1alpha1.StatePending {
		return &r.Job
	}
	own := &r.Job
	if r.Start == 0 && r.Eligible > now { // as in Slurm, its begin time counts as its start
		*scratch = r.Job
		scratch.Start, scratch.Accrue = r.Eligible, 0
		own = scratch
	}
	if t.planner == nil {
		return own
	}
	p, ok := t.planner.Planned(r.ID)
	if !ok {
		return own
	}
	if own != scratch {
		*scratch = r.Job
	}
	scratch.Nodes = max(r.Nodes, spreadOver(&r.Job, p.NodeCPUs))
	if r.Held != "" {
		return scratch // it may have been held after the plan was made: the plan does not count
	}
	if job.IsHeldReason(p.Reason) {
		return scratch // released since the plan was made
	}
	scratch.Priority = p.Priority
	if p.Reason != "" {
		scratch.Reason = p.Reason
		scratch.Dependency = waitingFor(&r.Job, &p)
	}
	if !p.Start.IsZero() {
		scratch.Start = p.Start.Unix()
		if nodes {
			scratch.PlannedNodes = hostlist.Fold(p.Nodes)
		}
	}
	return scratch
}

// spreadOver returns how many nodes with this number of CPUs the job's tasks fill. As
// in Slurm, the number of tasks per node is not considered.
func spreadOver(j *status.Job, cpus int32) int32 {
	if cpus == 0 || j.TasksPerNode > 0 {
		return 0
	}
	each := max(1, cpus/max(1, j.CPUsPerTask))
	return (j.Tasks + each - 1) / each
}

// waitingFor returns the remaining dependencies of the job, as far as the plan shows
// them: none if it waits for nodes or licenses, otherwise those that are not fulfilled,
// as in Slurm, which forgets the others. The tasks of an array wait for one job each
// (aftercorr), and the components of a heterogeneous job for each other.
func waitingFor(j *status.Job, p *control.Planned) string {
	switch {
	case p.Reason == status.ReasonDependencyNeverSatisfied && strings.Contains(j.Dependency, "aftercorr:"):
		return strings.ReplaceAll(j.Dependency, "(unfulfilled)", "(failed)")
	case j.Dependency == "" || j.HetJobID != 0 || strings.Contains(j.Dependency, "aftercorr:"):
		return j.Dependency
	case p.Reason == "Priority" || p.Reason == "Resources" || p.Reason == "Licenses":
		return ""
	}
	sep := ","
	if strings.Contains(j.Dependency, "?") {
		sep = "?"
	}
	terms := strings.Split(j.Dependency, sep)
	if len(terms) != len(p.Outcomes) {
		return j.Dependency
	}
	kept := terms[:0]
	for i, term := range terms {
		switch p.Outcomes[i] {
		case 'm':
			continue
		case 'n':
			term = strings.Replace(term, "(unfulfilled)", "(failed)", 1)
		}
		kept = append(kept, term)
	}
	return strings.Join(kept, sep)
}

// appendFields appends `"a":1,"b":"x"` without braces.
func appendFields(b []byte, j *status.Job, fields []field) []byte {
	first := true
	for i := range fields {
		f := &fields[i]
		start := len(b)
		if !first {
			b = append(b, ',')
		}
		b = append(b, f.key...)
		zero := false
		switch {
		case f.Text != nil:
			v := *f.Text(j)
			zero = v == ""
			b = appendString(b, v)
		case f.Flag != nil:
			v := *f.Flag(j)
			zero = !v
			b = strconv.AppendBool(b, v)
		case f.Small != nil:
			v := *f.Small(j)
			zero = v == 0
			b = strconv.AppendInt(b, int64(v), 10)
		default:
			v := *f.Large(j)
			zero = v == 0
			b = strconv.AppendInt(b, v, 10)
		}
		if zero && f.Omit {
			b = b[:start]
			continue
		}
		first = false
	}
	return b
}

// appendString appends s as JSON.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			text, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...) // strings cannot fail
			}
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
