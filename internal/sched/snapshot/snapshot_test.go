package snapshot

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

var now = time.Unix(1_000_000, 0)

// aNode is a ready node of 4 CPUs, 4000 MiB and two Tesla cards.
func aNode(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:         resource.MustParse("4"),
				corev1.ResourceMemory:      resource.MustParse("4000Mi"),
				"gres.berth.hpc/gpu-tesla": resource.MustParse("2"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func feature(f string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[wire.LabelFeature+f] = "true" }
}

func fourNodes() []*corev1.Node {
	return []*corev1.Node{aNode("n1", feature("fast"), feature("red")), aNode("n2", feature("fast")), aNode("n3"), aNode("n10")}
}

func partitions() []*v1alpha1.Partition {
	return []*v1alpha1.Partition{
		{ObjectMeta: metav1.ObjectMeta{Name: "debug"}, Spec: v1alpha1.PartitionSpec{Default: true, Nodes: "ALL"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Spec: v1alpha1.PartitionSpec{
			Nodes: "n[2-3]", MaxTime: 30, DefaultTime: 5, MaxNodes: 1, PriorityTier: 2}},
		{ObjectMeta: metav1.ObjectMeta{Name: "off"}, Spec: v1alpha1.PartitionSpec{Nodes: "ALL", State: "DOWN"}},
	}
}

func aJob(id int64, change ...func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "user-a", Name: "j"},
		Spec:       v1alpha1.BatchJobSpec{JobID: id, User: "a", Partition: "debug", Job: job.Job{Name: "x"}},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func in(partition string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Spec.Partition = partition }
}

func runningOn(ids string, nodes ...string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		b.Status = v1alpha1.BatchJobStatus{State: v1alpha1.StateRunning, Attempt: 1, TimeLimit: 10, Partition: "debug",
			StartTime: &metav1.MicroTime{Time: now}, Allocation: &v1alpha1.Allocation{}}
		for _, n := range nodes {
			b.Status.Allocation.Nodes = append(b.Status.Allocation.Nodes, v1alpha1.NodeAllocation{Name: n, Node: n, CPUs: 2, CPUIDs: ids, Memory: 100})
		}
	}
}

func over(state string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Status.State = state }
}

func view(in Input) *View {
	in.Now = now
	if in.Nodes == nil {
		in.Nodes = fourNodes()
	}
	if in.Partitions == nil {
		in.Partitions = partitions()
	}
	return Build(in)
}

func TestNodesAreInHostListOrderWithTheirResources(t *testing.T) {
	v := view(Input{})
	var names []string
	for _, n := range v.Nodes {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, []string{"n1", "n2", "n3", "n10"}) {
		t.Errorf("order %v", names)
	}
	n := v.Nodes[0]
	if n.CPUs != 4 || n.Memory != 4000 || len(n.GRES) != 1 || n.GRES[0] != (backfill.GRES{Name: "gpu", Type: "tesla", Count: 2}) {
		t.Errorf("%+v", n)
	}
}

