package snapshot

import (
	"errors"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// What Slurm says of a job that could never run, after "Batch job submission
// failed: " (observed with 22.05.8).
var (
	ErrPartition     = errors.New("Invalid partition name specified")                                //nolint:staticcheck // Slurm's text
	ErrPartitionDown = errors.New("Required partition not available (inactive or drain)")            //nolint:staticcheck // Slurm's text
	ErrProcessors    = errors.New("More processors requested than permitted")                        //nolint:staticcheck // Slurm's text
	ErrNodeCount     = errors.New("Node count specification invalid")                                //nolint:staticcheck // Slurm's text
	ErrNodeName      = errors.New("Invalid node name specified")                                     //nolint:staticcheck // Slurm's text
	ErrNotInPart     = errors.New("Requested nodes not in this partition")                           //nolint:staticcheck // Slurm's text
	ErrFeature       = errors.New("Invalid feature specification")                                   //nolint:staticcheck // Slurm's text
	ErrPrefer        = errors.New("Invalid preferred feature specification")                         //nolint:staticcheck // Slurm's text
	ErrGRES          = errors.New("Invalid generic resource (gres) specification")                   //nolint:staticcheck // Slurm's text
	ErrMemory        = errors.New("Memory required by task is not available")                        //nolint:staticcheck // Slurm's text
	ErrTimeLimit     = errors.New("Requested time limit is invalid (missing or exceeds some limit)") //nolint:staticcheck // Slurm's text
	ErrBatchHost     = errors.New("Job --batch option is invalid or not a subset of --constraints")  //nolint:staticcheck // Slurm's text
	// What releases of Slurm that have --segment say.
	ErrTopology = errors.New("Requested topology configuration is not available") //nolint:staticcheck // Slurm's text
	// Two lines, of which the first stands before "Batch job submission failed".
	ErrNodeCPUs   = errors.New("CPU count per node can not be satisfied\nRequested node configuration is not available")           //nolint:staticcheck // Slurm's text
	ErrNodeMemory = errors.New("Memory specification can not be satisfied\nRequested node configuration is not available")         //nolint:staticcheck // Slurm's text
	ErrNodeDisk   = errors.New("Temporary disk specification can not be satisfied\nRequested node configuration is not available") //nolint:staticcheck // Slurm's text
	ErrNodeConfig = errors.New("Requested node configuration is not available")                                                    //nolint:staticcheck // Slurm's text
)

// Feasible says why the job could never run, however empty the cluster: one
// of the errors above, or nil. The job need not be admitted yet.
func (v *View) Feasible(b *v1alpha1.BatchJob) error {
	names := b.Spec.Job.Partitions
	if len(names) == 0 {
		names = []string{b.Spec.Partition}
	}
	var first error
	for i, name := range names {
		err := v.feasibleIn(b, v.partitionOf(b, name))
		if err == nil {
			return nil
		}
		if i == 0 {
			first = err
		}
	}
	return first
}

// feasibleIn is Feasible for one of the job's partitions; p may be nil.
func (v *View) feasibleIn(b *v1alpha1.BatchJob, p *partition) error {
	if p == nil {
		return ErrPartition
	}
	switch strings.ToUpper(p.spec.State) {
	case "INACTIVE", "DRAIN":
		return ErrPartitionDown
	}
	for _, check := range []func(*job.Job, *partition) error{v.checkNames, v.checkCounts, v.checkLimits} {
		if err := check(&b.Spec.Job, p); err != nil {
			return err
		}
	}
	if b.Spec.Job.Hold != "" {
		return nil // Slurm looks at it when the job could start
	}
	return v.checkShape(b, p)
}

// checkNames: nodes, features and generic resources must exist.
func (v *View) checkNames(j *job.Job, p *partition) error {
	for _, n := range j.Placement.NodeList {
		i, ok := v.byName[n]
		if !ok {
			return ErrNodeName
		}
		if !p.nodes.Has(i) {
			return ErrNotInPart
		}
	}
	for _, n := range j.Placement.Exclude {
		if _, ok := v.byName[n]; !ok {
			return ErrNodeName
		}
	}
	if err := v.checkFeatures(j.Placement.Constraint, ErrFeature); err != nil {
		return err
	}
	if err := v.checkFeatures(j.Placement.Prefer, ErrPrefer); err != nil {
		return err
	}
	if !batchHostNamed(&j.Placement) {
		return ErrBatchHost
	}
	if s, n := j.Placement.Segment, j.Shape.MinNodes; s > 0 && n%s != 0 && j.Shape.MaxNodes == n {
		return ErrTopology
	}
	for _, g := range j.Shape.GRES {
		if !v.hasGRES(g.Name) {
			return ErrGRES
		}
	}
	return nil
}

// checkFeatures gives unknown where a node has none of some feature.
func (v *View) checkFeatures(text string, unknown error) error {
	if text == "" {
		return nil
	}
	c, err := value.ParseConstraint(text)
	if err != nil {
		return ErrFeature
	}
	for _, f := range c.Names {
		if !v.features[f] {
			return unknown
		}
	}
	return nil
}

func (v *View) hasGRES(name string) bool {
	return slices.ContainsFunc(v.Nodes, func(n backfill.Node) bool {
		return slices.ContainsFunc(n.GRES, func(g backfill.GRES) bool { return g.Name == name })
	})
}

// checkCounts: no more CPUs and nodes than the partition has. A cluster without
// nodes may yet get some.
func (v *View) checkCounts(j *job.Job, p *partition) error {
	if len(v.Nodes) == 0 {
		return nil
	}
	cpus := 0
	for _, i := range p.nodes.Members() {
		cpus += v.Nodes[i].CPUs
	}
	s := &j.Shape
	wanted := int(max(s.Tasks, s.MinNodes*max(1, s.TasksPerNode), 1)) * int(max(1, s.CPUsPerTask))
	if s.Overcommit {
		wanted = int(max(1, s.MinNodes)) * int(max(1, s.CPUsPerTask))
	}
	if wanted > cpus {
		return ErrProcessors
	}
	if int(s.MinNodes) > p.nodes.Len() {
		return ErrNodeCount
	}
	return nil
}

// checkLimits: the partition's limits, where they are to be enforced at
// submission (EnforcePartLimits); else the job waits with a reason.
func (v *View) checkLimits(j *job.Job, p *partition) error {
	if most := p.spec.MaxMemPerNode; most != nil && *most > 0 && j.Shape.MemPerNode != nil && *j.Shape.MemPerNode > *most {
		return ErrMemory
	}
	if e := strings.ToUpper(v.params.EnforcePartLimits); e == "" || e == "NO" {
		return nil
	}
	switch {
	case p.spec.MaxNodes > 0 && max(1, j.Shape.MinNodes) > p.spec.MaxNodes:
		return ErrNodeCount
	case exceeds(p.timeLimit(j), p.maxTime()):
		return ErrTimeLimit
	}
	return nil
}

// checkShape asks the planner whether the job fits on the nodes when they are
// empty and all of them are up.
func (v *View) checkShape(b *v1alpha1.BatchJob, p *partition) error {
	one := backfill.Job{ID: 1, Duration: backfill.Forever}
	v.fill(&one, &b.Spec.Job, p)
	if len(v.Nodes) == 0 {
		return nil // nodes may yet come
	}
	cluster := backfill.Snapshot{Now: v.Now, Nodes: v.Nodes}
	if cluster.NeverRunnable(&one) != backfill.ReasonBadConstraints {
		return nil
	}
	if most := int(p.largest); one.CPUsPerTask > most || one.MinCPUs > most {
		return ErrNodeCPUs
	}
	return v.tooMuch(&b.Spec.Job.Shape, p)
}

// tooMuch says what of the request no single node of the partition has.
func (v *View) tooMuch(s *job.Shape, p *partition) error {
	memory, disk := false, false
	for _, i := range p.nodes.Members() {
		had := int64(v.Nodes[i].Memory)
		memory = memory || (s.MemPerNode == nil || *s.MemPerNode <= had) && (s.MemPerCPU == nil || *s.MemPerCPU <= had)
		disk = disk || v.hasDisk(i, s.TmpDisk)
	}
	switch {
	case !memory:
		return ErrNodeMemory
	case !disk:
		return ErrNodeDisk
	}
	return ErrNodeConfig
}
