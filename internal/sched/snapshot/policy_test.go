package snapshot

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

func decisionOf(s *Snapshot, id int64) backfill.Decision {
	for _, d := range s.Plan().Decisions {
		if d.ID == id {
			return d
		}
	}
	return backfill.Decision{}
}

func TestPrioritiesOrderTheQueue(t *testing.T) {
	p := Policy{
		QOS: []*v1alpha1.QOS{
			schedtest.QOS("high", func(q *v1alpha1.QOSSpec) { q.Priority = 10 }),
			schedtest.QOS("low", func(*v1alpha1.QOSSpec) {}),
		},
		Accounts: []*v1alpha1.Account{{ObjectMeta: metav1.ObjectMeta{Name: "chem"}}},
		Usage: Usage{
			Associations: map[status.AssociationKey]map[string]float64{{Account: "chem", User: "a"}: {"billing": 100}},
		},
	}
	params := v1alpha1.ClusterSpec{
		Priority: v1alpha1.Priority{PriorityWeights: map[string]int64{"qos": 1000, "fairshare": 100}},
	}
	s := newSnapshot(
		Input{
			Policy:     p,
			Parameters: params,
			Jobs: []*v1alpha1.BatchJob{
				schedtest.Job(1, schedtest.InQOS("low")),
				schedtest.Job(2, schedtest.InQOS("high")),
			},
		},
	)
	// The user root of the account root has used nothing and comes before user a, who has
	// a fair share of one half.
	if a, b := s.Info(1).Priority, s.Info(2).Priority; a != 50 || b != 1050 {
		t.Errorf("priorities %d and %d", a, b)
	}
	if ds := s.Plan().Decisions; ds[0].ID != 2 {
		t.Errorf("job %d comes first", ds[0].ID)
	}
	if j, ok := s.PriorityJob(2); !ok || j.QOS != "high" || j.Account != "chem" {
		t.Errorf("%+v", j)
	}
}

func TestLimitsHoldWithinOnePlan(t *testing.T) {
	p := Policy{QOS: []*v1alpha1.QOS{schedtest.QOS("one", func(q *v1alpha1.QOSSpec) { q.Limits.MaxJobsPerUser = 1 })}}
	s := newSnapshot(
		Input{
			Policy: p,
			Jobs: []*v1alpha1.BatchJob{
				schedtest.Job(1, schedtest.InQOS("one")),
				schedtest.Job(2, schedtest.InQOS("one")),
			},
		},
	)
	if d := decisionOf(s, 2); decisionOf(s, 1).Reason != "" || d.StartNow || d.Reason != "QOSMaxJobsPerUserLimit" {
		t.Errorf("%+v", d)
	}
}

// A job that takes whole nodes counts with all that they have.
func TestLimitsCountWhatIsGiven(t *testing.T) {
	p := Policy{
		QOS: []*v1alpha1.QOS{
			schedtest.QOS("ten", func(q *v1alpha1.QOSSpec) { q.Limits.GrpTRES = map[string]int64{"cpu": 10} }),
		},
	}
	var jobs []*v1alpha1.BatchJob
	for id := range int64(3) {
		jobs = append(jobs, schedtest.Job(id+1, schedtest.InQOS("ten"), schedtest.WholeNode))
	}
	s := newSnapshot(
		Input{Policy: p, Jobs: jobs, Partitions: []*v1alpha1.Partition{{ObjectMeta: metav1.ObjectMeta{Name: "debug"}}}},
	)
	if d := decisionOf(s, 3); !decisionOf(s, 2).StartNow || d.StartNow || d.Reason != "QOSGrpCpuLimit" {
		t.Errorf("%+v", d)
	}
}

