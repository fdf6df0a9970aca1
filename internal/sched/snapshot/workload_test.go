package snapshot

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/wire"
)

// member is a pod of a workload, of one CPU, on the node or on none.
func member(uid, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		Spec: corev1.PodSpec{SchedulerName: wire.SchedulerName, NodeName: node, Containers: []corev1.Container{
			{
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
				},
			},
		}},
	}
	p.Namespace, p.UID, p.Name = "ml", types.UID(uid), uid
	for _, c := range change {
		c(p)
	}
	return p
}

// representing makes a job represent pods.
func representing(uids ...types.UID) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		b.Namespace, b.Spec.User = "ml", "k8s_ml"
		b.Spec.Job.Shape.Tasks, b.Spec.Job.Shape.CPUsPerTask = int32(len(uids)), 1
		b.Spec.Workload = &v1alpha1.Workload{Kind: "Pod"}
		for _, u := range uids {
			b.Spec.Workload.Pods = append(b.Spec.Workload.Pods, v1alpha1.WorkloadPod{Name: string(u), UID: u})
		}
	}
}

func startsOn(s *Snapshot, id int64) []string {
	for _, d := range s.Plan().Decisions {
		if d.ID == id && d.StartNow {
			return s.NodeNames(d)
		}
	}
	return nil
}

// A pod is placed only where kube-scheduler would allow it.
func TestWorkloadIsPlacedWhereItsPodsMayRun(t *testing.T) {
	own := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: wire.LabelManaged, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	}
	reserved := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	}
	card := func(n *corev1.Node) { n.Status.Allocatable["rdma/hca"] = resource.MustParse("1") }
	nodes := []*corev1.Node{
		schedtest.Node("n1", own),
		schedtest.Node("n2", schedtest.Feature("fast"), own),
		schedtest.Node("n3", card),
		schedtest.Node("n4", reserved),
	}
	for _, tt := range []struct {
		name string
		pod  func(*corev1.Pod)
		want string
	}{
		{"anywhere", func(*corev1.Pod) {}, "n1"},
		{"by selector", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{wire.LabelFeature + "fast": "true"} }, "n2"},
		{"by affinity", func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: wire.LabelFeature + "fast", Operator: corev1.NodeSelectorOpExists}}}}}}}
		}, "n2"},
		{"by a resource that no GRES stands for", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["rdma/hca"] = resource.MustParse("1")
		}, "n3"},
		{"nowhere", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"no": "such"} }, ""},
	} {
		s := New(
			Input{
				Now:        schedtest.Now,
				Nodes:      nodes,
				Partitions: schedtest.Partitions(),
				Pods:       []*corev1.Pod{member("a", "", tt.pod)},
				Jobs:       []*v1alpha1.BatchJob{schedtest.Job(1, representing("a"))},
			},
		)
		got := ""
		if on := startsOn(s, 1); len(on) == 1 {
			got = on[0]
		}
		if got != tt.want {
			t.Errorf("%s: on %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The pods of a workload that runs are counted once: in its allocation.
func TestPodsOfWorkloadAreCountedOnce(t *testing.T) {
	s := New(Input{Now: schedtest.Now, Nodes: []*corev1.Node{schedtest.Node("n1")},
		Pods: []*corev1.Pod{member("a", "n1"), member("b", "n1")},
		Jobs: []*v1alpha1.BatchJob{schedtest.Job(1, representing("a"), schedtest.RunningOn("0-1", "n1"))}})
	if used := s.Nodes[0].UsedCPUs; used != 1 {
		t.Errorf("%d CPUs used by others, want that of the pod which is no job's", used)
	}
}

// A node whose kubelet refused a pod gets no other for a while; jobs are planned
// onto it for later.
func TestRefusingNodeGetsNoJob(t *testing.T) {
	until := schedtest.Now.Add(20 * time.Second)
	in := Input{
		Now:           schedtest.Now,
		Nodes:         []*corev1.Node{schedtest.Node("n1")},
		Partitions:    schedtest.Partitions(),
		Jobs:          []*v1alpha1.BatchJob{schedtest.Job(1)},
		RefusingNodes: map[string]time.Time{"n1": until},
	}
	d := New(in).Plan().Decisions[0]
	if d.StartNow || d.Start != until.Unix() {
		t.Errorf("%+v, want a start at %d", d, until.Unix())
	}
	in.Now = until
	if !New(in).Plan().Decisions[0].StartNow {
		t.Error("the node is avoided for ever")
	}
	in.RefusingNodes["n1"] = until.Add(time.Nanosecond)
	if d := New(in).Plan().Decisions[0]; d.StartNow || d.Start != until.Unix()+1 {
		t.Errorf("a part of a second before: %+v", d)
	}
}
