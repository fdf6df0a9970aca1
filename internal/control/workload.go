package control

import (
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// Labels of LeaderWorkerSet's pods.
const (
	LabelLWS      = "leaderworkerset.sigs.k8s.io/name"
	LabelLWSGroup = "leaderworkerset.sigs.k8s.io/group-index"
	LabelLWSIndex = "leaderworkerset.sigs.k8s.io/worker-index"
)

// GroupOf returns the key of the pods that are placed together with p, a pod of a
// workload: its PodGroup, its group of a LeaderWorkerSet, or itself. It is "" for a pod
// of a job and for one that names another scheduler.
func GroupOf(p *corev1.Pod) string {
	if p.Spec.SchedulerName != wire.SchedulerName {
		return ""
	}
	if _, job := p.Labels[wire.LabelJobID]; job {
		return ""
	}
	if g := p.Labels[podgroup.PodGroupLabel]; g != "" {
		return GroupOfPodGroup(p.Namespace, g)
	}
	if l := p.Labels[LabelLWS]; l != "" {
		return "lws " + p.Namespace + "/" + l + "/" + p.Labels[LabelLWSGroup]
	}
	return "pod " + string(p.UID)
}

// GroupOfPodGroup returns the key of the pods of a PodGroup.
func GroupOfPodGroup(namespace, name string) string { return "group " + namespace + "/" + name }

func workloadKey(p *corev1.Pod) string { return GroupOf(p) }

// NewPods returns an empty store of pods with its indexes.
func NewPods() *Store[*corev1.Pod] {
	return NewStore(func(p *corev1.Pod) string { return p.Labels[wire.LabelJobID] }, workloadKey)
}

// NewPodGroups returns an empty store of PodGroups, with an index of those that the
// starter did not create.
func NewPodGroups() *Store[*podgroup.PodGroup] {
	return NewStore(func(g *podgroup.PodGroup) string {
		if _, ours := g.Labels[wire.LabelJobID]; ours {
			return ""
		}
		return g.Namespace + "/" + g.Name
	})
}

// NewJobs returns an empty store of jobs with its indexes.
func NewJobs() *JobStore {
	s := &JobStore{
		Store:   *NewStore(jobKey, originKey, podsKey),
		assumed: map[types.UID]*v1alpha1.BatchJob{},
		payload: map[types.UID]int64{},
	}
	s.IndexMany(memberKeys)
	s.IndexMany(reuseKeys)
	return s
}

// memberKeys returns the index keys of a workload's job: its group and its pods.
func memberKeys(j *v1alpha1.BatchJob) []string {
	w := j.Spec.Workload
	if w == nil {
		return nil
	}
	keys := make([]string, 0, 1+len(w.Pods))
	if w.Group != "" {
		keys = append(keys, w.Group)
	}
	for i := range w.Pods {
		keys = append(keys, memberKey(w.Pods[i].UID))
	}
	return keys
}

func memberKey(uid types.UID) string { return "member " + string(uid) }

// WorkloadPods returns the pods of a group, in no order.
func (c *Cluster) WorkloadPods(group string) []*corev1.Pod { return c.Pods.ByIndex(group) }

// WorkloadJobs returns the jobs that represent pods of the group, in no order; a group
// of a single pod is not indexed by its key (see WorkloadOf).
func (c *Cluster) WorkloadJobs(group string) []*v1alpha1.BatchJob { return c.Jobs.ByIndex(group) }

// WorkloadOf returns the newest job that represents the pod, and the pod's index in it.
// ok is false if there is none.
func (c *Cluster) WorkloadOf(uid types.UID) (b *v1alpha1.BatchJob, index int, ok bool) {
	for _, j := range c.Jobs.ByIndex(memberKey(uid)) {
		if b == nil || j.Spec.JobID > b.Spec.JobID {
			b = j
		}
	}
	if b == nil {
		return nil, 0, false
	}
	index, ok = c.members.of(b, uid)
	return b, index, ok
}

// HasWorkload reports whether a job represents the pod.
func (c *Cluster) HasWorkload(uid types.UID) bool {
	_, ok := c.Jobs.Get(memberKey(uid))
	return ok
}

// MemberPods returns the existing pods that a workload's job represents, in their
// order.
func (c *Cluster) MemberPods(b *v1alpha1.BatchJob) []*corev1.Pod {
	out := make([]*corev1.Pod, 0, len(b.Spec.Workload.Pods))
	for i := range b.Spec.Workload.Pods {
		if p, ok := c.Pods.ByUID(b.Spec.Workload.Pods[i].UID); ok && p.Namespace == b.Namespace {
			out = append(out, p)
		}
	}
	return out
}

// memberIndex finds the position of a pod in a large workload. It keeps the positions for
// the workload that was used last, because the pods of a gang are looked up one after the
// other. Safe for concurrent use.
type memberIndex struct {
	last atomic.Pointer[members]
}

type members struct {
	pods  *v1alpha1.WorkloadPod // the first one identifies the list
	count int
	index map[types.UID]int
}

// manyMembers is the number of members from which an index is built.
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
