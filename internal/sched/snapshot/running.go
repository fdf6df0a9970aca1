package snapshot

import (
	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// overtime is how many more seconds a job that should have ended is expected to run
// (backfill.Snapshot.Overtime).
const overtime = 10

// buildRunning returns a job that holds resources in the planner's terms.
func (s *Snapshot) buildRunning(b *v1alpha1.BatchJob) backfill.Running {
	p := s.Partition(b.Status.Partition)
	out := backfill.Running{
		ID:          b.Spec.JobID,
		End:         min(s.latestEnd(b), s.reservationEnd(b)),
		Exclusive:   isExclusive(&b.Spec.Job.Placement, p),
		Reservation: reserve.Of(b),
		User:        s.userNumber(b.Spec.User),
		Licenses:    licenses(&b.Spec.Job),
	}
	if p != nil {
		out.UserExclusive = b.Spec.Job.Placement.Exclusive == "user" || p.Spec.ExclusiveUser
	}
	if len(b.Status.Allocation.Nodes) > 0 {
		out.Share = int(b.Status.Allocation.Nodes[0].Sharers)
	}
	for i := range b.Status.Allocation.Nodes {
		a := &b.Status.Allocation.Nodes[i]
		n, ok := s.allocatedNode(a)
		if !ok {
			continue
		}
		cpus, err := backfill.ParseCPUSet(a.CPUIDs)
		if err != nil || a.CPUIDs == "" {
			cpus = backfill.CPUSet{}
			cpus.AddRange(0, int(a.CPUs))
		}
		held := backfill.NodeAllocation{Node: n, CPUs: cpus, Memory: a.Memory}
		for _, g := range a.GRES {
			held.GRES = append(held.GRES, backfill.GRES{Name: g.Name, Type: g.Type, Count: g.Count})
		}
		out.Allocation = append(out.Allocation, held)
	}
	return out
}

// latestEnd returns when the job ends at the latest according to its limits, in Unix
// seconds: 0 if it is ending, backfill.Forever if it has no time limit. The time that it
// was suspended does not count towards its time limit.
func (s *Snapshot) latestEnd(b *v1alpha1.BatchJob) int64 {
	if b.Status.State == v1alpha1.StateCompleting {
		return 0 // any time now
	}
	if p := b.Status.Preempt; p != nil {
		return p.Due.Unix() + overtime
	}
	d := duration(b.Status.TimeLimit)
	if d == backfill.Forever || b.Status.StartTime == nil {
		return backfill.Forever
	}
	if boot := s.bootOf(b); boot > 0 {
		return s.Now + boot + d // its time begins when its nodes have booted
	}
	return b.Status.StartTime.Unix() + d + b.Status.Suspended
}

// bootOf returns how many seconds the job still waits for its nodes to boot.
func (s *Snapshot) bootOf(b *v1alpha1.BatchJob) int64 {
	boot := int64(0)
	if b.Status.State != v1alpha1.StateConfiguring {
		return boot
	}
	for i := range b.Status.Allocation.Nodes {
		if n, ok := s.allocatedNode(&b.Status.Allocation.Nodes[i]); ok {
			boot = max(boot, s.Nodes[n].Boot)
		}
	}
	return boot
}

// allocatedNode returns the number of the node of an allocation.
func (s *Snapshot) allocatedNode(a *v1alpha1.NodeAllocation) (int, bool) {
	if i, ok := s.byObject[a.Node]; ok {
		return i, ok
	}
	if i, ok := s.byComing[a.Node]; ok {
		return i, ok
	}
	if a.Node != "" && a.Node != a.Name {
		return 0, false
	}
	// The Node object of a pool's node may have come with another name since.
	i, ok := s.byName[a.Name]
	return i, ok
}
