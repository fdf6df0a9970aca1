package snapshot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/gres"
	"github.com/berth-hpc/berth/translate/job"
)

// Request returns what j requests in the partition, without a time limit.
func (s *Snapshot) Request(j *job.Job, p *Partition) backfill.Job {
	out := backfill.Job{ID: 1, Duration: backfill.Forever}
	s.buildRequest(&out, j, p)
	return out
}

// buildRequest sets the nodes, CPUs, memory and generic resources that j requests.
func (s *Snapshot) buildRequest(out *backfill.Job, j *job.Job, p *Partition) {
	shape, pl := &j.Shape, &j.Placement
	out.Partition = p.number
	if out.Eligible == nil {
		s.addChoices(out, nil, []*Partition{p}, predicatesOf(j), nil)
	}
	for _, name := range pl.NodeList {
		if i, ok := s.byName[name]; ok {
			out.Required = append(out.Required, i)
		}
	}
	out.MinNodes = max(int(j.LeastNodes()), int(p.Spec.MinNodes))
	out.MaxNodes = int(shape.MaxNodes)
	if limit := int(p.Spec.MaxNodes); limit > 0 && out.MaxNodes > limit {
		out.MaxNodes = max(limit, out.MinNodes)
	}
	out.Tasks, out.TasksPerNode = int(shape.Tasks), int(shape.TasksPerNode)
	out.ExactPerNode = shape.Tasks == 0 && shape.TasksPerNode > 0
	out.CPUsPerTask, out.MinCPUs = int(shape.CPUsPerTask), int(shape.MinCPUs)
	if out.Overcommit = shape.Overcommit; shape.Overcommit {
		out.MinCPUs = 0
	}
	out.Exclusive = isExclusive(pl, p)
	out.UserExclusive = pl.Exclusive == "user" || p.Spec.ExclusiveUser
	out.Share = maxSharers(p, pl.OverSubscribe)
	setLayout(out, shape, pl)
	s.spreadGPUs(out, shape, p)
	setGRES(out, shape)
	limitTasksPerGPU(out, shape)
	s.setMemory(out, shape, p)
}

// isExclusive reports whether a job gets whole nodes.
func isExclusive(pl *job.Placement, p *Partition) bool {
	return pl.Exclusive != "" && pl.Exclusive != "user" ||
		p != nil && strings.EqualFold(p.Spec.OverSubscribe, "EXCLUSIVE")
}

// limitTasksPerGPU limits the tasks on a node to those that its GPUs serve
// (--ntasks-per-gpu).
func limitTasksPerGPU(out *backfill.Job, shape *job.Shape) {
	for _, g := range out.GRES {
		limit := int(g.Count) * int(shape.TasksPerGPU)
		if g.Name != "gpu" || limit <= 0 || out.ExactPerNode {
			continue
		}
		if out.TasksPerNode == 0 || limit < out.TasksPerNode {
			out.TasksPerNode = limit
		}
	}
}

// setLayout sets what the job requests of sockets, cores, threads and the network.
func setLayout(out *backfill.Job, shape *job.Shape, pl *job.Placement) {
	out.SocketsPerNode = int(shape.SocketsPerNode)
	out.CoresPerSocket = int(shape.CoresPerSocket)
	out.ThreadsPerCore = int(shape.ThreadsPerCore)
	out.TasksPerSocket, out.TasksPerCore = int(shape.TasksPerSocket), int(shape.TasksPerCore)
	switch pl.Hint {
	case "nomultithread", "compute_bound":
		out.NoMultithread = true
	case "memory_bound": // one core of each socket
		out.NoMultithread, out.TasksPerSocket = true, 1
	}
	out.NoMultithread = out.NoMultithread || shape.ThreadsPerCore == 1
	levels, _, _ := strings.Cut(pl.Distribution, ",")
	if l := strings.Split(levels, ":"); len(l) > 1 && l[1] == "block" {
		out.CoreDistribution = backfill.CoresBlock
	}
	out.SpreadJob, out.UseMinNodes = pl.SpreadJob, pl.UseMinNodes
	out.Contiguous, out.Switches = pl.Contiguous, int(pl.Switches)
	out.Segment = int(pl.Segment)
	switch pl.Segments {
	case job.SegmentsTogether:
		out.SegmentLayout = backfill.SegmentsConsolidated
	case job.SegmentsApart:
		out.SegmentLayout = backfill.SegmentsSpread
	}
}

// licenses returns the licenses that the job requests or holds, one entry for each name.
func licenses(j *job.Job) []backfill.License {
	out := make([]backfill.License, 0, len(j.Licenses))
	for _, l := range j.Licenses {
		total := int64(max(1, l.Count))
		if i := slices.IndexFunc(out, func(o backfill.License) bool { return o.Name == l.Name }); i >= 0 {
			out[i].Total += total
			continue
		}
		out = append(out, backfill.License{Name: l.Name, Total: total})
	}
	return out
}

