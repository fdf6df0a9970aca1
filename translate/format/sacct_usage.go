package format

import (
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// usedTRES is a TRES that the tasks of a step use. kind, name and id are those of
// documents.
type usedTRES struct {
	kind, name string
	id         int
	measure    func(*status.StepRecord) *status.Measure
}

// text returns the name of the TRES in lists.
func (t *usedTRES) text() string {
	if t.name != "" {
		return t.kind + "/" + t.name
	}
	return t.kind
}

// tresIn are the TRES of the fields TRESUsageIn*, and tresOut those of TRESUsageOut*, in
// the order of Slurm's lists.
var (
	tresIn = []usedTRES{
		{"cpu", "", 1, func(p *status.StepRecord) *status.Measure { return &p.CPU }},
		{"energy", "", 3, energyOf},
		{"fs", "disk", 6, func(p *status.StepRecord) *status.Measure { return &p.DiskRead }},
		{"mem", "", 2, func(p *status.StepRecord) *status.Measure { return &p.RSS }},
		{"pages", "", 8, func(p *status.StepRecord) *status.Measure { return &p.Pages }},
		{"vmem", "", 7, func(p *status.StepRecord) *status.Measure { return &p.VMSize }},
	}
	tresOut = []usedTRES{
		{"energy", "", 3, energyOf},
		{"fs", "disk", 6, func(p *status.StepRecord) *status.Measure { return &p.DiskWrite }},
	}
)

// energyOf returns the energy of a step, which is not measured. As in Slurm, it is 0 on the
// first node.
func energyOf(p *status.StepRecord) *status.Measure {
	var first status.Extreme
	if names, err := hostlist.Expand(p.NodeList); err == nil && len(names) > 0 {
		first.Node = names[0]
	}
	return &status.Measure{Max: first, Min: first}
}

// stepField returns the value of a field of a step.
type stepField func(*status.StepRecord, *AcctSettings) string

// acctUsage are the fields of the usage of a step.
var acctUsage = usageFields()

func usageFields() map[string]stepField {
	fields := map[string]stepField{}
	addMinCPU(fields)
	for i := range tresIn {
		switch t := &tresIn[i]; t.kind {
		case "fs":
			addMaximum(fields, "DiskRead", t.measure, diskText)
		case "mem":
			addMaximum(fields, "RSS", t.measure, countText)
		case "pages":
			addMaximum(fields, "Pages", t.measure, countText)
		case "vmem":
			addMaximum(fields, "VMSize", t.measure, countText)
		}
	}
	addMaximum(fields, "DiskWrite", tresOut[1].measure, diskText)
	addLists(fields, "TRESUsageIn", tresIn)
	addLists(fields, "TRESUsageOut", tresOut)
	return fields
}

// addMinCPU adds the fields of the CPU time, of which Slurm shows the minimum.
func addMinCPU(fields map[string]stepField) {
	fields["AveCPU"] = measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return longDuration(p.Average(&p.CPU) / 1e6) })
	fields["MinCPU"] = measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return longDuration(p.CPU.Min.Amount / 1e6) })
	fields["MinCPUNode"] = measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return p.NodeOf(&p.CPU.Min) })
	fields["MinCPUTask"] = measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return itoa(p.CPU.Min.Task) })
}

// addMaximum adds the fields of the average and the maximum of a measure.
func addMaximum(fields map[string]stepField, name string, measure func(*status.StepRecord) *status.Measure,
	text func(int64, *AcctSettings) string) {
	fields["Ave"+name] = measured(
		func(p *status.StepRecord, s *AcctSettings) string { return text(p.Average(measure(p)), s) })
	fields["Max"+name] = measured(
		func(p *status.StepRecord, s *AcctSettings) string { return text(measure(p).Max.Amount, s) })
	fields["Max"+name+"Node"] = measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return p.NodeOf(&measure(p).Max) })
	fields["Max"+name+"Task"] = measured(
		func(p *status.StepRecord, _ *AcctSettings) string { return itoa(measure(p).Max.Task) })
}

