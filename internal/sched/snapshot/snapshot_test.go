package snapshot

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/gres"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// newSnapshot returns a snapshot of the input, by default with four nodes and three
// partitions.
func newSnapshot(in Input) *Snapshot {
	in.Now = schedtest.Now
	if in.Nodes == nil {
		in.Nodes = schedtest.FourNodes()
	}
	if in.Partitions == nil {
		in.Partitions = schedtest.Partitions()
	}
	return New(in)
}

func TestNodesAreInHostListOrderWithTheirResources(t *testing.T) {
	s := newSnapshot(Input{})
	var names []string
	for _, n := range s.Nodes {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, []string{"n1", "n2", "n3", "n10"}) {
		t.Errorf("order %v", names)
	}
	n := s.Nodes[0]
	if n.CPUs != 4 || n.Memory != 4000 || len(n.GRES) != 1 ||
		n.GRES[0] != (backfill.GRES{Name: "gpu", Type: "tesla", Count: 2}) {
		t.Errorf("%+v", n)
	}
}

func TestUnmanagedNodesAreNotInThePool(t *testing.T) {
	unmanaged := func(n *corev1.Node) { n.Labels[wire.LabelManaged] = "false" }
	s := newSnapshot(Input{Nodes: []*corev1.Node{schedtest.Node("n1"), schedtest.Node("n2", unmanaged)}})
	if len(s.Nodes) != 1 {
		t.Errorf("unmanaged nodes are in the pool: %+v", s.Nodes)
	}
}

func TestForeignPodsCountAndOurOwnDoNotTwice(t *testing.T) {
	pod := func(jobID, attempt, ns string, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Labels: map[string]string{}},
			Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("1100m"),
					corev1.ResourceMemory: resource.MustParse("10Mi"),
				},
			}}}},
			Status: corev1.PodStatus{Phase: phase},
		}
		if jobID != "" {
			p.Labels = map[string]string{wire.LabelJobID: jobID, wire.LabelAttempt: attempt}
		}
		return p
	}
	jobs := []*v1alpha1.BatchJob{schedtest.Job(5, schedtest.RunningOn("0-1", "n1"))}
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		want int
	}{
		{"a system pod", pod("", "", "kube-system", corev1.PodRunning), 2},
		{"a system pod that is over", pod("", "", "kube-system", corev1.PodSucceeded), 0},
		{"a pod of a running job", pod("5", "1", "user-a", corev1.PodRunning), 0},
		{"a pod left from an earlier attempt", pod("5", "0", "user-a", corev1.PodRunning), 2},
		{"a pod that claims to be of the job", pod("5", "1", "other", corev1.PodRunning), 2},
		{"a pod of an unknown job", pod("6", "1", "user-a", corev1.PodRunning), 2},
	} {
		s := newSnapshot(Input{Jobs: jobs, Pods: []*corev1.Pod{tt.pod}})
		if got := s.Nodes[0].UsedCPUs; got != tt.want {
			t.Errorf("%s: %d CPUs, want %d", tt.name, got, tt.want)
		}
	}
}

