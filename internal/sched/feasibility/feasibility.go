// Package feasibility checks at submission whether a job could ever run in the
// cluster, and reports in Slurm's words why not. It is pure.
package feasibility

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// Slurm's messages about jobs that could never run, which follow "Batch job
// submission failed: " (observed with 22.05.8).
//
//nolint:staticcheck // the texts are Slurm's
var (
	ErrPartition     = errors.New("Invalid partition name specified")
	ErrPartitionDown = errors.New("Required partition not available (inactive or drain)")
	ErrProcessors    = errors.New("More processors requested than permitted")
	ErrNodeCount     = errors.New("Node count specification invalid")
	ErrNodeName      = errors.New("Invalid node name specified")
	ErrNotInPart     = errors.New("Requested nodes not in this partition")
	ErrFeature       = errors.New("Invalid feature specification")
	ErrPrefer        = errors.New("Invalid preferred feature specification")
	ErrGRES          = errors.New("Invalid generic resource (gres) specification")
	ErrMemory        = errors.New("Memory required by task is not available")
	ErrTimeLimit     = errors.New("Requested time limit is invalid (missing or exceeds some limit)")
	ErrBatchHost     = errors.New("Job --batch option is invalid or not a subset of --constraints")
	// ErrTopology is the message of releases of Slurm that have --segment.
	ErrTopology   = errors.New("Requested topology configuration is not available")
	ErrNodeConfig = errors.New("Requested node configuration is not available")

	// The following have two lines. Slurm prints the first before "Batch job
	// submission failed".

	ErrNodeCPUs   = twoLines("CPU count per node can not be satisfied", ErrNodeConfig)
	ErrNodeMemory = twoLines("Memory specification can not be satisfied", ErrNodeConfig)
	ErrNodeDisk   = twoLines("Temporary disk specification can not be satisfied", ErrNodeConfig)
	ErrNodeShape  = twoLines("Socket, core and/or thread specification can not be satisfied", ErrNodeConfig)
)

func twoLines(first string, second error) error { return errors.New(first + "\n" + second.Error()) }

// Check returns why the job could never run, however empty the cluster: one of the
// errors above, or nil. The job need not be admitted yet. It is not safe for
// concurrent use of one snapshot.
func Check(s *snapshot.Snapshot, b *v1alpha1.BatchJob) error { return CheckUpTo(Shape, s, b) }

// Stage is how far a job is checked. Slurm checks other things between the stages.
type Stage int

// Each stage includes those before it.
const (
	Size       Stage = iota // the nodes that the job requires exist, and as many nodes and CPUs as it requests
	Exclusions              // the nodes that the job excludes exist
	Names                   // features and generic resources exist
	Shape                   // the job fits on the nodes
)

// CheckUpTo is Check up to a stage. One of the job's partitions must accept it; with
// EnforcePartLimits=ALL, each of them must have the required nodes, and as many nodes and
// CPUs as the job requests.
func CheckUpTo(stage Stage, s *snapshot.Snapshot, b *v1alpha1.BatchJob) error {
	names := snapshot.PartitionNames(b)
	if strings.EqualFold(s.Parameters().EnforcePartLimits, "ALL") && len(names) > 1 {
		for _, name := range names {
			if err := checkPartition(Size, s, b, s.PartitionFor(b, name)); err != nil {
				return err
			}
		}
	}
	var first error
	for i, name := range names {
		err := checkPartition(stage, s, b, s.PartitionFor(b, name))
		if err == nil {
			return nil
		}
		if i == 0 {
			first = err
		}
	}
	return first
}

// checkPartition checks the job in one of its partitions; p may be nil.
func checkPartition(stage Stage, s *snapshot.Snapshot, b *v1alpha1.BatchJob, p *snapshot.Partition) error {
	if p == nil {
		return ErrPartition
	}
	switch strings.ToUpper(p.Spec.State) {
	case "INACTIVE", "DRAIN":
		return ErrPartitionDown
	}
	for of, checks := range [][]func(*snapshot.Snapshot, *job.Job, *snapshot.Partition) error{
		Size: {checkRequired, checkCounts, checkMembership}, Exclusions: {checkExcluded}, Names: {checkNames},
		Shape: {checkLimits},
	} {
		for _, check := range checks {
			if Stage(of) > stage {
				return nil
			}
			if err := check(s, &b.Spec.Job, p); err != nil {
				return err
			}
		}
	}
	if b.Spec.Job.Hold != "" {
		return nil // Slurm checks the shape of a held job when the job is released
	}
	return checkShape(s, &b.Spec.Job, p)
}

// CheckNodes checks that the nodes that the job requires exist.
func CheckNodes(s *snapshot.Snapshot, j *job.Job) error { return checkNodes(s, j.Placement.NodeList) }