// addLicenses adds the cluster's licenses, ordered by name.
func (s *Snapshot) addLicenses() {
	for name, count := range s.params.Licenses {
		s.Licenses = append(s.Licenses, backfill.License{Name: name, Total: int64(count)})
	}
	slices.SortFunc(s.Licenses, func(a, b backfill.License) int { return strings.Compare(a.Name, b.Name) })
}

// sharersBound is the greatest number of jobs that a partition may let share a CPU.
const sharersBound = 64

// maxSharers returns how many jobs may share a CPU in the partition (slurm.conf(5),
// OverSubscribe); 1: none may.
func maxSharers(p *Partition, requested bool) int {
	word, count, counted := strings.Cut(strings.ToUpper(p.Spec.OverSubscribe), ":")
	if word != "FORCE" && (word != "YES" || !requested) {
		return 1
	}
	if n, err := strconv.Atoi(count); counted && err == nil && n > 0 {
		return min(n, sharersBound)
	}
	return 4
}

// setGRES converts the generic resources, whose scope may be a job, node, socket
// or task, to those of each node and each task.
func setGRES(out *backfill.Job, shape *job.Shape) {
	for _, d := range shape.GRESDemands() {
		onNode := d.OnNode(shape)
		switch {
		case onNode > 0:
			setNodesOfTotal(out, d.Job, onNode)
			limitTasksToGRES(out, d.Task, onNode)
		case d.Task > 0:
			if out.Tasks == 0 && d.Job > 0 {
				out.Tasks = int(min(d.Job/d.Task, 1<<30))
			}
			each := backfill.GRES{Name: d.Name, Type: d.Type, Count: d.Task}
			out.GRESPerTask = gres.Add(out.GRESPerTask, []backfill.GRES{each})
			continue
		case d.Job > 0:
			n := int64(max(1, out.MinNodes))
			onNode = (d.Job + n - 1) / n
			out.GRESTotal = append(out.GRESTotal, backfill.GRES{Name: d.Name, Type: d.Type, Count: d.Job})
			out.MaxNodes = min(out.MaxNodes, max(int(d.Job), out.MinNodes))
		default: // a count of 0
			continue
		}
		out.GRES = gres.Add(out.GRES, []backfill.GRES{{Name: d.Name, Type: d.Type, Count: onNode}})
		if shape.CPUsPerGPU > 0 && d.Name == "gpu" {
			out.MinCPUs = max(out.MinCPUs, int(onNode)*int(shape.CPUsPerGPU))
		}
	}
}

// setNodesOfTotal sets the number of nodes of a job that requests a total of a
// resource and how many of it on each node.
func setNodesOfTotal(out *backfill.Job, total, onNode int64) {
	if total == 0 {
		return
	}
	nodes := int(min(max(1, total/onNode), 1<<30))
	out.MinNodes, out.MaxNodes = max(out.MinNodes, nodes), max(out.MinNodes, nodes)
}

// limitTasksToGRES limits the tasks on a node to those that its share of a resource
// serves; each task needs perTask (0: none).
func limitTasksToGRES(out *backfill.Job, perTask, onNode int64) {
	if perTask == 0 {
		return
	}
	limit := int(min(max(1, onNode/perTask), 1<<30))
	if out.TasksPerNode == 0 || limit < out.TasksPerNode {
		out.TasksPerNode = limit
	}
}

// setMemory sets the memory that the job requests, or the default of the partition
// or the cluster.
func (s *Snapshot) setMemory(out *backfill.Job, shape *job.Shape, p *Partition) {
	part, cluster := p.Spec.MemoryLimits, s.params.MemoryLimits
	switch {
	case shape.MemPerNode != nil:
		out.MemPerNode, out.AllMemory = *shape.MemPerNode, *shape.MemPerNode == 0
	case shape.MemPerCPU != nil && *shape.MemPerCPU == 0: // all of it, like --mem=0
		out.AllMemory = true
	case shape.MemPerCPU != nil:
		out.MemPerCPU = *shape.MemPerCPU
	case shape.MemPerGPU != nil:
		for _, g := range out.GRES {
			if g.Name == "gpu" {
				out.MemPerNode += *shape.MemPerGPU * g.Count
			}
		}
	case part.DefMemPerCPU != nil:
		out.MemPerCPU = *part.DefMemPerCPU
	case part.DefMemPerNode != nil:
		out.MemPerNode = *part.DefMemPerNode
	case cluster.DefMemPerCPU != nil:
		out.MemPerCPU = *cluster.DefMemPerCPU
	case cluster.DefMemPerNode != nil:
		out.MemPerNode = *cluster.DefMemPerNode
	}
}