func TestReservationsRepeat(t *testing.T) {
	r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: "maint"}}
	r.Spec = v1alpha1.ReservationSpec{
		StartTime: metav1.NewTime(schedtest.Now.Add(time.Hour)),
		Duration:  60,
		Nodes:     "n[1-2]",
		Flags:     []string{"DAILY", "MAINT"},
	}
	s := newSnapshot(Input{Reservations: []*v1alpha1.Reservation{r}})
	if len(s.AdvanceReservations) != occurrences ||
		s.AdvanceReservations[1].Start-s.AdvanceReservations[0].Start != 86400 ||
		!s.AdvanceReservations[0].Nodes.Has(1) ||
		s.AdvanceReservations[0].Nodes.Has(2) {
		t.Errorf("%+v", s.AdvanceReservations)
	}
}

// A MAGNETIC reservation attracts the jobs of its users, first of all places;
// those that name another, and those of others, it does not.
func TestMagneticReservation(t *testing.T) {
	r := &v1alpha1.Reservation{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "team-a",
			Annotations: map[string]string{v1alpha1.NameAnnotation: "team_A"},
		},
	}
	r.Spec = v1alpha1.ReservationSpec{
		StartTime: metav1.NewTime(schedtest.Now),
		Duration:  60,
		Nodes:     "n2",
		Flags:     []string{"MAGNETIC"},
		Users:     []string{"anna"},
	}
	attracted := func(user, reservation string) (string, string) {
		b := schedtest.Job(1)
		b.Spec.User, b.Spec.Job.Reservation = user, reservation
		s := newSnapshot(Input{Reservations: []*v1alpha1.Reservation{r}, Jobs: []*v1alpha1.BatchJob{b}})
		d := s.Plan().Decisions[0]
		return s.MagneticReservation(d), strings.Join(s.NodeNames(d), ",")
	}
	if in, on := attracted("anna", ""); in != "team_A" || on != "n2" {
		t.Errorf("anna's job is in %q on %s", in, on)
	}
	if in, on := attracted("anna", "team_A"); in != "" || on != "n2" {
		t.Errorf("anna's job that names it is attracted by %q to %s", in, on)
	}
	if in, on := attracted("ben", ""); in != "" || on != "n1" {
		t.Errorf("ben's job is in %q on %s", in, on)
	}
	r.Spec.Nodes = ""
	if in, on := attracted("anna", ""); in != "" || on != "n1" {
		t.Errorf("without its nodes: %q on %s", in, on)
	}
}

// Of several MAGNETIC reservations the first one by name attracts a job, in whatever order
// the store returns them.
func TestSeveralMagneticReservations(t *testing.T) {
	magnetic := func(name, nodes string) *v1alpha1.Reservation {
		r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.Spec = v1alpha1.ReservationSpec{
			StartTime: metav1.NewTime(schedtest.Now), Duration: 60, Nodes: nodes, Flags: []string{"MAGNETIC"}, Users: []string{"anna"},
		}
		return r
	}
	b := schedtest.Job(1)
	b.Spec.User = "anna"
	all := []*v1alpha1.Reservation{magnetic("a", "n2"), magnetic("b", "n1")}
	for range 2 {
		slices.Reverse(all)
		s := newSnapshot(Input{Reservations: all, Jobs: []*v1alpha1.BatchJob{b}})
		if in := s.MagneticReservation(s.Plan().Decisions[0]); in != "a" {
			t.Errorf("the job is in reservation %q", in)
		}
	}
}

// A job in a reservation that is about to end will have ended with it.
func TestRunningJobEndsWithItsReservation(t *testing.T) {
	r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	r.Spec = v1alpha1.ReservationSpec{
		StartTime: metav1.NewTime(schedtest.Now.Add(-time.Hour)),
		Duration:  65,
		Nodes:     "n1",
	}
	b := schedtest.Job(1, schedtest.RunningOn("0-1", "n1"))
	b.Spec.Job.Reservation, b.Status.StartTime = "r", &metav1.MicroTime{Time: schedtest.Now.Add(-time.Minute)}
	end := func() int64 {
		return newSnapshot(Input{Reservations: []*v1alpha1.Reservation{r}, Jobs: []*v1alpha1.BatchJob{b}}).Running[0].End
	}
	if got := end(); got != schedtest.Now.Unix()+300 {
		t.Errorf("it ends in %d s, want 300", got-schedtest.Now.Unix())
	}
	if r.Spec.Flags = []string{"FLEX"}; end() <= schedtest.Now.Unix()+300 {
		t.Error("a flexible reservation ends it")
	}
}

