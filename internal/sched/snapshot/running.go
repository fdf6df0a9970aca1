package snapshot

import (
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// endingSoon is how long a job that is past its end is expected to stay
// (Snapshot.Overtime).
const endingSoon = 10

// running is the planner's form of a job that holds resources.
func (v *View) running(b *v1alpha1.BatchJob) backfill.Running {
	out := backfill.Running{ID: b.Spec.JobID, End: v.end(b), Exclusive: v.exclusive(b), Reservation: reserve.Of(b)}
	out.End = min(out.End, v.reservationEnds(b))
	out.User, out.Licenses = v.userNumber(b.Spec.User), licenses(&b.Spec.Job)
	if p := v.partition(b.Status.Partition); p != nil {
		out.UserExclusive = b.Spec.Job.Placement.Exclusive == "user" || p.spec.ExclusiveUser
	}
	if len(b.Status.Allocation.Nodes) > 0 {
		out.Share = int(b.Status.Allocation.Nodes[0].Sharers)
	}
	for i := range b.Status.Allocation.Nodes {
		a := &b.Status.Allocation.Nodes[i]
		n, ok := v.index(a)
		if !ok {
			continue
		}
		cpus, err := backfill.ParseCPUSet(a.CPUIDs)
		if err != nil || a.CPUIDs == "" {
			cpus = backfill.CPUSet{}
			cpus.AddRange(0, int(a.CPUs))
		}
		h := backfill.NodeAllocation{Node: n, CPUs: cpus, Memory: a.Memory}
		for _, g := range a.GRES {
			h.GRES = append(h.GRES, backfill.GRES{Name: g.Name, Type: g.Type, Count: g.Count})
		}
		out.Allocation = append(out.Allocation, h)
	}
	return out
}

// end is the second the job will have ended in at the latest, or should have.
func (v *View) end(b *v1alpha1.BatchJob) int64 {
	if b.Status.State == v1alpha1.StateCompleting {
		return 0 // any time now
	}
	if p := b.Status.Preempt; p != nil {
		return p.Due.Unix() + endingSoon
	}
	d := duration(b.Status.TimeLimit)
	if d == backfill.Forever || b.Status.StartTime == nil {
		return backfill.Forever
	}
	return b.Status.StartTime.Unix() + d
}

func (v *View) exclusive(b *v1alpha1.BatchJob) bool {
	p := v.partition(b.Status.Partition)
	e := b.Spec.Job.Placement.Exclusive
	return e != "" && e != "user" || p != nil && strings.EqualFold(p.spec.OverSubscribe, "EXCLUSIVE")
}

// index is the number of the node that a is on.
func (v *View) index(a *v1alpha1.NodeAllocation) (int, bool) {
	if a.Node != "" {
		i, ok := v.byObject[a.Node]
		return i, ok
	}
	i, ok := v.byName[a.Name]
	return i, ok
}

// Allocation is the decision's placement as the job's status keeps it. Devices
// that it names are given to no later decision of this view; not safe for
// concurrent use.
func (v *View) Allocation(d backfill.Decision) *v1alpha1.Allocation {
	out := &v1alpha1.Allocation{}
	for _, a := range d.Nodes {
		n := v1alpha1.NodeAllocation{
			Name:   v.Nodes[a.Node].Name,
			Node:   v.nodes[a.Node].object.Name,
			CPUs:   int32(a.CPUs.Len()),
			CPUIDs: a.CPUs.String(),
			Memory: a.Memory,
			Tasks:  int32(a.Tasks),
		}
		if w := v.sharersOf(d.ID); w > 1 {
			n.Sharers = int32(w)
		}
		for _, g := range a.GRES {
			n.GRES = append(n.GRES, v1alpha1.GRESAllocation{Name: g.Name, Type: g.Type, Count: g.Count, Indexes: v.assignDevices(a.Node, g)})
		}
		out.Nodes = append(out.Nodes, n)
	}
	if b := v.Job(d.ID); b != nil {
		v.batchHostFirst(out.Nodes, b.Spec.Job.Placement.Batch)
	}
	return out
}

// Names are the short names of the decision's nodes.
func (v *View) Names(d backfill.Decision) []string {
	out := make([]string, 0, len(d.Nodes))
	for _, a := range d.Nodes {
		out = append(out, v.Nodes[a.Node].Name)
	}
	return out
}

// sharersOf is how many jobs may have the CPUs of a pending job.
func (v *View) sharersOf(id int64) int {
	w := v.wanted[id]
	return w.Sharers
}
