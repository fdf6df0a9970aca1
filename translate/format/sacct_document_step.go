package format

import (
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
			{"requested", usageObject(d.used(p), p.Tasks)}, {"consumed", usageObject(d.written(p), p.Tasks)},
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

// usage is the usage of one TRES by the tasks of a step.
type usage struct {
	kind     string
	name     any // a string or nil
	id       int
	average  int64
	most     int64
	least    int64  // -1: unknown
	mostOn   string // the node of the maximum
	mostTask int32
	sumOnly  bool // usage of single tasks is unknown
}

// used returns the usage of the tasks, or nil while the step runs.
func (d *acctDoc) used(p *status.StepRecord) []usage {
	energy := usage{kind: "energy", name: d.text(""), id: 3, sumOnly: !p.Measured}
	switch {
	case p.End == 0:
		return nil
	case !p.Measured:
		return []usage{energy}
	}
	none := d.text("")
	energy.mostOn = p.MaxRSSNode
	list := []usage{
		{kind: "cpu", name: none, id: 1, average: p.AveCPU / 1000, most: p.AveCPU / 1000, least: p.MinCPU / 1000,
			mostOn: p.MinCPUNode, mostTask: p.MinCPUTask},
		{kind: "mem", name: none, id: 2, average: p.AveRSS, most: p.MaxRSS, least: -1,
			mostOn: p.MaxRSSNode, mostTask: p.MaxRSSTask},
		energy,
		{kind: "fs", name: "disk", id: 6, average: p.AveDiskRead, most: p.MaxDiskRead, least: -1,
			mostOn: p.MaxDiskReadNode, mostTask: p.MaxDiskReadTask},
		{kind: "vmem", name: none, id: 7, average: p.AveVMSize, most: p.MaxVMSize, least: -1,
			mostOn: p.MaxVMSizeNode, mostTask: p.MaxVMSizeTask},
		{kind: "pages", name: none, id: 8, average: p.AvePages, most: p.MaxPages, least: -1,
			mostOn: p.MaxPagesNode, mostTask: p.MaxPagesTask},
	}
	return withMinimum(list, p.Tasks)
}

// withMinimum sets the minimum of a single task, which is its average.
func withMinimum(list []usage, tasks int32) []usage {
	for i := range list {
		if tasks == 1 && list[i].least < 0 {
			list[i].least = list[i].average
		}
	}
	return list
}

// written returns what the tasks have written.
func (d *acctDoc) written(p *status.StepRecord) []usage {
	all := d.used(p)
	if !p.Measured || all == nil {
		return all
	}
	disk := usage{
		kind: "fs", name: "disk", id: 6, average: p.AveDiskWrite, most: p.MaxDiskWrite, least: -1,
		mostOn: p.MaxDiskWriteNode, mostTask: p.MaxDiskWriteTask,
	}
	return withMinimum([]usage{all[2], disk}, p.Tasks)
}

// usageObject returns the maximum and minimum of one task, and the average and total
// of all.
func usageObject(list []usage, tasks int32) Object {
	most, least, average, total := []any{}, []any{}, []any{}, []any{}
	for _, u := range list {
		entry := func(count int64) Object {
			return Object{{"type", u.kind}, {"name", u.name}, {"id", u.id}, {"count", count}}
		}
		if !u.sumOnly {
			most = append(most, append(entry(u.most), Member{"task", u.mostTask}, Member{"node", u.mostOn}))
		}
		if !u.sumOnly && u.least >= 0 {
			least = append(least, append(entry(u.least), Member{"task", u.mostTask}, Member{"node", u.mostOn}))
		}
		average = append(average, entry(u.average))
		total = append(total, entry(u.average*int64(max(1, tasks))))
	}
	return Object{{"max", most}, {"min", least}, {"average", average}, {"total", total}}
}
