package srun

import (
	"fmt"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/option"
)

// shape reads the step's geometry. What does not go together is put right with
// a warning, as srun of 22.05 does: first the number of nodes, then
// --ntasks-per-node.
func shape(p *option.Parsed) (s step.Shape, warnings []string) {
	j := p.Job.Shape
	s = step.Shape{
		Nodes: j.MinNodes, MaxNodes: j.MaxNodes, Tasks: j.Tasks, TasksPerNode: j.TasksPerNode,
		CPUsPerTask: j.CPUsPerTask, NodeList: p.Job.Placement.NodeList, Exclude: p.Job.Placement.Exclude,
		Overcommit: j.Overcommit, Distribution: p.Job.Placement.Distribution,
	}
	if p.Step.Relative != nil {
		s.Relative = *p.Step.Relative + 1
	}
	s.MemPerNode, s.MemPerCPU = memory(p)
	if s.Tasks > 0 && s.Nodes > s.Tasks {
		warnings = append(warnings, fmt.Sprintf("can't run %d processes on %d nodes, setting nnodes to %d",
			s.Tasks, s.Nodes, s.Tasks))
		s.Nodes, s.MaxNodes = s.Tasks, s.Tasks
	}
	if s.Tasks > 0 && s.TasksPerNode > 0 && s.Nodes > 0 && s.Tasks > s.TasksPerNode && s.Tasks/s.Nodes != s.TasksPerNode {
		warnings = append(warnings, fmt.Sprintf("can't honor --ntasks-per-node set to %d which doesn't match the "+
			"requested tasks %d with the number of requested nodes %d. Ignoring --ntasks-per-node.",
			s.TasksPerNode, s.Tasks, s.Nodes))
		s.TasksPerNode = 0
	}
	return s, warnings
}

// memory is what the step is to have to itself. Only its own options count: what
// the job was given is in the environment as well, and every step would take all.
func memory(p *option.Parsed) (perNode, perCPU int64) {
	own := func(name string, v *int64) int64 {
		if v == nil || p.Given[name].From != option.FromCommandLine {
			return 0
		}
		return *v
	}
	return own("mem", p.Job.Shape.MemPerNode), own("mem-per-cpu", p.Job.Shape.MemPerCPU)
}

// checkNodes refuses a node list that is longer than the number of nodes.
func checkNodes(p *option.Parsed, s *step.Shape) error {
	if p.Given["nodes"].From == option.FromCommandLine && s.MaxNodes > 0 && len(s.NodeList) > int(s.MaxNodes) {
		return slurmerr.Newf(slurmerr.Refused,
			"Required nodelist includes more nodes than permitted by max-node count (%d > %d)", len(s.NodeList), s.MaxNodes)
	}
	return nil
}
