package snapshot

import (
	"slices"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// reasonNodesDown is of a job that names no node and that nodes which are down
// or drained would have to help out.
const reasonNodesDown = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"

// Why is the decision's reason as users see it: of a job that cannot start
// without nodes that are away it names those that the job asks for.
func (v *View) Why(d backfill.Decision) string {
	if d.Reason != backfill.ReasonNodeNotAvail {
		return d.Reason
	}
	j := v.jobs[d.ID]
	if j == nil {
		return d.Reason
	}
	wanted := j.Spec.Job.Placement.NodeList
	if len(wanted) == 0 {
		return reasonNodesDown
	}
	var away []string
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Unavailable && slices.Contains(wanted, n.Name) {
			away = append(away, n.Name)
		}
	}
	if len(away) == 0 {
		return d.Reason
	}
	return d.Reason + ", UnavailableNodes:" + hostlist.Fold(away)
}