func TestUnavailableNodes(t *testing.T) {
	for want, change := range map[string]func(*corev1.Node){
		"":        func(*corev1.Node) {},
		"DRAIN":   func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"DOWN":    func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse },
		"UNKNOWN": func(n *corev1.Node) { n.Status.Conditions = nil },
	} {
		if got := Unavailable(aNode("n", change)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	set := func(state string) *corev1.Node {
		return aNode("n", func(n *corev1.Node) { n.Annotations[wire.AnnotationState] = state })
	}
	if Unavailable(set("drain")) != "DRAIN" || Unavailable(set("down")) != "DOWN" {
		t.Error("the state annotation does not count")
	}
	v := view(Input{Nodes: []*corev1.Node{aNode("n1"), aNode("n2", func(n *corev1.Node) { n.Labels[wire.LabelManaged] = "false" })}})
	if len(v.Nodes) != 1 {
		t.Errorf("unmanaged nodes are in the pool: %+v", v.Nodes)
	}
}

func TestShortNames(t *testing.T) {
	got := ShortNames([]*corev1.Node{
		aNode("a.example.com"), aNode("a.example.org"), aNode("b.example.org"), aNode("c"),
		aNode("ip-10-0-0-1.internal", func(n *corev1.Node) { n.Annotations[wire.AnnotationNodeName] = "gpu1" }),
		aNode("d.x", func(n *corev1.Node) { n.Annotations[wire.AnnotationNodeName] = "Not_valid" }),
	})
	want := map[string]string{"a.example.com": "a-example-com", "a.example.org": "a-example-org",
		"b.example.org": "b", "c": "c", "ip-10-0-0-1.internal": "gpu1", "d.x": "d"}
	for n, w := range want {
		if got[n] != w {
			t.Errorf("%s: %s, want %s", n, got[n], w)
		}
	}
}

func TestForeignPodsCountAndOurOwnDoNotTwice(t *testing.T) {
	pod := func(jobID, attempt, ns string, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Labels: map[string]string{}},
			Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1100m"), corev1.ResourceMemory: resource.MustParse("10Mi")}}}}},
			Status: corev1.PodStatus{Phase: phase},
		}
		if jobID != "" {
			p.Labels = map[string]string{wire.LabelJobID: jobID, wire.LabelAttempt: attempt}
		}
		return p
	}
	jobs := []*v1alpha1.BatchJob{aJob(5, runningOn("0-1", "n1"))}
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
		{"a pod of a job nobody knows", pod("6", "1", "user-a", corev1.PodRunning), 2},
	} {
		v := view(Input{Jobs: jobs, Pods: []*corev1.Pod{tt.pod}})
		if got := v.Nodes[0].UsedCPUs; got != tt.want {
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
	ago := metav1.NewMicroTime(now.Add(-90 * time.Second))
	ran := func(b *v1alpha1.BatchJob) { over("COMPLETED")(b); b.Status.StartTime = &ago }
	cancelled := func(b *v1alpha1.BatchJob) { over("CANCELLED")(b); b.Status.EndTime = &ago }
	anyOf := func(b *v1alpha1.BatchJob) { b.Spec.Job.Dependencies.Any = true }
	others := []*v1alpha1.BatchJob{aJob(1, over("COMPLETED")), aJob(2, over("FAILED")), aJob(3, runningOn("0", "n1")),
		aJob(4, func(b *v1alpha1.BatchJob) { b.Spec.Job.Name = "other" }), aJob(5, ran), aJob(6, cancelled)}
	for _, tt := range []struct {
		name string
		job  *v1alpha1.BatchJob
		want string
	}{
		{"nothing", aJob(9), ""},
		{"held by the user", aJob(9, func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" }), "JobHeldUser"},
		{"held by an operator", aJob(9, func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "admin" }), "JobHeldAdmin"},
		{"partition down", aJob(9, in("off")), "PartitionDown"},
		{"partition gone", aJob(9, in("gone")), "PartitionDown"},
		{"too long", aJob(9, in("batch"), func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 31 }), "PartitionTimeLimit"},
		{"too many nodes", aJob(9, in("batch"), func(b *v1alpha1.BatchJob) { b.Spec.Job.Shape.MinNodes = 2 }), "PartitionNodeLimit"},
		{"afterok of a success", aJob(9, depends("afterok", 1)), ""},
		{"afterok of a failure", aJob(9, depends("afterok", 2)), "DependencyNeverSatisfied"},
		{"afterok of a running job", aJob(9, depends("afterok", 3)), "Dependency"},
		{"afternotok of a failure", aJob(9, depends("afternotok", 2)), ""},
		{"afternotok of a success", aJob(9, depends("afternotok", 1)), "DependencyNeverSatisfied"},
		{"afterany of a failure", aJob(9, depends("afterany", 2)), ""},
		{"afterany of a waiting job", aJob(9, depends("afterany", 4)), "Dependency"},
		{"after a running job", aJob(9, depends("after", 3)), ""},
		{"after a waiting job", aJob(9, depends("after", 4)), "Dependency"},
		{"a minute after one that ran", aJob(9, later(depends("after", 5), 1)), ""},
		{"later after one that ran", aJob(9, later(depends("after", 5), 2)), "Dependency"},
		{"later after one cancelled while it waited", aJob(9, later(depends("after", 6), 2)), "Dependency"},
		{"all", aJob(9, depends("afterok", 1), depends("afterok", 3)), "Dependency"},
		{"any", aJob(9, depends("afterok", 2), depends("afterok", 1), anyOf), ""},
		{"any, none of which can be", aJob(9, depends("afterok", 2), depends("afternotok", 1), anyOf), "DependencyNeverSatisfied"},
		{"afterok of a job nobody knows", aJob(9, depends("afterok", 999)), ""},
		{"afternotok of a job nobody knows", aJob(9, depends("afternotok", 999)), ""},
		{"singleton behind job 3", aJob(9, depends("singleton", 0)), "Dependency"},
		{"singleton, alone", aJob(9, depends("singleton", 0), func(b *v1alpha1.BatchJob) { b.Spec.Job.Name = "alone" }), ""},
	} {
		v := view(Input{Jobs: append(slices.Clone(others), tt.job)})
		for _, p := range v.Pending {
			if p.ID == 9 && p.Blocked != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, p.Blocked, tt.want)
			}
		}
	}
}