// checkRequired is CheckNodes that also checks the number of nodes of a contiguous job, which needs
// those between the nodes of its list, too.
func checkRequired(s *snapshot.Snapshot, j *job.Job, _ *snapshot.Partition) error {
	if err := CheckNodes(s, j); err != nil {
		return err
	}
	if !j.Placement.Contiguous || j.Shape.MaxNodes == 0 || len(j.Placement.NodeList) == 0 {
		return nil
	}
	first, last := len(s.Nodes), 0
	for _, name := range j.Placement.NodeList {
		i, _ := s.NodeNumber(name)
		first, last = min(first, s.Nodes[i].Position), max(last, s.Nodes[i].Position)
	}
	if last-first >= int(j.Shape.MaxNodes) {
		return ErrNodeCount
	}
	return nil
}

// checkExcluded checks that the nodes that the job excludes exist.
func checkExcluded(s *snapshot.Snapshot, j *job.Job, _ *snapshot.Partition) error {
	return checkNodes(s, j.Placement.Exclude)
}

func checkNodes(s *snapshot.Snapshot, names []string) error {
	for _, n := range names {
		if _, ok := s.NodeNumber(n); !ok {
			return ErrNodeName
		}
	}
	return nil
}

// checkMembership checks that the required nodes are in the partition.
func checkMembership(s *snapshot.Snapshot, j *job.Job, p *snapshot.Partition) error {
	for _, n := range j.Placement.NodeList {
		if i, ok := s.NodeNumber(n); ok && !p.Nodes.Has(i) {
			return ErrNotInPart
		}
	}
	return nil
}

// checkNames checks that the features and generic resources that the job names exist.
func checkNames(s *snapshot.Snapshot, j *job.Job, _ *snapshot.Partition) error {
	if !snapshot.IsValidBatchHost(&j.Placement) {
		return ErrBatchHost
	}
	if err := checkFeatures(s, j.Placement.Constraint, ErrFeature); err != nil {
		return err
	}
	if err := checkFeatures(s, j.Placement.Prefer, ErrPrefer); err != nil {
		return err
	}
	segment, nodes := j.Placement.Segment, j.Shape.MinNodes
	if segment > 0 && nodes%segment != 0 && j.Shape.MaxNodes == nodes {
		return ErrTopology
	}
	return CheckGRES(s, j)
}

// CheckGRES checks that the generic resources that the job names exist.
func CheckGRES(s *snapshot.Snapshot, j *job.Job) error {
	for _, g := range j.Shape.GRES {
		if g.Count > 0 && !hasGRES(s, g.Name) {
			return ErrGRES
		}
	}
	return nil
}

// checkFeatures returns invalid if no node has one of the features.
func checkFeatures(s *snapshot.Snapshot, constraint string, invalid error) error {
	if constraint == "" {
		return nil
	}
	c, err := value.ParseConstraint(constraint)
	switch {
	case err != nil && strings.Count(constraint, "(") > strings.Count(constraint, ")"):
		return invalid
	case err != nil: // as in Slurm, also if they are preferred
		return ErrFeature
	}
	for _, f := range c.Names {
		if !s.HasFeature(f) {
			return invalid
		}
	}
	return nil
}

func hasGRES(s *snapshot.Snapshot, name string) bool {
	return slices.ContainsFunc(s.Nodes, func(n backfill.Node) bool {
		return slices.ContainsFunc(n.GRES, func(g backfill.GRES) bool { return g.Name == name })
	})
}

// checkCounts checks that the partition has as many CPUs and nodes as the job
// requests. A cluster without nodes may get some later.
func checkCounts(s *snapshot.Snapshot, j *job.Job, p *snapshot.Partition) error {
	if len(s.Nodes) == 0 {
		return nil
	}
	shape := &j.Shape
	tasks := max(int(shape.Tasks), int(shape.MinNodes)*int(max(1, shape.TasksPerNode)), 1)
	if shape.Overcommit {
		tasks = int(max(1, shape.MinNodes))
	}
	tasks = min(tasks, math.MaxInt32) // more than any cluster runs; the product does not overflow
	if tasks*int(max(1, shape.CPUsPerTask)) > p.CPUs || geometryCPUs(j) > float64(p.CPUs) {
		return ErrProcessors
	}
	if int(shape.MinNodes) > p.Nodes.Len() {
		return ErrNodeCount
	}
	return nil
}

// geometryCPUs returns the CPUs of the requested nodes if each has the requested sockets, cores
// and threads, which Slurm requires of a job with a number of nodes and none of tasks. It is a
// float because the product of four requests may overflow.
func geometryCPUs(j *job.Job) float64 {
	s := &j.Shape
	if s.Tasks > 0 || s.Overcommit || s.MaxNodes > s.MinNodes {
		return 0
	}
	return float64(s.MinNodes) * float64(max(1, s.SocketsPerNode)) * float64(max(1, s.CoresPerSocket)) *
		float64(max(1, s.ThreadsPerCore))
}

