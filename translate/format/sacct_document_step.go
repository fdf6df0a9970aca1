package format

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

func (d *acctDoc) steps(r *status.Record) []any {
	out := make([]any, len(r.Steps))
	for i := range r.Steps {
		out[i] = d.step(r, &r.Steps[i])
	}
	return out
}

func (d *acctDoc) step(r *status.Record, p *status.StepRecord) Object {
	layout := p.Layout
	if layout == "" {
		layout = "Unknown"
	}
	statistics := Object{{"CPU", Object{{"actual_frequency", 0}}}, {"energy", Object{{"consumed", d.plain(0)}}}}
	return Object{
		{"nodes", Object{{"list", expandedNames(p.NodeList)}, {"count", p.Nodes}, {"range", p.NodeList}}},
		{"tres", Object{
			{"requested", d.usageObject(p, tresIn)}, {"consumed", d.usageObject(p, tresOut)},
			{"allocated", d.tres(p.AllocTRES)},
		}},
		{"time", Object{
			{"elapsed", AcctElapsed(&AcctRow{Job: r, Step: p}, d.settings)}, {"end", d.instant(p.End)},
			{"start", d.instant(p.Start)}, {"suspended", p.Suspended}, {"system", cpuObject(p.SystemCPU)},
			{"total", cpuObject(p.UserCPU + p.SystemCPU)}, {"user", cpuObject(p.UserCPU)},
		}},
		{"exit_code", d.exit(p.ExitCode, p.Signal, p.End == 0)},
		{"tasks", Object{{"count", p.Tasks}}},
		{"pid", d.text("")},
		{"CPU", d.frequency(p)},
		{"kill_request_user", d.text(p.KilledBy)},
		{"state", d.state(p.State)},
		{"statistics", statistics},
		{"step", d.stepID(r, p)},
		{"task", Object{{"distribution", layout}}},
	}
}

func (d *acctDoc) instant(t int64) any {
	if d.later {
		return d.number(t, t != 0)
	}
	return t
}

func expandedNames(folded string) []any {
	names, err := hostlist.Expand(folded)
	if err != nil {
		return []any{}
	}
	out := make([]any, len(names))
	for i, n := range names {
		out[i] = n
	}
	return out
}

// stepID returns the step's id. In 22.05 it is separate from the job's id.
func (d *acctDoc) stepID(r *status.Record, p *status.StepRecord) Object {
	if d.later {
		return Object{{"id", strconv.FormatInt(r.ID, 10) + "." + p.Step}, {"name", p.Name}}
	}
	var id any = p.Step
	if n, err := strconv.Atoi(p.Step); err == nil {
		id = n
	}
	return Object{{"job_id", r.ID}, {"het", Object{{"component", nil}}}, {"id", id}, {"name", p.Name}}
}

// frequency returns the requested CPU frequency, which is never set. 22.05 has a
// special form for steps of srun.
func (d *acctDoc) frequency(p *status.StepRecord) Object {
	if d.later {
		return Object{
			{"requested_frequency", Object{{"min", d.number(0, true)}, {"max", d.number(0, true)}}},
			{"governor", "0"},
		}
	}
	if _, err := strconv.Atoi(p.Step); err == nil {
		return Object{
			{"requested_frequency", Object{{"min", nil}, {"max", nil}}},
			{"governor", []any{"Conservative", "Performance", "PowerSave", "OnDemand", "UserSpace"}},
		}
	}
	return Object{{"requested_frequency", Object{{"min", 0}, {"max", 0}}}, {"governor", []any{}}}
}

// usageObject returns the maximum and minimum of one task, and the average and total of all,
// of each TRES. It is empty while the step runs. Of a step that was not measured, it has only
// the energy.
func (d *acctDoc) usageObject(p *status.StepRecord, list []usedTRES) Object {
	most, least, average, total := []any{}, []any{}, []any{}, []any{}
	for _, t := range sortedByID(list) {
		if p.End == 0 || !p.Measured && t.kind != "energy" {
			continue
		}
		m := t.measure(p)
		if p.Measured {
			most = append(most, d.extreme(p, &t, &m.Max))
			least = append(least, d.extreme(p, &t, &m.Min))
		}
		average = append(average, d.entry(&t, p.Average(m)))
		total = append(total, d.entry(&t, m.Total))
	}
	return Object{{"max", most}, {"min", least}, {"average", average}, {"total", total}}
}

func sortedByID(list []usedTRES) []usedTRES {
	return slices.SortedFunc(slices.Values(list), func(a, b usedTRES) int { return cmp.Compare(a.id, b.id) })
}

// entry returns an amount of a TRES. CPU time is in milliseconds.
func (d *acctDoc) entry(t *usedTRES, amount int64) Object {
	if t.kind == "cpu" {
		amount /= 1000
	}
	return Object{{"type", t.kind}, {"name", d.text(t.name)}, {"id", t.id}, {"count", amount}}
}

// extreme returns the usage of one task.
func (d *acctDoc) extreme(p *status.StepRecord, t *usedTRES, e *status.Extreme) Object {
	return append(d.entry(t, e.Amount), Member{"task", e.Task}, Member{"node", p.NodeOf(e)})
}
