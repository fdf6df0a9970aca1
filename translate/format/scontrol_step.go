package format

import (
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/status"
)

// StepRecord returns the record of a step in scontrol show step.
func StepRecord(t *status.Step, s *Settings) *Record {
	r := new(Record)
	limit := "UNLIMITED"
	if t.TimeLimit >= 0 {
		limit = limitLong(t.TimeLimit)
	}
	cpus := t.CPUs
	if t.Number < 0 { // as in Slurm, which allocates none to the batch step
		cpus = 0
	}
	r.line("StepId="+t.ID, "UserId="+itoa(t.UID), "StartTime="+instantText(t.Start, "Unknown", s),
		"TimeLimit="+limit)
	r.line("State="+t.State, pair("Partition", t.Partition), pair("NodeList", t.NodeList))
	r.line("Nodes="+itoa(t.Nodes), "CPUs="+itoa(cpus), "Tasks="+itoa(t.Tasks), pair("Name", t.Name),
		"Network=(null)")
	r.line(pair("TRES", orNull(t.TRES)))
	r.line("ResvPorts=(null)")
	freq := []string{"CPUFreqReq=Default"}
	if t.Dist != "" {
		freq = append(freq, pair("Dist", Distribution(t.Dist)))
	}
	r.line(freq...)
	r.line("SrunHost:Pid=" + printable.Escape(orNull(t.SrunHost)) + ":" + itoa(t.SrunPID))
	if t.GRES != "" {
		r.line(pair("TresPerNode", t.GRES))
	}
	if t.Container != "" {
		r.line(pair("Container", t.Container))
	}
	return r
}