// checkLimits checks the partition's memory limit and, if the cluster enforces them
// at submission (EnforcePartLimits), its other limits. Otherwise the job waits, with
// a reason.
func checkLimits(s *snapshot.Snapshot, j *job.Job, p *snapshot.Partition) error {
	limit, request := p.Spec.MaxMemPerNode, j.Shape.MemPerNode
	if limit != nil && *limit > 0 && request != nil && *request > *limit {
		return ErrMemory
	}
	if e := strings.ToUpper(s.Parameters().EnforcePartLimits); e == "" || e == "NO" {
		return nil
	}
	switch {
	case p.Spec.MaxNodes > 0 && max(1, j.Shape.MinNodes) > p.Spec.MaxNodes:
		return ErrNodeCount
	case p.ExceedsMaxTime(j):
		return ErrTimeLimit
	}
	return nil
}

// checkShape checks with the planner whether the job fits on the nodes if all of them
// are up and empty.
func checkShape(s *snapshot.Snapshot, j *job.Job, p *snapshot.Partition) error {
	request := s.Request(j, p)
	if len(s.Nodes) == 0 {
		return nil // the cluster may get nodes later
	}
	if !hasGeometry(s, &j.Shape, p) {
		return ErrNodeConfig
	}
	empty := backfill.Snapshot{Now: s.Now, Nodes: s.Nodes}
	if empty.NeverRunnable(&request) != backfill.ReasonBadConstraints {
		return nil
	}
	if !hasFeatures(s, j.Placement.Constraint, p) {
		return ErrNodeConfig
	}
	if largest := int(p.LargestNode); request.CPUsPerTask > largest || request.MinCPUs > largest {
		return ErrNodeCPUs
	}
	return exceededOnEachNode(s, &j.Shape, p)
}

// hasFeatures reports whether a node of the partition has the features of --constraint: all of
// them, or those that some of the nodes must have. Slurm names no other reason if none has.
func hasFeatures(s *snapshot.Snapshot, constraint string, p *snapshot.Partition) bool {
	c, err := value.ParseConstraint(constraint)
	if constraint == "" || err != nil {
		return true
	}
	return slices.ContainsFunc(p.Nodes.Members(), func(i int) bool {
		features := s.NodeFeatures(i)
		has := func(f string) bool { return slices.Contains(features, f) }
		return slices.ContainsFunc(c.Alternatives, func(a value.Alternative) bool {
			return a.Every.Met(has) && (len(a.Some) == 0 ||
				slices.ContainsFunc(a.Some, func(some value.CountedFeatures) bool { return some.Is.Met(has) }))
		})
	})
}

// hasGeometry reports whether a node of the partition has as many CPUs as the job requests
// per GPU, and sockets with as many CPUs as it requests tasks per socket or core. Slurm checks
// them also for a job without GPUs and with fewer tasks.
func hasGeometry(s *snapshot.Snapshot, shape *job.Shape, p *snapshot.Partition) bool {
	return slices.ContainsFunc(p.Nodes.Members(), func(i int) bool {
		n := &s.Nodes[i]
		perSocket := n.CPUs / max(1, n.Sockets)
		return int(shape.CPUsPerGPU) <= n.CPUs && int(shape.TasksPerSocket) <= perSocket &&
			int(shape.TasksPerCore) <= perSocket
	})
}

// exceededOnEachNode returns an error that names the request which no single node of
// the partition can satisfy.
func exceededOnEachNode(s *snapshot.Snapshot, shape *job.Shape, p *snapshot.Partition) error {
	memory, disk, cores := false, false, false
	for _, i := range p.Nodes.Members() {
		memory = memory || fitsMemory(shape, s.Nodes[i].Memory)
		disk = disk || s.HasTmpDisk(i, shape.TmpDisk)
		cores = cores || fitsCores(shape, &s.Nodes[i])
	}
	switch {
	case !memory:
		return ErrNodeMemory
	case !disk:
		return ErrNodeDisk
	case !cores:
		return ErrNodeShape
	}
	return ErrNodeConfig
}

// fitsCores reports whether the node has as many sockets, cores and threads as requested.
func fitsCores(shape *job.Shape, n *backfill.Node) bool {
	sockets, threads := max(1, n.Sockets), max(1, n.ThreadsPerCore)
	return int(shape.SocketsPerNode) <= sockets && int(shape.CoresPerSocket) <= n.CPUs/threads/sockets &&
		int(shape.ThreadsPerCore) <= threads
}

func fitsMemory(shape *job.Shape, memory int64) bool {
	if shape.MemPerNode != nil && *shape.MemPerNode > memory {
		return false
	}
	return shape.MemPerCPU == nil || *shape.MemPerCPU <= memory
}