func TestOutcomesOfDependencies(t *testing.T) {
	b := aJob(9, func(b *v1alpha1.BatchJob) {
		b.Spec.Job.Dependencies.Items = []job.Dependency{
			{Type: "afterok", JobID: 1}, {Type: "afterok", JobID: 2}, {Type: "afterany", JobID: 3}, {Type: "afternotok", JobID: 2}}
	})
	v := view(Input{Jobs: []*v1alpha1.BatchJob{aJob(1, over("COMPLETED")), aJob(2, over("FAILED")), aJob(3, runningOn("0", "n1")), b}})
	if got := v.Outcomes(9); got != "mnum" {
		t.Errorf("%q", got)
	}
	if n := v.LargestNode("batch"); n != 4 {
		t.Errorf("the largest node has %d CPUs", n)
	}
}

func TestPendingTakesDefaults(t *testing.T) {
	perCPU := int64(100)
	v := view(Input{
		Jobs:       []*v1alpha1.BatchJob{aJob(1, in("batch")), aJob(2)},
		Parameters: v1alpha1.ClusterSpec{MemoryLimits: v1alpha1.MemoryLimits{DefMemPerCPU: &perCPU}},
	})
	if p := v.Pending[0]; p.Duration != 300 || p.MemPerCPU != 100 || !p.Eligible.Has(1) || p.Eligible.Has(0) {
		t.Errorf("batch: %+v", p)
	}
	if p := v.Pending[1]; p.Duration != backfill.Forever || p.Priority >= v.Pending[0].Priority {
		t.Errorf("debug: %+v (batch has the higher tier)", p)
	}
	if w := v.Wanted(1); w.TimeLimit != 5 || w.Partition != "batch" {
		t.Errorf("%+v", w)
	}
}

func TestSeveralPartitions(t *testing.T) {
	several := func(names ...string) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) { b.Spec.Partition, b.Spec.Job.Partitions = names[0], names }
	}
	full := func(b *v1alpha1.BatchJob) {
		runningOn("0-3", "n2", "n3")(b)
		for i := range b.Status.Allocation.Nodes {
			b.Status.Allocation.Nodes[i].CPUs = 4
		}
	}
	v := view(Input{Jobs: []*v1alpha1.BatchJob{aJob(1, full), aJob(2, several("off", "batch", "debug")), aJob(3, several("off"))}})
	decisions := v.Plan().Decisions
	d, w := decisions[0], v.Wanted(2)
	if !d.StartNow || w.Partition != "batch" || w.In(d.Choice) != "debug" || v.Names(d)[0] != "n1" {
		t.Errorf("batch is full and off is down, debug has n1: %+v %+v", d, w)
	}
	if decisions[1].Reason != "PartitionDown" {
		t.Errorf("%+v", decisions[1])
	}
	for _, names := range [][]string{{"nosuch", "debug"}, {"batch", "debug"}} {
		b := aJob(0, several(names...))
		b.Spec.Job.Placement.NodeList = []string{"n1"}
		if err := v.Feasible(b); err != nil {
			t.Errorf("%v: %v", names, err)
		}
	}
}

func TestAllocationOfADecision(t *testing.T) {
	v := view(Input{Jobs: []*v1alpha1.BatchJob{
		aJob(1, runningOn("0-1", "n1")),
		aJob(2, func(b *v1alpha1.BatchJob) { b.Spec.Job.Shape = job.Shape{MinNodes: 4, MaxNodes: 4, CPUsPerTask: 2} }),
	}})
	d := v.Plan().Decisions[0]
	if !d.StartNow {
		t.Fatalf("%+v", d)
	}
	a := v.Allocation(d)
	if len(a.Nodes) != 4 || a.Nodes[0].CPUIDs != "2-3" || a.Nodes[3].Name != "n10" || a.Nodes[3].CPUIDs != "0-1" {
		t.Errorf("%+v", a.Nodes)
	}
}

