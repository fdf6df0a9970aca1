package clusterview

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// newSnapshot returns a snapshot of the input, with three partitions and, by default,
// four nodes.
func newSnapshot(in snapshot.Input) *snapshot.Snapshot {
	in.Now, in.Partitions = schedtest.Now, schedtest.Partitions()
	if in.Nodes == nil {
		in.Nodes = schedtest.FourNodes()
	}
	return snapshot.New(in)
}

func TestNodesAndPartitions(t *testing.T) {
	nodes := schedtest.FourNodes()
	nodes[3].Annotations[wire.AnnotationState] = "drain"
	nodes[3].Annotations[wire.AnnotationReason] = "broken fan [root@2026-01-02T03:04:05]"
	s := newSnapshot(
		snapshot.Input{
			Nodes: nodes,
			Jobs: []*v1alpha1.BatchJob{
				schedtest.Job(1, schedtest.RunningOn("0-1", "n1", "n2")),
				schedtest.Job(2, schedtest.RunningOn("2-3", "n2")),
			},
		},
	)
	var states []string
	rows := Nodes(s)
	for _, r := range rows {
		states = append(states, r.State+strings.Join(r.Flags, ""))
	}
	if !slices.Equal(states, []string{"MIXED", "ALLOCATED", "IDLE", "IDLEDRAIN"}) {
		t.Errorf("%v", states)
	}
	if r := rows[3]; r.Reason != "broken fan" || r.ReasonBy != "root" || r.ReasonAt == 0 {
		t.Errorf("%+v", r)
	}
	if rows[1].MemAlloc != 200 || rows[0].GRES != "gpu:tesla:2" ||
		!slices.Equal(rows[1].Partitions, []string{"batch", "debug", "off"}) {
		t.Errorf("%+v", rows[1])
	}
	p := Partitions(s)
	if len(p) != 3 || p[0].Name != "batch" || p[0].MaxTime != 30 || !slices.Equal(p[0].Nodes, []string{"n2", "n3"}) ||
		p[1].MaxTime != -1 {
		t.Errorf("%+v", p)
	}
}

// A node that does not respond is down after SlurmdTimeout, as with Slurm.
func TestUnreachableNodes(t *testing.T) {
	for _, c := range []struct {
		since time.Duration
		want  string
	}{
		{time.Minute, "MIXED NOT_RESPONDING "}, {5 * time.Minute, "DOWN NOT_RESPONDING Not responding"},
	} {
		nodes := schedtest.FourNodes()
		nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
			LastTransitionTime: metav1.NewTime(schedtest.Now.Add(-c.since))}}
		row := Nodes(newSnapshot(snapshot.Input{
			Nodes: nodes, Jobs: []*v1alpha1.BatchJob{schedtest.Job(1, schedtest.RunningOn("0-1", "n1"))},
		}))[0]
		if got := row.State + " " + strings.Join(row.Flags, ",") + " " + row.Reason; got != c.want {
			t.Errorf("after %v %q, want %q", c.since, got, c.want)
		}
	}
}

