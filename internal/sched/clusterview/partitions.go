package clusterview

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/status"
)

// Partitions returns a row for every partition, ordered by name.
func Partitions(s *snapshot.Snapshot) []status.Partition {
	out := make([]status.Partition, 0, len(s.Partitions()))
	for _, p := range s.Partitions() {
		row := partitionRow(p)
		row.Default = s.IsDefault(p)
		members := p.Nodes.Members()
		slices.SortFunc(members, func(a, b int) int { return s.Nodes[a].Position - s.Nodes[b].Position })
		for _, i := range members {
			row.Nodes = append(row.Nodes, s.Nodes[i].Name)
		}
		out = append(out, row)
	}
	return out
}

func partitionRow(p *snapshot.Partition) status.Partition {
	spec := p.Spec
	row := status.Partition{
		Name:              p.Name,
		State:             "UP",
		MaxTime:           p.MaxTime(),
		DefaultTime:       spec.DefaultTime,
		MinNodes:          spec.MinNodes,
		MaxNodes:          spec.MaxNodes,
		MaxCPUs:           spec.MaxCPUs,
		OverSubscribe:     spec.OverSubscribe,
		ExclusiveUser:     spec.ExclusiveUser,
		PriorityTier:      max(1, spec.PriorityTier),
		PriorityJobFactor: max(1, spec.PriorityJobFactor),
		PreemptMode:       spec.PreemptMode,
		GraceTime:         spec.GraceTime,
		AllowAccounts:     spec.AllowAccounts,
		AllowGroups:       spec.AllowGroups,
		AllowQOS:          spec.AllowQOS,
		DenyAccounts:      spec.DenyAccounts,
		DenyQOS:           spec.DenyQOS,
		QOS:               spec.QOS,
		ReqResv:           spec.ReqResv,
		Hidden:            spec.Hidden,
		RootOnly:          spec.RootOnly,
		DefMemPerCPU:      valueOf(spec.DefMemPerCPU),
		DefMemPerNode:     valueOf(spec.DefMemPerNode),
		MaxMemPerCPU:      valueOf(spec.MaxMemPerCPU),
		MaxMemPerNode:     valueOf(spec.MaxMemPerNode),
		OverTimeLimit:     valueOf(spec.OverTimeLimit),
	}
	if spec.State != "" {
		row.State = strings.ToUpper(spec.State)
	}
	return row
}

// valueOf returns the value of an optional setting, or zero.
func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
