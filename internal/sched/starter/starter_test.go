package starter

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
)

func placed(state string) *v1alpha1.BatchJob {
	return &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "1"},
		Spec:       v1alpha1.BatchJobSpec{JobID: 7},
		Status: v1alpha1.BatchJobStatus{State: state, Attempt: 2, Allocation: &v1alpha1.Allocation{
			Nodes: []v1alpha1.NodeAllocation{{Name: "n1", Node: "n1.example.com"}, {Name: "n2"}}}},
	}
}

func TestPlacementsHoldOnlyWhileTheJobIsPlaced(t *testing.T) {
	for state, want := range map[string]bool{"": false, v1alpha1.StateConfiguring: true,
		v1alpha1.StateRunning: false, v1alpha1.StateCompleting: false, v1alpha1.StateCancelled: false} {
		c, err := control.New(&rest.Config{Host: "127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		c.Jobs.Apply(placed(state))
		p := Placements{c}
		if node, size, ok := p.Place("", 7, 2, 0); ok != want || ok && (node != "n1.example.com" || size != 2) {
			t.Errorf("%q: %s %d %v", state, node, size, ok)
		}
		for _, wrong := range [][3]int{{7, 1, 0}, {7, 2, 2}, {7, 2, -1}, {8, 2, 0}} {
			if _, _, ok := p.Place("", int64(wrong[0]), int32(wrong[1]), wrong[2]); ok {
				t.Errorf("%q: job, attempt, index %v has a node", state, wrong)
			}
		}
	}
}

func TestBoundCountsThisAttemptOnly(t *testing.T) {
	c, err := control.New(&rest.Config{Host: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for uid, p := range map[string]struct{ attempt, node string }{"a": {"2", "n1"}, "b": {"2", ""}, "c": {"1", "n1"}} {
		c.Pods.Apply(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: "1",
				Labels: map[string]string{wire.LabelJobID: "7", wire.LabelAttempt: p.attempt}},
			Spec: corev1.PodSpec{NodeName: p.node},
		})
	}
	if got := (Placements{c}).Bound(7, 2); len(got) != 1 || got[0] != "a" {
		t.Errorf("%v", got)
	}
}

// A workload's pods are the tasks of the placement, in its order.
func TestPodsOfAWorkloadArePlacedLikeTasks(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	fake.Feed(c, &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"},
		Spec:       v1alpha1.BatchJobSpec{JobID: 5, Workload: &v1alpha1.Workload{Pods: []v1alpha1.WorkloadPod{{UID: "a"}, {UID: "b"}, {UID: "c"}}}},
		Status: v1alpha1.BatchJobStatus{State: v1alpha1.StateConfiguring, Attempt: 1, Allocation: &v1alpha1.Allocation{
			Nodes: []v1alpha1.NodeAllocation{{Name: "n1", Tasks: 2}, {Name: "n2", Tasks: 1}}}},
	})
	p := Placements{c}
	for uid, want := range map[types.UID]string{"a": "n1", "b": "n1", "c": "n2"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", UID: uid}}
		id, attempt, index, ok := p.Workload(pod)
		node, size, placed := p.Place("ml", id, attempt, index)
		if !ok || !placed || node != want || size != 3 {
			t.Errorf("pod %s: job %d, %s of %d, %v %v", uid, id, node, size, ok, placed)
		}
		pod.Namespace = "other"
		if _, _, _, ok := p.Workload(pod); ok {
			t.Error("a pod of another namespace has the job's node")
		}
	}
	if _, _, ok := p.Place("ml", 5, 1, 3); ok {
		t.Error("a node for a fourth pod")
	}
}

// A single pod is placed without a write, unless it is bound already.
func TestSinglePodIsPlacedWithoutWrite(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		t.Error("a status was written")
		return nil
	}})
	b := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"},
		Spec:       v1alpha1.BatchJobSpec{JobID: 5, Workload: &v1alpha1.Workload{Pods: []v1alpha1.WorkloadPod{{UID: "a"}}}},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", UID: "a"}, Spec: corev1.PodSpec{NodeName: "n9"}}
	fake.Feed(c, b, pod)
	s := New(c, nil, time.Now)
	p := Placement{Job: b, Partition: "main", Allocation: &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", Tasks: 1}}}}
	if err := s.Place(t.Context(), p); !errors.Is(err, ErrChanged) {
		t.Errorf("a pod that is bound was placed: %v", err)
	}
	waits := pod.DeepCopy()
	waits.Spec.NodeName = ""
	fake.Feed(c, waits)
	if err := s.Place(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if node, _, ok := (Placements{c}).Place("ml", 5, 1, 0); !ok || node != "n1" {
		t.Errorf("its node is %q, %v", node, ok)
	}
	if err := s.Place(t.Context(), p); !errors.Is(err, ErrChanged) {
		t.Errorf("placed twice: %v", err)
	}
}

// A job is placed in an existing pod, if that has exactly its allocation and is
// identical to the job's own pod.
func TestJobsReusePods(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Placement)
		hash   string
		want   string
	}{
		"the same":          {hash: "m", want: v1alpha1.StateRunning},
		"another place":     {hash: "m", change: func(p *Placement) { p.Allocation.Nodes[0].CPUIDs = "1" }, want: v1alpha1.StateConfiguring},
		"more memory":       {hash: "m", change: func(p *Placement) { p.Allocation.Nodes[0].Memory = 5 }, want: v1alpha1.StateConfiguring},
		"another partition": {hash: "m", change: func(p *Placement) { p.Partition = "b" }, want: v1alpha1.StateConfiguring},
		"another pod":       {hash: "n", want: v1alpha1.StateConfiguring},
		"no pod":            {want: v1alpha1.StateConfiguring},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.Cluster(interceptor.Funcs{})
			b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "user-anna", Name: "j"}, Spec: v1alpha1.BatchJobSpec{JobID: 8, User: "anna", Partition: "main"}}
			if err := c.Client.Create(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			c.Jobs.Apply(b)
			s := New(c, func(b *v1alpha1.BatchJob) (*podgroup.PodGroup, *jobset.JobSet, error) {
				if tt.hash == "" {
					return nil, nil, errors.New("there is no such image")
				}
				set := &jobset.JobSet{Spec: jobset.JobSetSpec{ReplicatedJobs: make([]jobset.ReplicatedJob, 1)}}
				set.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{wire.AnnotationPodTemplateHash: tt.hash}
				return nil, set, nil
			}, time.Now)
			s.Pool = agentapi.NewPool(time.Now)
			before := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: 7}, Status: v1alpha1.BatchJobStatus{Attempt: 1,
				Allocation: &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 1, CPUIDs: "0", Address: "a:1"}}}}}
			s.Pool.Offer(before, control.ReuseKey(b, "main"), "m")
			p := Placement{Job: b, Partition: "main", Allocation: &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 1, CPUIDs: "0", Tasks: 1}}}}
			if tt.change != nil {
				tt.change(&p)
			}
			if err := s.Place(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			got, _ := c.Job(8)
			if got.Status.State != tt.want {
				t.Errorf("%s", got.Status.State)
			}
			reused := got.Status.Pods != nil && got.Status.Pods.JobID == 7 && got.Status.Allocation.Nodes[0].Address == "a:1"
			if reused != (tt.want == v1alpha1.StateRunning) {
				t.Errorf("%+v", got.Status)
			}
		})
	}
}

