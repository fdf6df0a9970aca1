package record

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// sacct of Slurm 22.05.8 shows Partition_Limit for a job that has not started if neither the job nor its partition has a limit, and UNLIMITED if
// it had started.
func TestTimeLimitThatWasNeverSet(t *testing.T) {
	started := metav1.NewMicroTime(time.Unix(1_700_000_000, 0))
	for _, c := range []struct {
		name  string
		start *metav1.MicroTime
		limit int32
		row   int32
		state string
		want  int32
	}{
		{"cancelled before", nil, 0, job.Unlimited, "CANCELLED", 0},
		{"pending", nil, 0, job.Unlimited, "PENDING", 0},
		{"started", &started, 0, job.Unlimited, "CANCELLED", job.Unlimited},
		{"without a limit", nil, job.Unlimited, job.Unlimited, "CANCELLED", job.Unlimited},
		{"the partition's default", nil, 0, 5, "CANCELLED", 5},
	} {
		b := &v1alpha1.BatchJob{}
		b.Spec.Job.Time.Limit, b.Status.State, b.Status.StartTime = c.limit, c.state, c.start
		list := OfJob(b, &status.Job{ID: 1, State: c.state, TimeLimit: c.row}, Cluster{Name: "ref"})
		if have := list[len(list)-1].TimeLimit; have != c.want {
			t.Errorf("%s: %d, want %d", c.name, have, c.want)
		}
	}
}

// A job that waits has the reason that is known at its submission, as in Slurm 22.05.8.
func TestReasonOfAPendingJob(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.BatchJob, *status.Job){
		"":                     func(*v1alpha1.BatchJob, *status.Job) {},
		status.ReasonBeginTime: func(b *v1alpha1.BatchJob, _ *status.Job) { b.Spec.Job.Time.Begin = 500 },
		status.ReasonDependency: func(b *v1alpha1.BatchJob, _ *status.Job) {
			b.Spec.Job.Time.Begin = 500
			b.Spec.Job.Dependencies.Items = []job.Dependency{{Type: "afterok", JobID: 7}}
		},
		"JobHeldUser": func(b *v1alpha1.BatchJob, row *status.Job) {
			b.Spec.Job.Time.Begin, row.Reason = 500, "JobHeldUser"
		},
	} {
		b, row := &v1alpha1.BatchJob{}, &status.Job{ID: 1, State: "PENDING", Reason: "None", Submit: 100}
		change(b, row)
		list := OfJob(b, row, Cluster{Name: "ref"})
		if have := list[len(list)-1].Reason; have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
}

// The requested number of nodes is that of the job: squeue shows 3 nodes for a pending
// -N2 -n3 -c2, sacct 2.
func TestRequestedNodes(t *testing.T) {
	b := &v1alpha1.BatchJob{}
	b.Spec.Job.Shape = job.Shape{
		MinNodes:    2,
		Tasks:       3,
		CPUsPerTask: 2,
		GRES:        []job.GRES{{Name: "gpu", Count: 1, Per: "node"}},
	}
	row := &status.Job{ID: 1, State: "PENDING", Nodes: 3, CPUs: 6, TRES: "cpu=6,mem=600M,node=2,billing=6"}
	r := OfJob(b, row, Cluster{Name: "ref"})[0]
	if want := "billing=6,cpu=6,gres/gpu=2,mem=600M,node=2"; r.ReqNodes != 2 || r.ReqTRES != want {
		t.Errorf("%d nodes, %s", r.ReqNodes, r.ReqTRES)
	}
	b.Status.Allocation = &v1alpha1.Allocation{Nodes: make([]v1alpha1.NodeAllocation, 4)}
	if have := OfJob(b, row, Cluster{Name: "ref"})[0].ReqNodes; have != 4 {
		t.Errorf("%d nodes, want those of the allocation", have)
	}
}

// users knows one user.
type users struct{}

func (users) UserID(name string) (int64, bool) { return 1001, name == "anna" }

func at(seconds int64) *metav1.MicroTime {
	t := metav1.NewMicroTime(time.Unix(seconds, 0))
	return &t
}

// A job that was requeued has a record for each run; the second one was
// submitted when the first ended.
func TestRunsOfARequeuedJob(t *testing.T) {
	b := &v1alpha1.BatchJob{}
	b.UID = "u"
	b.Spec.SubmitTime, b.Spec.Cancel = at(10), &v1alpha1.CancelRequest{By: "anna"}
	b.Status = v1alpha1.BatchJobStatus{
		State: "CANCELLED", Restarts: 1, StartTime: at(60), EndTime: at(90),
		Allocation: &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 2,
			GRES: []v1alpha1.GRESAllocation{{Name: "gpu", Type: "a100", Count: 1}}}}},
		History: []v1alpha1.StateChange{
			{State: "RUNNING", At: *at(60)}, {State: "SUSPENDED", At: *at(70)}, {State: "RUNNING", At: *at(75)},
		},
		Past: []v1alpha1.PastAttempt{
			{
				State:    "REQUEUED",
				Queued:   *at(12),
				Start:    *at(20),
				End:      *at(50),
				CPUs:     4,
				Nodes:    2,
				NodeList: "n[1-2]",
				Memory:   100,
			},
		},
	}
	row := &status.Job{
		ID:       7,
		Submit:   10,
		Eligible: 10,
		Nodes:    1,
		CPUs:     2,
		NodeList: "n1",
		TRES:     "cpu=2,node=1,billing=2",
		Signal:   9,
	}
	list := OfJob(b, row, Cluster{Name: "ref", Users: users{}})
	if len(list) != 2 {
		t.Fatalf("%d records", len(list))
	}
	first, second := list[0], list[1]
	if first.State != "REQUEUED" || first.Submit != 12 || first.Start != 20 || first.End != 50 ||
		first.AllocTRES != "billing=4,cpu=4,mem=100M,node=2" || !HasEnded(&first) {
		t.Errorf("the first run: %+v", first)
	}
	if second.Submit != 50 || second.Eligible != 50 || second.Start != 60 || second.End != 90 || second.Suspended != 5 ||
		second.KilledBy != "anna" || second.KilledByID != 1001 || second.Signal != 0 ||
		len(second.History) != 3 ||
		second.AllocTRES != "billing=2,cpu=2,gres/gpu:a100=1,gres/gpu=1,node=1" {
		t.Errorf("the second run: %+v", second)
	}
	if KeyOf(&first) == KeyOf(&second) || KeyOf(&second) != (RunKey{"u", 1}) {
		t.Errorf("keys %v and %v", KeyOf(&first), KeyOf(&second))
	}
}