// The time that a job was suspended does not count towards its time limit.
func TestSuspendedTimeExtendsARun(t *testing.T) {
	b := schedtest.Job(1, schedtest.RunningOn("0-1", "n1"))
	b.Status.StartTime = &metav1.MicroTime{Time: schedtest.Now.Add(-time.Hour)}
	b.Status.TimeLimit, b.Status.Suspended = 30, 2700
	end := newSnapshot(Input{Jobs: []*v1alpha1.BatchJob{b}}).Running[0].End
	if want := schedtest.Now.Unix() + 15*60; end != want {
		t.Errorf("it ends %d s from now, want %d", end-schedtest.Now.Unix(), want-schedtest.Now.Unix())
	}
}

// The weights of a partition determine the billing of its jobs, and with it the usage
// of their users; jobs of users with more usage come later.
func TestBillingWeighsInFairShare(t *testing.T) {
	factor := func(weights string) float64 {
		in := Input{
			Policy: Policy{Users: []*v1alpha1.User{
				{
					ObjectMeta: metav1.ObjectMeta{Name: "a"},
					Spec:       v1alpha1.UserSpec{DefaultAccount: "x", Accounts: []string{"x"}},
				},
				{
					ObjectMeta: metav1.ObjectMeta{Name: "b"},
					Spec:       v1alpha1.UserSpec{DefaultAccount: "x", Accounts: []string{"x"}},
				},
			},
				Accounts: []*v1alpha1.Account{{ObjectMeta: metav1.ObjectMeta{Name: "x"}}}},
			Parameters: v1alpha1.ClusterSpec{
				Priority: v1alpha1.Priority{PriorityWeights: map[string]int64{"fairshare": 1000}},
			},
			Partitions: []*v1alpha1.Partition{
				{
					ObjectMeta: metav1.ObjectMeta{Name: "debug"},
					Spec:       v1alpha1.PartitionSpec{TRESBillingWeights: weights},
				},
			},
			Jobs: []*v1alpha1.BatchJob{
				schedtest.Job(1, schedtest.RunningOn("0-1", "n1")),
				schedtest.Job(2, schedtest.RunningOn("0-1", "n2")),
			},
		}
		for i, user := range []string{"a", "b"} {
			in.Jobs[i].Spec.User, in.Jobs[i].Spec.Job.Account = user, "x"
			in.Jobs[i].Status.StartTime = &metav1.MicroTime{Time: schedtest.Now.Add(-time.Hour)}
		}
		in.Jobs[1].Status.Allocation.Nodes[0].Memory = 3000
		s := newSnapshot(in)
		for _, s := range s.Priorities().Shares() {
			if s.User == "a" {
				return s.EffectvUse
			}
		}
		return -1
	}
	if cpus, memory := factor(""), factor("Mem=1"); cpus != 0.5 || memory >= 0.1 {
		t.Errorf("a has used %v of all by CPUs, %v by memory", cpus, memory)
	}
}