// Devices are numbered through a node's types; whoever comes next gets others,
// in the same plan and in the next.
func TestDevicesOfADecision(t *testing.T) {
	cards := func(kind string, n int64) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Shape.GRES = []job.GRES{{Name: "gpu", Type: kind, Count: n, Per: job.PerNode}}
		}
	}
	n := aNode("n1", func(n *corev1.Node) { n.Status.Allocatable["gres.berth.hpc/gpu-volta"] = resource.MustParse("2") })
	plugin := aNode("n2", func(n *corev1.Node) {
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("4000Mi"), NvidiaGPU: resource.MustParse("2")}
	})
	holds := aJob(1, runningOn("0", "n1"))
	holds.Status.Allocation.Nodes[0].GRES = []v1alpha1.GRESAllocation{{Name: "gpu", Type: "tesla", Count: 1, Indexes: "0"}}
	v := view(Input{Nodes: []*corev1.Node{n, plugin}, Jobs: []*v1alpha1.BatchJob{
		holds, aJob(2, cards("tesla", 1)), aJob(3, cards("volta", 1)), aJob(4, cards("volta", 1)), aJob(5, cards("", 2)),
	}})
	got := map[int64]string{}
	for _, d := range v.Plan().Decisions {
		if d.StartNow {
			got[d.ID] = v.Allocation(d).Nodes[0].GRES[0].Indexes
		}
	}
	// The device plugin numbers n2's cards itself.
	if want := (map[int64]string{2: "1", 3: "2", 4: "3", 5: ""}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFeasible(t *testing.T) {
	mem := func(mib int64) *int64 { return &mib }
	empty := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Spec: v1alpha1.PartitionSpec{Nodes: "n9"}}
	v := view(Input{Partitions: append(partitions(), empty)})
	strict := view(Input{Parameters: v1alpha1.ClusterSpec{EnforcePartLimits: "ALL"}})
	for _, tt := range []struct {
		name   string
		v      *View
		part   string
		job    job.Job
		expect error
	}{
		{"anything", v, "", job.Job{}, nil},
		{"no such partition", v, "nosuch", job.Job{}, ErrPartition},
		{"all nodes", v, "", job.Job{Shape: job.Shape{MinNodes: 4, MaxNodes: 4}}, nil},
		{"one too many", v, "", job.Job{Shape: job.Shape{MinNodes: 5}}, ErrNodeCount},
		{"a partition without nodes", v, "empty", job.Job{}, ErrProcessors},
		{"a cluster without nodes", Build(Input{Now: now, Partitions: partitions()}), "", job.Job{Shape: job.Shape{MinNodes: 4}}, nil},
		{"too many tasks", v, "", job.Job{Shape: job.Shape{Tasks: 17}}, ErrProcessors},
		{"too many on few", v, "", job.Job{Shape: job.Shape{Tasks: 16, MinNodes: 2, MaxNodes: 2}}, ErrNodeConfig},
		{"too many for one", v, "", job.Job{Shape: job.Shape{CPUsPerTask: 5}}, ErrNodeCPUs},
		{"too many on each", v, "", job.Job{Shape: job.Shape{MinCPUs: 5}}, ErrNodeCPUs},
		{"too much memory", v, "", job.Job{Shape: job.Shape{MemPerNode: mem(5000)}}, ErrNodeMemory},
		{"too much memory, held", v, "", job.Job{Hold: "user", Shape: job.Shape{MemPerNode: mem(5000)}}, nil},
		{"too many cards, held", v, "", job.Job{Hold: "user", Shape: job.Shape{GRES: []job.GRES{{Name: "gpu", Count: 3, Per: job.PerNode}}}}, nil},
		{"too many CPUs, held", v, "", job.Job{Hold: "user", Shape: job.Shape{Tasks: 17}}, ErrProcessors},
		{"no such feature, held", v, "", job.Job{Hold: "user", Placement: job.Placement{Constraint: "nosuch"}}, ErrFeature},
		{"too much memory for a CPU", v, "", job.Job{Shape: job.Shape{MemPerCPU: mem(5000)}}, ErrNodeMemory},
		{"too much memory for all CPUs", v, "", job.Job{Shape: job.Shape{MemPerCPU: mem(2000), CPUsPerTask: 4}}, ErrNodeConfig},
		{"neither CPUs nor memory", v, "", job.Job{Shape: job.Shape{CPUsPerTask: 5, MemPerNode: mem(5000)}}, ErrNodeCPUs},
		{"no such node to exclude", v, "", job.Job{Placement: job.Placement{Exclude: []string{"n1", "nosuch"}}}, ErrNodeName},
		{"a feature", v, "", job.Job{Placement: job.Placement{Constraint: "fast&red"}}, nil},
		{"either", v, "", job.Job{Placement: job.Placement{Constraint: "nosuch|red"}}, ErrFeature},
		{"a batch host of other nodes", v, "", job.Job{Placement: job.Placement{Constraint: "red", Batch: "fast"}}, ErrBatchHost},
		{"a batch host of any nodes", v, "", job.Job{Placement: job.Placement{Batch: "red"}}, ErrBatchHost},
		{"a batch host of no form", v, "", job.Job{Placement: job.Placement{Constraint: "red", Batch: "red&&red"}}, ErrBatchHost},
		{"a batch host", v, "", job.Job{Placement: job.Placement{Constraint: "red", Batch: "red"}}, nil},
		{"half a segment", v, "", job.Job{Shape: job.Shape{MinNodes: 3, MaxNodes: 3}, Placement: job.Placement{Segment: 2}}, ErrTopology},
		{"no such feature", v, "", job.Job{Placement: job.Placement{Constraint: "nosuch"}}, ErrFeature},
		{"features of no node here", v, "batch", job.Job{Placement: job.Placement{Constraint: "red"}}, ErrNodeConfig},
		{"no such node", v, "", job.Job{Placement: job.Placement{NodeList: []string{"nosuch"}}}, ErrNodeName},
		{"a node elsewhere", v, "batch", job.Job{Placement: job.Placement{NodeList: []string{"n1"}}}, ErrNotInPart},
		{"all but excluded", v, "", job.Job{Shape: job.Shape{MinNodes: 4}, Placement: job.Placement{Exclude: []string{"n1"}}}, ErrNodeConfig},
		{"cards", v, "", job.Job{Shape: job.Shape{GRES: []job.GRES{{Name: "gpu", Count: 2, Per: job.PerNode}}}}, nil},
		{"too many cards", v, "", job.Job{Shape: job.Shape{GRES: []job.GRES{{Name: "gpu", Count: 3, Per: job.PerNode}}}}, ErrNodeConfig},
		{"other cards", v, "", job.Job{Shape: job.Shape{GRES: []job.GRES{{Name: "gpu", Type: "x", Count: 1, Per: job.PerNode}}}}, ErrNodeConfig},
		{"no such thing", v, "", job.Job{Shape: job.Shape{GRES: []job.GRES{{Name: "fpga", Count: 1, Per: job.PerNode}}}}, ErrGRES},
		{"too long waits", v, "batch", job.Job{Time: job.Time{Limit: 60}}, nil},
		{"too long is refused", strict, "batch", job.Job{Time: job.Time{Limit: 60}}, ErrTimeLimit},
		{"too wide is refused", strict, "batch", job.Job{Shape: job.Shape{MinNodes: 2}}, ErrNodeCount},
	} {
		b := aJob(0, in(tt.part))
		b.Spec.Job = tt.job
		if err := tt.v.Feasible(b); !errors.Is(err, tt.expect) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.expect)
		}
	}
}

