package snapshot

import (
	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/array"
)

// together makes the components of a heterogeneous job start at one instant or
// not at all: they are planned as one group, once all of them are there and
// none of them runs or is over.
func (v *View) together(out *backfill.Job, b *v1alpha1.BatchJob) {
	id := array.HetID(b)
	if id == 0 {
		return
	}
	out.Group = id
	if out.Blocked != "" {
		return
	}
	all := v.queue.split[id]
	leader := v.jobs[id]
	if leader == nil || len(all)+1 < int(b.Spec.Job.Het.Size) || !leader.AwaitsStart() {
		out.Blocked = backfill.ReasonPriority
		return
	}
	for _, c := range all {
		if !c.AwaitsStart() {
			out.Blocked = backfill.ReasonPriority
			return
		}
	}
}