// Jobs of one plan together draw on a limit of billing what their partition
// bills them, not their CPUs.
func TestBillingLimitHoldsWithinOnePlan(t *testing.T) {
	for _, c := range []struct {
		weights string
		most    int64
		change  func(*v1alpha1.BatchJob)
		now     int
	}{
		{"", 2, nil, 2},                        // one CPU each
		{"CPU=2.0", 6, nil, 3},                 // two each
		{"CPU=2.0", 7, nil, 3},                 // the rest is too little
		{"CPU=0.5", 1, nil, 3},                 // half a CPU each is rounded down to nothing
		{"GRES/gpu=3.0", 5, oneCard, 1},        // by the card
		{"CPU=1.0", 9, schedtest.WholeNode, 2}, // all CPUs of a node
		{"Node=10.0,CPU=1.0", 28, oneCard, 2},  // eleven each
	} {
		parts := schedtest.Partitions()
		parts[0].Spec.TRESBillingWeights = c.weights
		p := Policy{
			QOS: []*v1alpha1.QOS{
				schedtest.QOS(
					"q",
					func(q *v1alpha1.QOSSpec) { q.Limits.GrpTRES = map[string]int64{"billing": c.most} },
				),
			},
		}
		var jobs []*v1alpha1.BatchJob
		for id := range int64(3) {
			b := schedtest.Job(id+1, schedtest.InQOS("q"))
			if c.change != nil {
				c.change(b)
			}
			jobs = append(jobs, b)
		}
		now := 0
		for _, d := range newSnapshot(Input{Policy: p, Partitions: parts, Jobs: jobs}).Plan().Decisions {
			switch {
			case d.StartNow:
				now++
			case d.Reason != "QOSGrpBilling":
				t.Errorf("%+v: job %d waits for %q", c, d.ID, d.Reason)
			}
		}
		if now != c.now {
			t.Errorf("weights %q, limit %d: %d jobs start, want %d", c.weights, c.most, now, c.now)
		}
	}
}

func oneCard(b *v1alpha1.BatchJob) {
	b.Spec.Job.Shape.GRES = []job.GRES{{Name: "gpu", Count: 1, Per: job.PerNode}}
}

// A QOS may make what runs in it count more or less, or not at all.
func TestUsageFactorWeighsInFairShare(t *testing.T) {
	for factor, want := range map[string]float64{"": 0.5, "1.000000": 0.5, "3": 0.75, "0": 0, "0.5": 1.0 / 3} {
		in := Input{
			Policy: Policy{
				Accounts: []*v1alpha1.Account{{ObjectMeta: metav1.ObjectMeta{Name: "chem"}}},
				QOS: []*v1alpha1.QOS{
					schedtest.QOS("q", func(q *v1alpha1.QOSSpec) { q.UsageFactor = factor }),
					schedtest.QOS("plain", func(*v1alpha1.QOSSpec) {}),
				},
			},
			Jobs: []*v1alpha1.BatchJob{
				schedtest.Job(1, schedtest.InQOS("q"), schedtest.RunningOn("0-1", "n1")),
				schedtest.Job(2, schedtest.InQOS("plain"), schedtest.RunningOn("0-1", "n2")),
			},
		}
		in.Jobs[1].Spec.User = "b"
		for _, b := range in.Jobs {
			b.Status.StartTime = &metav1.MicroTime{Time: schedtest.Now.Add(-time.Hour)}
		}
		got := -1.0
		for _, s := range newSnapshot(in).Priorities().Shares() {
			if s.User == "a" {
				got = s.EffectvUse
			}
		}
		if got != want {
			t.Errorf("with UsageFactor %q a has used %v of all, want %v", factor, got, want)
		}
	}
}

// backfillOrder of the Cluster sets the order in which jobs are backfilled, for which a job has
// waited since it could have started.
func TestBackfillOrderOfTheCluster(t *testing.T) {
	for value, want := range map[string]backfill.Order{
		"":         backfill.ByPriority,
		"priority": backfill.ByPriority,
		"shortest": backfill.ShortestFirst,
		"slowdown": backfill.BySlowdown,
	} {
		submitted := metav1.NewMicroTime(time.Unix(500, 0))
		s := newSnapshot(Input{
			Parameters: v1alpha1.ClusterSpec{BackfillOrder: value},
			Jobs: []*v1alpha1.BatchJob{
				schedtest.Job(1, func(b *v1alpha1.BatchJob) { b.Spec.SubmitTime = &submitted }),
			},
		})
		if s.Policy.BackfillOrder != want {
			t.Errorf("%q: order %d, want %d", value, s.Policy.BackfillOrder, want)
		}
		if since := s.Pending[0].Since; since != 500 {
			t.Errorf("%q: has waited since %d, want 500", value, since)
		}
	}
}