// An earlier run is billed by the weights of its partition, as the present one is.
func TestBillingOfAnEarlierRun(t *testing.T) {
	b := &v1alpha1.BatchJob{}
	b.Status.Past = []v1alpha1.PastAttempt{{State: "REQUEUED", End: *at(50), CPUs: 4, Nodes: 2, Partition: "gpu"}}
	c := Cluster{Billing: func(_ *v1alpha1.BatchJob, p *v1alpha1.PastAttempt) int64 {
		if p.Partition == "gpu" {
			return 10 * int64(p.CPUs)
		}
		return 0
	}}
	if got, want := OfJob(b, &status.Job{ID: 7}, c)[0].AllocTRES, "billing=40,cpu=4,node=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A run that was suspended when it ended has ended when it was suspended, and that
// suspension does not count: as in sacct of Slurm 22.05.8.
func TestEndOfSuspendedRun(t *testing.T) {
	change := func(state string, seconds int64) v1alpha1.StateChange {
		return v1alpha1.StateChange{State: state, At: *at(seconds)}
	}
	history := []v1alpha1.StateChange{
		change("CONFIGURING", 19), change("RUNNING", 20), change("SUSPENDED", 30), change("RUNNING", 34),
		change("SUSPENDED", 50), change("COMPLETING", 90),
	}
	b := &v1alpha1.BatchJob{}
	b.Status = v1alpha1.BatchJobStatus{
		State: "CANCELLED", Restarts: 1, StartTime: at(20), EndTime: at(90),
		History: append(history, change("CANCELLED", 91)),
		Past:    []v1alpha1.PastAttempt{{State: "REQUEUED", Start: *at(20), End: *at(90), History: history}},
	}
	for i, r := range OfJob(b, &status.Job{ID: 7}, Cluster{}) {
		if r.End != 50 || r.Suspended != 4 {
			t.Errorf("run %d ended at %d and was suspended for %d s, want 50 and 4 s", i, r.End, r.Suspended)
		}
	}
	b.Status.Past, b.Status.State, b.Status.EndTime, b.Status.History = nil, "SUSPENDED", nil, history[:5]
	if r := OfJob(b, &status.Job{ID: 7}, Cluster{})[0]; r.End != 0 || r.Suspended != 4 {
		t.Errorf("a suspended run has the end %d and was suspended for %d s, want none and 4 s", r.End, r.Suspended)
	}
}

// An earlier run was eligible when it started, whatever the present one waits for.
func TestEligibleTimeOfAnEarlierRun(t *testing.T) {
	b := &v1alpha1.BatchJob{}
	b.Spec.SubmitTime = at(10)
	b.Status = v1alpha1.BatchJobStatus{State: "PENDING", Restarts: 1,
		Past: []v1alpha1.PastAttempt{{State: "REQUEUED", Start: *at(20), End: *at(50)}}}
	for _, eligible := range []int64{0, 60} {
		if first := OfJob(b, &status.Job{ID: 7, Submit: 10, Eligible: eligible}, Cluster{})[0]; first.Eligible != 20 {
			t.Errorf("eligible now %d: the first run was eligible at %d, want 20", eligible, first.Eligible)
		}
	}
}

// States that are flags in Slurm's database are not stored.
func TestBaseState(t *testing.T) {
	for _, c := range []struct{ state, final, want string }{
		{"", "", "PENDING"}, {"CONFIGURING", "", "RUNNING"}, {"COMPLETING", "PENDING", "REQUEUED"},
		{"COMPLETING", "FAILED", "FAILED"}, {"COMPLETING", "", "COMPLETING"}, {"TIMEOUT", "", "TIMEOUT"},
	} {
		if got := baseState(&v1alpha1.BatchJobStatus{State: c.state, Final: c.final}); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.state, c.final, got, c.want)
		}
	}
}

func TestParseTRES(t *testing.T) {
	got := ParseTRES("billing=1,cpu=2,mem=1500M,vmem=2G,gres/gpu:a100=3,node,x=y,mem2=4")
	want := map[string]int64{"billing": 1, "cpu": 2, "mem": 1500, "vmem": 2048, "gres/gpu:a100": 3, "mem2": 4}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for text, want := range map[string]int64{"mem=2048K": 2, "mem=1.5G": 1536, "mem=1T": 1 << 20, "mem=7": 7} {
		if got := ParseTRES(text)["mem"]; got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