func TestBlocked(t *testing.T) {
	depends := func(kind string, on int64) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Dependencies.Items = append(b.Spec.Job.Dependencies.Items, job.Dependency{Type: kind, JobID: on})
		}
	}
	later := func(change func(*v1alpha1.BatchJob), minutes int32) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) {
			change(b)
			b.Spec.Job.Dependencies.Items[0].Delay = minutes
		}
	}
	ago := metav1.NewMicroTime(schedtest.Now.Add(-90 * time.Second))
	ran := func(b *v1alpha1.BatchJob) { schedtest.State("COMPLETED")(b); b.Status.StartTime = &ago }
	cancelled := func(b *v1alpha1.BatchJob) { schedtest.State("CANCELLED")(b); b.Status.EndTime = &ago }
	anyOf := func(b *v1alpha1.BatchJob) { b.Spec.Job.Dependencies.Any = true }
	others := []*v1alpha1.BatchJob{
		schedtest.Job(1, schedtest.State("COMPLETED")),
		schedtest.Job(2, schedtest.State("FAILED")),
		schedtest.Job(3, schedtest.RunningOn("0", "n1")),
		schedtest.Job(4, func(b *v1alpha1.BatchJob) { b.Spec.Job.Name = "other" }),
		schedtest.Job(5, ran),
		schedtest.Job(6, cancelled),
	}
	for _, tt := range []struct {
		name string
		job  *v1alpha1.BatchJob
		want string
	}{
		{"nothing", schedtest.Job(9), ""},
		{"held by the user", schedtest.Job(9, func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" }), "JobHeldUser"},
		{"held by an operator", schedtest.Job(9, func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "admin" }), "JobHeldAdmin"},
		{"partition down", schedtest.Job(9, schedtest.InPartition("off")), "PartitionDown"},
		{"partition gone", schedtest.Job(9, schedtest.InPartition("gone")), "PartitionDown"},
		{"too long", schedtest.Job(9, schedtest.InPartition("batch"), func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 31 }), "PartitionTimeLimit"},
		{"too many nodes", schedtest.Job(9, schedtest.InPartition("batch"), func(b *v1alpha1.BatchJob) { b.Spec.Job.Shape.MinNodes = 2 }), "PartitionNodeLimit"},
		{"afterok of a success", schedtest.Job(9, depends("afterok", 1)), ""},
		{"afterok of a failure", schedtest.Job(9, depends("afterok", 2)), "DependencyNeverSatisfied"},
		{"afterok of a running job", schedtest.Job(9, depends("afterok", 3)), "Dependency"},
		{"afternotok of a failure", schedtest.Job(9, depends("afternotok", 2)), ""},
		{"afternotok of a success", schedtest.Job(9, depends("afternotok", 1)), "DependencyNeverSatisfied"},
		{"afterany of a failure", schedtest.Job(9, depends("afterany", 2)), ""},
		{"afterany of a waiting job", schedtest.Job(9, depends("afterany", 4)), "Dependency"},
		{"after a running job", schedtest.Job(9, depends("after", 3)), ""},
		{"after a waiting job", schedtest.Job(9, depends("after", 4)), "Dependency"},
		{"a minute after one that ran", schedtest.Job(9, later(depends("after", 5), 1)), ""},
		{"later after one that ran", schedtest.Job(9, later(depends("after", 5), 2)), "Dependency"},
		{"later after one cancelled while it waited", schedtest.Job(9, later(depends("after", 6), 2)), "Dependency"},
		{"all", schedtest.Job(9, depends("afterok", 1), depends("afterok", 3)), "Dependency"},
		{"any", schedtest.Job(9, depends("afterok", 2), depends("afterok", 1), anyOf), ""},
		{"any, none of which can be", schedtest.Job(9, depends("afterok", 2), depends("afternotok", 1), anyOf), "DependencyNeverSatisfied"},
		{"afterok of an unknown job", schedtest.Job(9, depends("afterok", 999)), ""},
		{"afternotok of an unknown job", schedtest.Job(9, depends("afternotok", 999)), ""},
		{"singleton behind job 3", schedtest.Job(9, depends("singleton", 0)), "Dependency"},
		{"singleton, alone", schedtest.Job(9, depends("singleton", 0), func(b *v1alpha1.BatchJob) { b.Spec.Job.Name = "alone" }), ""},
	} {
		s := newSnapshot(Input{Jobs: append(slices.Clone(others), tt.job)})
		for _, p := range s.Pending {
			if p.ID == 9 && p.Blocked != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, p.Blocked, tt.want)
			}
		}
	}
}

// TestJobsOfDisabledUsersWait: a job of a disabled user does not start, and one that runs goes
// on.
func TestJobsOfDisabledUsersWait(t *testing.T) {
	u := &v1alpha1.User{}
	u.Name, u.Spec.Disabled = schedtest.Job(9).Spec.User, true
	s := newSnapshot(Input{
		Jobs:   []*v1alpha1.BatchJob{schedtest.Job(9), schedtest.Job(3, schedtest.RunningOn("0", "n1"))},
		Policy: Policy{Users: []*v1alpha1.User{u}},
	})
	if len(s.Pending) != 1 || s.Pending[0].Blocked != "InvalidAccount" || len(s.Running) != 1 {
		t.Errorf("pending %+v, running %+v", s.Pending, s.Running)
	}
}

func TestOutcomesOfDependencies(t *testing.T) {
	b := schedtest.Job(9, func(b *v1alpha1.BatchJob) {
		b.Spec.Job.Dependencies.Items = []job.Dependency{
			{
				Type:  "afterok",
				JobID: 1,
			},
			{Type: "afterok", JobID: 2},
			{Type: "afterany", JobID: 3},
			{Type: "afternotok", JobID: 2},
		}
	})
	s := newSnapshot(
		Input{
			Jobs: []*v1alpha1.BatchJob{
				schedtest.Job(1, schedtest.State("COMPLETED")),
				schedtest.Job(2, schedtest.State("FAILED")),
				schedtest.Job(3, schedtest.RunningOn("0", "n1")),
				b,
			},
		},
	)
	if got := s.Outcomes(9); got != "mnum" {
		t.Errorf("%q", got)
	}
	if n := s.Partition("batch").LargestNode; n != 4 {
		t.Errorf("the largest node has %d CPUs", n)
	}
}

