package control

import (
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// A job that stands for a single pod may be ahead of its object: its placement
// and its start are in this process's store only, until the object gets a status
// of its own, with the end of a short pod or a little later. Nothing is lost with
// the process: the object says what waits, and the pod's binding where it runs.

// MayRunAhead tells whether b may be ahead of its object: it stands for one pod
// and its object has no status yet.
func MayRunAhead(b *v1alpha1.BatchJob) bool {
	return Single(b) && (b.Status.Unwritten || reflect.DeepEqual(b.Status, v1alpha1.BatchJobStatus{}))
}

// Single tells whether b stands for one pod that belongs to no group.
func Single(b *v1alpha1.BatchJob) bool {
	w := b.Spec.Workload
	return w != nil && w.Group == "" && len(w.Pods) == 1
}

// GoAhead has n, made from b, take b's place in the store and nowhere else;
// false: b is not the newest version any more.
func (c *Cluster) GoAhead(b, n *v1alpha1.BatchJob) bool {
	n.Status.Unwritten = true
	return c.Jobs.Swap(b, n)
}

// ahead has a newer version of an object keep the status that it has only here.
func ahead(old, now *v1alpha1.BatchJob) *v1alpha1.BatchJob {
	if !old.Status.Unwritten || !Single(old) || now.Status.State != "" {
		return now
	}
	n := *now
	n.Status = old.Status
	return &n
}

// memberIndex finds the place of a pod in a large workload: that of the one
// last asked for, because a gang's pods come one after the other.
type memberIndex struct {
	last atomic.Pointer[members]
}

type members struct {
	pods  *v1alpha1.WorkloadPod // the first of them: another list has another
	count int
	index map[types.UID]int
}

// manyMembers are more than are quickly looked through.
const manyMembers = 16

func (x *memberIndex) of(b *v1alpha1.BatchJob, uid types.UID) (int, bool) {
	pods := b.Spec.Workload.Pods
	if len(pods) <= manyMembers {
		for i := range pods {
			if pods[i].UID == uid {
				return i, true
			}
		}
		return 0, false
	}
	m := x.last.Load()
	if m == nil || m.pods != &pods[0] || m.count != len(pods) {
		m = &members{&pods[0], len(pods), make(map[types.UID]int, len(pods))}
		for i := range pods {
			m.index[pods[i].UID] = i
		}
		x.last.Store(m)
	}
	i, ok := m.index[uid]
	return i, ok
}