// What a completing job holds is shown as free, beside the flag, as by Slurm 22.05.8.
func TestCompletingJobsHoldNothing(t *testing.T) {
	completing := schedtest.Job(2, schedtest.RunningOn("2-3", "n1", "n2"))
	completing.Status.State = v1alpha1.StateCompleting
	rows := Nodes(newSnapshot(snapshot.Input{
		Jobs: []*v1alpha1.BatchJob{schedtest.Job(1, schedtest.RunningOn("0-1", "n1")), completing},
	}))
	var got []string
	for _, r := range rows[:3] {
		got = append(got, fmt.Sprint(r.State, r.Flags, r.CPUsAlloc, " ", r.MemAlloc))
	}
	if want := []string{"MIXED[COMPLETING] 2 100", "IDLE[COMPLETING] 0 0", "IDLE[] 0 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A row shows every setting of the partition.
func TestPartitionSettings(t *testing.T) {
	memory, over := int64(2000), int32(5)
	p := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Spec: v1alpha1.PartitionSpec{
		MemoryLimits:  v1alpha1.MemoryLimits{MaxMemPerNode: &memory},
		OverTimeLimit: &over,
		DenyAccounts: []string{
			"x",
		},
		DenyQOS:       []string{"low"},
		QOS:           "high",
		ReqResv:       true,
		ExclusiveUser: true,
		GraceTime:     7,
		MaxCPUs:       3,
		PreemptMode:   "REQUEUE",
	}}
	rows := Partitions(snapshot.New(snapshot.Input{Now: time.Unix(1e9, 0), Partitions: []*v1alpha1.Partition{p}}))
	if len(rows) != 1 {
		t.Fatal(rows)
	}
	r := rows[0]
	if r.MaxMemPerNode != 2000 || r.DefMemPerCPU != 0 || r.OverTimeLimit != 5 || !slices.Equal(r.DenyAccounts, []string{"x"}) || !slices.Equal(r.DenyQOS, []string{"low"}) ||
		r.QOS != "high" || !r.ReqResv || !r.ExclusiveUser ||
		r.GraceTime != 7 ||
		r.MaxCPUs != 3 ||
		r.PreemptMode != "REQUEUE" {
		t.Errorf("%+v", r)
	}
}

// Rows show the reservation that the node, or some of its cores, is in at the time.
func TestMarkReserved(t *testing.T) {
	book := func(name, nodes string, minutes int, cores map[string]string, flags ...string) *v1alpha1.Reservation {
		r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.Spec = v1alpha1.ReservationSpec{
			StartTime: metav1.NewTime(schedtest.Now.Add(time.Duration(minutes) * time.Minute)),
			Duration:  60,
			Nodes:     nodes,
			Cores:     cores,
			Flags:     flags,
		}
		return r
	}
	s := newSnapshot(snapshot.Input{Reservations: []*v1alpha1.Reservation{
		book("works", "n1", -1, nil, "MAINT"),
		book("part", "n2", -1, map[string]string{"n2": "0"}),
		book("later", "n3", 5, nil),
		book("over", "n3", -61, nil),
	}})
	for minutes, want := range map[int]string{0: "n1 MAINTENANCE,RESERVED works; n2 RESERVED part; n3  ; n10  ; ", 6: "n1 MAINTENANCE,RESERVED works; n2 RESERVED part; n3 RESERVED later; n10  ; "} {
		rows := Nodes(s)
		MarkReserved(s, rows, schedtest.Now.Add(time.Duration(minutes)*time.Minute).Unix())
		got := ""
		for _, r := range rows {
			got += r.Name + " " + strings.Join(r.Flags, ",") + " " + r.Reservation + "; "
		}
		if got != want {
			t.Errorf("after %d minutes %q, want %q", minutes, got, want)
		}
	}
}

// Jobs get the nodes of the least weight first, and rows are ordered by name all the
// same.
func TestWeightsDoNotOrderRows(t *testing.T) {
	nodes := schedtest.FourNodes()
	weigh := func(n *corev1.Node, weight string) {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[wire.AnnotationWeight] = weight
	}
	weigh(nodes[0], "10")
	weigh(nodes[2], "5")
	b := schedtest.Job(1)
	b.Spec.Job.Shape.MinNodes = 2
	b.Spec.Job.Placement.Exclusive = "exclusive"
	s := newSnapshot(snapshot.Input{Nodes: nodes, Jobs: []*v1alpha1.BatchJob{b}})
	if got := strings.Join(s.NodeNames(s.Plan().Decisions[0]), ","); got != "n2,n10" {
		t.Errorf("the job gets %s, want n2,n10", got)
	}
	var shown, members []string
	weights := 0
	for _, n := range Nodes(s) {
		shown = append(shown, n.Name)
		weights = weights*100 + int(n.Weight)
	}
	if got := strings.Join(shown, ","); got != "n1,n2,n3,n10" || weights != 10010501 {
		t.Errorf("nodes are shown as %s, weights %d", got, weights)
	}
	for _, p := range Partitions(s) {
		if p.Name == "debug" {
			members = p.Nodes
		}
	}
	if got := strings.Join(members, ","); got != "n1,n2,n3,n10" {
		t.Errorf("the partition has %s", got)
	}
}

// TestPrioritiesOfEligibleJobs: sprio of Slurm 22.05.8 lists no job that begins later or
// depends on another.
func TestPrioritiesOfEligibleJobs(t *testing.T) {
	later, dependent := schedtest.Job(2), schedtest.Job(3)
	later.Spec.Job.Time.Begin = schedtest.Now.Add(time.Hour).Unix()
	dependent.Spec.Job.Dependencies.Items = []job.Dependency{{Type: "afterok", JobID: 1}}
	s := newSnapshot(snapshot.Input{Jobs: []*v1alpha1.BatchJob{schedtest.Job(1), later, dependent}})
	if got := Priorities(s).Items; len(got) != 1 || got[0].ID != 1 {
		t.Errorf("%+v", got)
	}
}

// TestReportedByTheNode: what scontrol show node of Slurm 22.05.8 shows of a node's daemon.
func TestReportedByTheNode(t *testing.T) {
	nodes := schedtest.FourNodes()
	n := nodes[0]
	n.Annotations = map[string]string{
		wire.AnnotationLoad: "0.25", wire.AnnotationFreeMemory: "1234",
		wire.AnnotationExtra: "e", wire.AnnotationCPUBind: "cores",
	}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
	n.Status.NodeInfo.OperatingSystem, n.Status.NodeInfo.KernelVersion = "linux", "6.1.0"
	r := Nodes(newSnapshot(snapshot.Input{Nodes: nodes}))[0]
	if r.Load != 25 || r.FreeMem != 1234 || r.Port != 10250 || r.OS != "Linux 6.1.0" || r.Extra != "e" || r.CPUBind != "cores" {
		t.Errorf("%+v", r)
	}
}

// What users know by another name is shown with the name of its object, unless an operator has
// written something else.
func TestNameOfTheObject(t *testing.T) {
	nodes := schedtest.FourNodes()
	nodes[0].Annotations = map[string]string{wire.AnnotationNodeName: "k1"}
	nodes[1].Annotations = map[string]string{wire.AnnotationNodeName: "k2", wire.AnnotationExtra: "e"}
	rows := map[string]string{}
	for _, r := range Nodes(newSnapshot(snapshot.Input{Nodes: nodes})) {
		rows[r.Name], _, _ = strings.Cut(r.Extra, "; ")
	}
	if rows["k1"] != "Kubernetes node "+nodes[0].Name || rows["k2"] != "e" || strings.Contains(rows[nodes[2].Name], "Kubernetes") {
		t.Errorf("%v", rows)
	}
}

// A node on which no job may start for a while, because its kubelet refused pods, is
// in no reservation that could be shown.
func TestMarkReservedSkipsRefusingNodes(t *testing.T) {
	s := newSnapshot(snapshot.Input{RefusingNodes: map[string]time.Time{"n1": schedtest.Now.Add(time.Minute)}})
	rows := Nodes(s)
	MarkReserved(s, rows, schedtest.Now.Unix())
	if len(rows[0].Flags) != 0 || rows[0].Reservation != "" {
		t.Errorf("%+v", rows[0])
	}
}

// TestUnpreparedDevices: a node that did not prepare devices of jobs says so, but stays in service.
func TestUnpreparedDevices(t *testing.T) {
	rows := Nodes(newSnapshot(snapshot.Input{Nodes: schedtest.FourNodes(), Unprepared: map[string]int{"n1": 2}}))
	const want = "the devices of 2 jobs were not prepared in the last 15 minutes"
	if r := rows[0]; r.DeviceTrouble != want || r.Reason != want || r.State != "IDLE" || rows[1].Reason != "" {
		t.Errorf("%+v, %+v", r, rows[1])
	}
}

// The time that jobs ran counts for their association and all accounts above it.
func TestWallMinutesOfAccounts(t *testing.T) {
	shares := []status.Share{
		{Account: "root"}, {Account: "chem", Depth: 1}, {Account: "lab", Depth: 2},
		{Account: "lab", User: "anna", Depth: 3}, {Account: "chem", User: "ben", Depth: 2},
		{Account: "bio", Depth: 1}, {Account: "bio", User: "anna", Depth: 2},
	}
	addWallMinutes(shares, map[status.AssociationKey]float64{
		{Account: "lab", User: "anna"}: 1, {Account: "chem", User: "ben"}: 10, {Account: "bio", User: "anna"}: 100,
	})
	want := []float64{111, 11, 1, 1, 10, 100, 100}
	for i, s := range shares {
		if s.WallMins != want[i] {
			t.Errorf("%s %s: %v minutes, want %v", s.Account, s.User, s.WallMins, want[i])
		}
	}
}

// TestDevicesOfANode: the numbers of the devices that the jobs of a node hold.
func TestDevicesOfANode(t *testing.T) {
	var jobs []*v1alpha1.BatchJob
	for id, index := range []string{"1", "0", ""} {
		b := schedtest.Job(int64(id)+1, schedtest.RunningOn(fmt.Sprint(id), "n1"))
		b.Status.Allocation.Nodes[0].GRES = []v1alpha1.GRESAllocation{{Name: "gpu", Type: "tesla", Count: 1, Indexes: index}}
		jobs = append(jobs, b)
	}
	rows := Nodes(newSnapshot(snapshot.Input{Nodes: schedtest.FourNodes(), Jobs: jobs[:2]}))
	if r := rows[0]; r.GRESUsed != "gpu:tesla:2" || r.GRESDevices != "gpu:tesla:2(IDX:0-1)" {
		t.Errorf("%q, %q", r.GRESUsed, r.GRESDevices)
	}
	rows = Nodes(newSnapshot(snapshot.Input{Nodes: schedtest.FourNodes(), Jobs: jobs[2:]}))
	if r := rows[0]; r.GRESDevices != "" {
		t.Errorf("not known: %q", r.GRESDevices)
	}
}