// A job that starts with a shorter limit than it requested is known by its status, so
// that the request is not taken for a later change.
func TestShortenedLimit(t *testing.T) {
	for _, c := range []struct{ requested, given, want int32 }{{0, 9, 0}, {120, 120, 0}, {120, 59, 120}, {-1, 59, -1}, {-1, -1, 0}} {
		b := placed("")
		b.Spec.Job.Time.Limit = c.requested
		p := Placement{Job: b, TimeLimit: c.given}
		b.Status.ShortenedFrom = 7 // of an earlier attempt
		p.change(time.Now(), configuring)(&b.Status)
		if b.Status.TimeLimit != c.given || b.Status.ShortenedFrom != c.want {
			t.Errorf("%+v: limit %d, shortened from %d", c, b.Status.TimeLimit, b.Status.ShortenedFrom)
		}
	}
}

// A job got a node of a pool before that had an object, whose name the provider then chose.
func TestPodsGoToTheObjectOfTheNode(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	b := placed(v1alpha1.StateConfiguring)
	b.Namespace = "user-a"
	b.Status.Attempt = 1
	b.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "d1", Node: "d1"}}}
	fake.Feed(c, b)
	place := func() string {
		node, _, _ := Placements{c}.Place("user-a", 7, 1, 0)
		return node
	}
	if got := place(); got != "d1" {
		t.Errorf("before it comes: %s", got)
	}
	fake.Feed(c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "ip-10-0-0-7", Annotations: map[string]string{wire.AnnotationNodeName: "d1"},
	}})
	if got := place(); got != "ip-10-0-0-7" {
		t.Errorf("the pod goes to %s", got)
	}
}
