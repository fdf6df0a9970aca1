package srun

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// shape returns the geometry that the options request. Options that contradict each
// other are corrected with a warning, as in srun 22.05: first the number of nodes,
// then --ntasks-per-node.
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
	s.NodesGiven = p.Given["nodes"].From == option.FromCommandLine
	s.MemPerNode, s.MemPerCPU = memory(p)
	gpus(p, &s)
	if s.Tasks > 0 && s.Nodes > s.Tasks {
		warnings = append(warnings, fmt.Sprintf("can't run %d processes on %d nodes, setting nnodes to %d",
			s.Tasks, s.Nodes, s.Tasks))
		s.Nodes, s.MaxNodes, s.NodesGiven = s.Tasks, s.Tasks, true
	}
	given := s.Tasks > 0 && s.TasksPerNode > 0 && s.Nodes > 0
	if given && s.Tasks > s.TasksPerNode && s.Tasks/s.Nodes != s.TasksPerNode {
		warnings = append(warnings, fmt.Sprintf("can't honor --ntasks-per-node set to %d which doesn't match the "+
			"requested tasks %d with the number of requested nodes %d. Ignoring --ntasks-per-node.",
			s.TasksPerNode, s.Tasks, s.Nodes))
		s.TasksPerNode = 0
	}
	return s, warnings
}

// memory returns the memory that the step reserves. Only options on its command line
// count: those of the job are in the environment, and would make every step reserve
// all of the job's memory.
func memory(p *option.Parsed) (perNode, perCPU int64) {
	onCommandLine := func(name string, v *int64) int64 {
		if v == nil || p.Given[name].From != option.FromCommandLine {
			return 0
		}
		return *v
	}
	return onCommandLine("mem", p.Job.Shape.MemPerNode), onCommandLine("mem-per-cpu", p.Job.Shape.MemPerCPU)
}

// gpus sets the GPUs and other generic resources that the step reserves. As for
// memory, only options on its command line count, except --gpus-per-task, which
// describes how tasks share the GPUs.
func gpus(p *option.Parsed, s *step.Shape) {
	own := func(name string) bool { return p.Given[name].From == option.FromCommandLine }
	s.MemPerGPU = p.Job.Shape.MemPerGPU != nil && *p.Job.Shape.MemPerGPU > 0 && own("mem-per-gpu")
	s.NoGPUs = strings.EqualFold(p.Given["gres"].Value, "none") && own("gres")
	for _, d := range p.Job.Shape.GRESDemands() {
		if d.Name != "gpu" {
			if own("gres") && d.Node > 0 {
				s.GRES = append(s.GRES, step.GRES{Name: d.Name, Type: d.Type, Count: d.Node})
			}
			continue
		}
		s.GPUsPerTask += gpuCount(d.Task)
		if own("gpus") {
			s.GPUs += gpuCount(d.Job)
		}
		if own("gres") || own("gpus-per-node") {
			s.GPUsPerNode += gpuCount(d.Node)
		}
	}
}

// gpuCount returns n within bounds that no node exceeds.
func gpuCount(n int64) int32 { return int32(min(n, 1<<20)) }

// checkNodes returns an error if a node is both requested and excluded. It shortens a
// node list that is longer than the number of nodes. If that number is the job's, a longer
// list only names nodes more than once.
func checkNodes(p *option.Parsed, s *step.Shape) (warnings []string, err error) {
	for _, name := range s.NodeList {
		if slices.Contains(s.Exclude, name) {
			return nil, slurmerr.Newf(slurmerr.Refused,
				"Requested node %s is also in the excluded list.\nJob not submitted.", name)
		}
	}
	most, given := int(s.MaxNodes), p.Given["nodes"].From == option.FromCommandLine
	if !given {
		most = int(max(p.Job.Shape.MinNodes, p.Job.Shape.MaxNodes))
	}
	arbitrary := strings.HasPrefix(s.Distribution, "arbitrary")
	if most > 0 && len(s.NodeList) > most && p.Has("nodes") && (given || !arbitrary) {
		warnings = append(warnings, fmt.Sprintf(
			"error: Required nodelist includes more nodes than permitted by max-node count (%d > %d). "+
				"Eliminating nodes from the nodelist.", len(s.NodeList), most))
		if given {
			s.NodeList = s.NodeList[:most]
		}
	}
	return warnings, nil
}

// lookupTimeout limits a request to the cluster that a step can do without.
const lookupTimeout = 5 * time.Second

// checkExcluded returns an error if a node of --exclude does not exist. It queries the
// cluster only about valid names that are not nodes of the job.
func (o *Options) checkExcluded(ctx context.Context, p *option.Parsed) error {
	own, _ := hostlist.Expand(o.p.Env("SLURM_JOB_NODELIST")) // outside of jobs there are none
	unknown := slices.DeleteFunc(slices.Clone(p.Job.Placement.Exclude), func(n string) bool {
		return slices.Contains(own, n)
	})
	if len(unknown) == 0 {
		return nil
	}
	invalid := slurmerr.Newf(slurmerr.Refused,
		"Unable to create step for job %d: Invalid node name specified", p.Step.JobID)
	cluster, err := o.cluster()
	if err != nil {
		return nil //nolint:nilerr // an unknown node excludes nothing
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	list, err := cluster.Nodes(ctx)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	for _, name := range unknown {
		if !slices.ContainsFunc(list.Items, func(n status.Node) bool { return n.Name == name }) {
			return invalid
		}
	}
	return nil
}
