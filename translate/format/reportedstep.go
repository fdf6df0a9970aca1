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
	out := status.StepRecord{
		Step: stepName(s.ID), Name: s.Name, State: s.State, Start: s.Start / 1e9, End: s.End / 1e9,
		ExitCode: s.Status, Signal: s.Signal, Nodes: int32(len(s.Nodes)), NodeList: hostlist.Fold(s.Nodes),
		Tasks: s.Tasks, CPUs: s.CPUs, Layout: s.Layout, UserCPU: u.UserCPU, SystemCPU: u.SystemCPU,
		Measured: *u != wire.Usage{},
		MinCPU:   u.MinCPU, MinCPUNode: nodeAt(s.Nodes, u.MinCPUNode), MinCPUTask: u.MinCPUTask,
		MaxRSS: u.MaxRSS, MaxRSSNode: nodeAt(s.Nodes, u.MaxRSSNode), MaxRSSTask: u.MaxRSSTask,
		MaxVMSize: u.MaxVMSize, MaxVMSizeNode: nodeAt(s.Nodes, u.MaxVMSizeNode), MaxVMSizeTask: u.MaxVMSizeTask,
		MaxPages: u.MaxPages, MaxPagesNode: nodeAt(s.Nodes, u.MaxPagesNode), MaxPagesTask: u.MaxPagesTask,
		MaxDiskRead: u.DiskRead, MaxDiskWrite: u.DiskWrite,
	}
	tasks := int64(max(1, s.Tasks))
	out.AveCPU = (u.UserCPU + u.SystemCPU) / tasks
	out.AveRSS, out.AveVMSize, out.AvePages = u.TotalRSS/tasks, u.TotalVMSize/tasks, u.TotalPages/tasks
	out.AveDiskRead, out.AveDiskWrite = u.DiskRead/tasks, u.DiskWrite/tasks
	return out
}

func nodeAt(nodes []string, i int32) string {
	if i < 0 || int(i) >= len(nodes) {
		return ""
	}
	return nodes[i]
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