func TestRows(t *testing.T) {
	nodes := fourNodes()
	nodes[3].Annotations[wire.AnnotationState] = "drain"
	nodes[3].Annotations[wire.AnnotationReason] = "broken fan [root@2026-01-02T03:04:05]"
	v := view(Input{Nodes: nodes, Jobs: []*v1alpha1.BatchJob{aJob(1, runningOn("0-1", "n1", "n2")), aJob(2, runningOn("2-3", "n2"))}})
	var states []string
	rows := v.NodeRows()
	for _, r := range rows {
		states = append(states, r.State+strings.Join(r.Flags, ""))
	}
	if !slices.Equal(states, []string{"MIXED", "ALLOCATED", "IDLE", "IDLEDRAIN"}) {
		t.Errorf("%v", states)
	}
	if r := rows[3]; r.Reason != "broken fan" || r.ReasonBy != "root" || r.ReasonAt == 0 {
		t.Errorf("%+v", r)
	}
	if rows[1].MemAlloc != 200 || rows[0].GRES != "gpu:tesla:2" || !slices.Equal(rows[1].Partitions, []string{"batch", "debug", "off"}) {
		t.Errorf("%+v", rows[1])
	}
	p := v.PartitionRows()
	if len(p) != 3 || p[0].Name != "batch" || p[0].MaxTime != 30 || !slices.Equal(p[0].Nodes, []string{"n2", "n3"}) || p[1].MaxTime != -1 {
		t.Errorf("%+v", p)
	}
}

func TestNoPartitionObjectMeansMain(t *testing.T) {
	v := Build(Input{Now: now, Nodes: fourNodes(), Jobs: []*v1alpha1.BatchJob{aJob(1, in(""))}})
	if w := v.Wanted(1); w.Partition != "main" || w.TimeLimit != job.Unlimited || v.Pending[0].Blocked != "" {
		t.Errorf("%+v %+v", w, v.Pending[0])
	}
}