func TestPendingTakesDefaults(t *testing.T) {
	perCPU := int64(100)
	s := newSnapshot(Input{
		Jobs:       []*v1alpha1.BatchJob{schedtest.Job(1, schedtest.InPartition("batch")), schedtest.Job(2)},
		Parameters: v1alpha1.ClusterSpec{MemoryLimits: v1alpha1.MemoryLimits{DefMemPerCPU: &perCPU}},
	})
	if p := s.Pending[0]; p.Duration != 300 || p.MemPerCPU != 100 || !p.Eligible.Has(1) || p.Eligible.Has(0) {
		t.Errorf("batch: %+v", p)
	}
	if p := s.Pending[1]; p.Duration != backfill.Forever || p.Priority >= s.Pending[0].Priority {
		t.Errorf("debug: %+v (batch has the higher tier)", p)
	}
	if w := s.Info(1); w.TimeLimit != 5 || w.Partition != "batch" {
		t.Errorf("%+v", w)
	}
}

func TestSeveralPartitions(t *testing.T) {
	several := func(names ...string) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) { b.Spec.Partition, b.Spec.Job.Partitions = names[0], names }
	}
	full := func(b *v1alpha1.BatchJob) {
		schedtest.RunningOn("0-3", "n2", "n3")(b)
		for i := range b.Status.Allocation.Nodes {
			b.Status.Allocation.Nodes[i].CPUs = 4
		}
	}
	s := newSnapshot(
		Input{
			Jobs: []*v1alpha1.BatchJob{
				schedtest.Job(1, full),
				schedtest.Job(2, several("off", "batch", "debug")),
				schedtest.Job(3, several("off")),
			},
		},
	)
	decisions := s.Plan().Decisions
	d, w := decisions[0], s.Info(2)
	if !d.StartNow || w.Partition != "batch" || w.PartitionOf(d) != "debug" || s.NodeNames(d)[0] != "n1" {
		t.Errorf("batch is full and off is down, debug has n1: %+v %+v", d, w)
	}
	if decisions[1].Reason != "PartitionDown" {
		t.Errorf("%+v", decisions[1])
	}
}

func TestAllocationOfADecision(t *testing.T) {
	s := newSnapshot(Input{Jobs: []*v1alpha1.BatchJob{
		schedtest.Job(1, schedtest.RunningOn("0-1", "n1")),
		schedtest.Job(
			2,
			func(b *v1alpha1.BatchJob) { b.Spec.Job.Shape = job.Shape{MinNodes: 4, MaxNodes: 4, CPUsPerTask: 2} },
		),
	}})
	d := s.Plan().Decisions[0]
	if !d.StartNow {
		t.Fatalf("%+v", d)
	}
	a := s.NewAllocator().Allocation(d)
	if len(a.Nodes) != 4 || a.Nodes[0].CPUIDs != "2-3" || a.Nodes[3].Name != "n10" || a.Nodes[3].CPUIDs != "0-1" {
		t.Errorf("%+v", a.Nodes)
	}
}

// Devices are numbered across the types of a node; the next job gets other ones, in the
// same plan and in the next.
func TestDevicesOfADecision(t *testing.T) {
	cards := func(kind string, n int64) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Shape.GRES = []job.GRES{{Name: "gpu", Type: kind, Count: n, Per: job.PerNode}}
		}
	}
	n := schedtest.Node(
		"n1",
		func(n *corev1.Node) { n.Status.Allocatable["gres.berth.hpc/gpu-volta"] = resource.MustParse("2") },
	)
	plugin := schedtest.Node("n2", func(n *corev1.Node) {
		n.Status.Allocatable = corev1.ResourceList{
			"cpu":          resource.MustParse("4"),
			"memory":       resource.MustParse("4000Mi"),
			gres.NvidiaGPU: resource.MustParse("2"),
		}
	})
	holds := schedtest.Job(1, schedtest.RunningOn("0", "n1"))
	holds.Status.Allocation.Nodes[0].GRES = []v1alpha1.GRESAllocation{
		{Name: "gpu", Type: "tesla", Count: 1, Indexes: "0"},
	}
	s := newSnapshot(Input{Nodes: []*corev1.Node{n, plugin}, Jobs: []*v1alpha1.BatchJob{
		holds,
		schedtest.Job(2, cards("tesla", 1)),
		schedtest.Job(3, cards("volta", 1)),
		schedtest.Job(4, cards("volta", 1)),
		schedtest.Job(5, cards("", 2)),
	}})
	got := map[int64]string{}
	allocator := s.NewAllocator()
	for _, d := range s.Plan().Decisions {
		if d.StartNow {
			got[d.ID] = allocator.Allocation(d).Nodes[0].GRES[0].Indexes
		}
	}
	// The device plugin numbers n2's cards itself.
	if want := (map[int64]string{2: "1", 3: "2", 4: "3", 5: ""}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNoPartitionObjectMeansMain(t *testing.T) {
	s := New(
		Input{
			Now:   schedtest.Now,
			Nodes: schedtest.FourNodes(),
			Jobs:  []*v1alpha1.BatchJob{schedtest.Job(1, schedtest.InPartition(""))},
		},
	)
	if w := s.Info(1); w.Partition != "main" || w.TimeLimit != job.Unlimited || s.Pending[0].Blocked != "" {
		t.Errorf("%+v %+v", w, s.Pending[0])
	}
}
