package format

import (
	"strconv"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// ReportedStep returns the record of a step that an agent reported, without its
// allocation.
func ReportedStep(s *wire.StepRecord) status.StepRecord {
	u := &s.Usage
	return status.StepRecord{
		Step: stepName(s.ID), Name: s.Name, State: s.State, Start: s.Start / 1e9, End: s.End / 1e9,
		ExitCode: s.Status, Signal: s.Signal, Nodes: int32(len(s.Nodes)), NodeList: hostlist.Fold(s.Nodes),
		Tasks: s.Tasks, CPUs: s.CPUs, Layout: s.Layout, UserCPU: u.UserCPU, SystemCPU: u.SystemCPU,
		Measured: *u != wire.Usage{},
		CPU:      measure(s, &u.CPU), RSS: measure(s, &u.RSS), VMSize: measure(s, &u.VMSize),
		Pages: measure(s, &u.Pages), DiskRead: measure(s, &u.DiskRead), DiskWrite: measure(s, &u.DiskWrite),
	}
}

// measure returns m with the names of the nodes.
func measure(s *wire.StepRecord, m *wire.Measure) status.Measure {
	return status.Measure{Total: m.Total, Max: extreme(s, &m.Max), Min: extreme(s, &m.Min)}
}

func extreme(s *wire.StepRecord, e *wire.Extreme) status.Extreme {
	out := status.Extreme{Amount: e.Amount, Task: e.Task}
	if len(s.Nodes) > 1 && e.Node >= 0 && int(e.Node) < len(s.Nodes) {
		out.Node = s.Nodes[e.Node]
	}
	return out
}

func stepName(id int32) string {
	switch id {
	case wire.StepBatch:
		return "batch"
	case wire.StepExtern:
		return "extern"
	case wire.StepInteractive:
		return "interactive"
	}
	return strconv.Itoa(int(id))
}
