package workload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/gres"
	"github.com/berth-hpc/berth/translate/job"
)

// Group is a set of pods that are placed together.
type Group struct {
	Key string // see control.GroupOf
	// Kind and Name are those of the object that the pods belong to. MinMember is how many
	// of them start together.
	Kind, Name string
	MinMember  int
	Pods       []*corev1.Pod
}

// gang returns the pods that the group's job represents: the first pending ones, as
// many as have to start together. nil: some are missing.
func (g *Group) gang(waits func(*corev1.Pod) bool) []*corev1.Pod {
	if len(g.Pods) < g.MinMember {
		return nil
	}
	pods := slices.DeleteFunc(slices.Clone(g.Pods), func(p *corev1.Pod) bool { return !waits(p) })
	if len(pods) < g.MinMember {
		return nil
	}
	slices.SortFunc(pods, inOrder)
	return pods[:g.MinMember]
}

// inOrder sorts the members of a LeaderWorkerSet by index, others by age.
func inOrder(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(workerIndex(a), workerIndex(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func workerIndex(p *corev1.Pod) int {
	text := p.Labels[control.LabelLWSIndex]
	if text == "" { // most pods; an error would be allocated for each
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// shape sets what the pods request: one task each, all as large as the largest in
// every respect.
func shape(j *job.Job, c *v1alpha1.ClusterSpec, pods []*corev1.Pod) {
	cpus, memory := 1, int64(0)
	var largest []backfill.GRES
	for _, p := range pods {
		n, m, g := gres.PodRequest(c, p)
		cpus, memory, largest = max(cpus, n), max(memory, m), larger(largest, g)
	}
	perCPU := (memory + int64(cpus) - 1) / int64(cpus)
	j.Shape.Tasks, j.Shape.CPUsPerTask, j.Shape.MemPerCPU = int32(len(pods)), int32(cpus), &perCPU
	j.Shape.GRES = nil
	for _, g := range largest {
		j.Shape.GRES = append(j.Shape.GRES, job.GRES{Name: g.Name, Type: g.Type, Count: g.Count, Per: job.PerTask})
	}
}

func larger(a, b []backfill.GRES) []backfill.GRES {
	for _, g := range b {
		i := slices.IndexFunc(a, func(h backfill.GRES) bool { return h.Name == g.Name && h.Type == g.Type })
		if i < 0 {
			a = append(a, g)
		} else {
			a[i].Count = max(a[i].Count, g.Count)
		}
	}
	return a
}

// userOf returns the name that the queue shows as the owner of a namespace's
// workloads. No user can have it: an object's name has no underscore.
func userOf(namespace string) string { return "k8s_" + namespace }

// spec returns the spec of the job of pods. layers are their annotations, see
// Apply.
func spec(
	g *Group, pods []*corev1.Pod, c *v1alpha1.ClusterSpec, layers []map[string]string,
) (s *v1alpha1.BatchJobSpec, ignored []string, err error) {
	no := false
	s = &v1alpha1.BatchJobSpec{
		User: userOf(pods[0].Namespace),
		Job:  job.Job{Name: g.Name, Batch: job.Batch{WorkDir: "/", Requeue: &no, Output: "/dev/null"}},
		Workload: &v1alpha1.Workload{
			Kind: g.Kind, Name: g.Name, Group: g.Key,
		},
	}
	if strings.HasPrefix(g.Key, "pod ") {
		s.Workload.Group = ""
	}
	for _, p := range pods {
		s.Workload.Pods = append(s.Workload.Pods, v1alpha1.WorkloadPod{Name: p.Name, UID: p.UID})
	}
	if ignored, err = Apply(&s.Job, layers); err != nil {
		return nil, nil, err
	}
	shape(&s.Job, c, pods)
	return s, ignored, nil
}

// nameOf returns the name of the job that represents the pods. It depends on nothing
// else, so that every leader creates the same object.
func nameOf(pods []v1alpha1.WorkloadPod) string {
	h := sha256.New()
	for i := range pods {
		h.Write([]byte(pods[i].UID))
		h.Write([]byte{0})
	}
	return "workload-" + hex.EncodeToString(h.Sum(nil)[:12])
}