// addLists adds the fields that list the usage of several TRES.
func addLists(fields map[string]stepField, name string, list []usedTRES) {
	fields[name+"Ave"] = sums(list, func(p *status.StepRecord, m *status.Measure) int64 { return p.Average(m) })
	fields[name+"Tot"] = sums(list, func(_ *status.StepRecord, m *status.Measure) int64 { return m.Total })
	addExtremes(fields, name+"Max", list, func(m *status.Measure) *status.Extreme { return &m.Max })
	addExtremes(fields, name+"Min", list, func(m *status.Measure) *status.Extreme { return &m.Min })
}

// sums returns a field that lists a sum or an average of each TRES. Of a step that ended
// before it was measured, Slurm lists only the energy.
func sums(list []usedTRES, amount func(*status.StepRecord, *status.Measure) int64) stepField {
	return func(p *status.StepRecord, s *AcctSettings) string {
		switch {
		case p.Measured:
			return tresList(list, func(t *usedTRES) string { return t.amountText(amount(p, t.measure(p)), s) })
		case p.End != 0:
			return "energy=0"
		}
		return ""
	}
}

// addExtremes adds the fields of the maxima or minima of single tasks.
func addExtremes(fields map[string]stepField, name string, list []usedTRES,
	of func(*status.Measure) *status.Extreme) {
	fields[name] = measured(func(p *status.StepRecord, s *AcctSettings) string {
		return tresList(list, func(t *usedTRES) string { return t.amountText(of(t.measure(p)).Amount, s) })
	})
	fields[name+"Node"] = measured(func(p *status.StepRecord, _ *AcctSettings) string {
		return tresList(list, func(t *usedTRES) string { return p.NodeOf(of(t.measure(p))) })
	})
	fields[name+"Task"] = measured(func(p *status.StepRecord, s *AcctSettings) string {
		return tresList(list, func(t *usedTRES) string { return t.taskText(of(t.measure(p)).Task, s) })
	})
}

// tresList returns "cpu=...,energy=...", without TRES whose text is empty.
func tresList(list []usedTRES, text func(*usedTRES) string) string {
	var b strings.Builder
	for i := range list {
		t := &list[i]
		value := text(t)
		if value == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.text() + "=" + value)
	}
	return b.String()
}

// amountText returns an amount of the TRES in a list.
func (t *usedTRES) amountText(n int64, s *AcctSettings) string {
	if t.kind == "cpu" {
		return longDuration(n / 1e6)
	}
	return countText(n, s)
}

// taskText returns the number of a task in a list. Energy is that of a node, not of a task.
// Like Slurm's, sstat shows the task of the CPU time as a time in milliseconds.
func (t *usedTRES) taskText(task int32, s *AcctSettings) string {
	switch {
	case t.kind == "energy":
		return ""
	case t.kind == "cpu" && s.Sstat:
		return longDuration(int64(task) / 1000)
	}
	return itoa(task)
}

// measured returns a field that is empty if the step's usage was not measured.
func measured(f stepField) stepField {
	return func(p *status.StepRecord, s *AcctSettings) string {
		if !p.Measured {
			return ""
		}
		return f(p, s)
	}
}

// countText returns a number of bytes or pages.
func countText(n int64, s *AcctSettings) string { return unitText(float64(n), 0, s) }

// diskText returns an amount of disk traffic in bytes, which sacct shows in MiB. Slurm shows
// an amount of at most one as "0.50M" in any unit, even if it is one byte.
func diskText(n int64, s *AcctSettings) string {
	amount, unit := float64(n)/(1<<20), 2
	if s.Sstat {
		amount, unit = float64(n), 0
	}
	if amount > 0 && amount <= 1 {
		return fixed(amount) + "M"
	}
	return unitText(amount, unit, s)
}
