package snapshot

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

func quality(name string, change func(*v1alpha1.QOSSpec)) *v1alpha1.QOS {
	q := &v1alpha1.QOS{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(&q.Spec)
	return q
}

func withQOS(name string) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) { b.Spec.Job.QOS, b.Spec.Job.Account = name, "chem" }
}

func wholeNode(b *v1alpha1.BatchJob) { b.Spec.Job.Placement.Exclusive = "node" }

func decisionOf(v *View, id int64) backfill.Decision {
	for _, d := range v.Plan().Decisions {
		if d.ID == id {
			return d
		}
	}
	return backfill.Decision{}
}

func TestPrioritiesOrderTheQueue(t *testing.T) {
	p := Policy{QOS: []*v1alpha1.QOS{quality("high", func(q *v1alpha1.QOSSpec) { q.Priority = 10 }), quality("low", func(*v1alpha1.QOSSpec) {})},
		Accounts: []*v1alpha1.Account{{ObjectMeta: metav1.ObjectMeta{Name: "chem"}}},
		Used:     Used{Associations: map[status.AssociationKey]map[string]float64{{Account: "chem", User: "a"}: {"billing": 100}}}}
	params := v1alpha1.ClusterSpec{Priority: v1alpha1.Priority{PriorityWeights: map[string]int64{"qos": 1000, "fairshare": 100}}}
	v := view(Input{Policy: p, Parameters: params, Jobs: []*v1alpha1.BatchJob{aJob(1, withQOS("low")), aJob(2, withQOS("high"))}})
	if a, b := v.Wanted(1).Priority, v.Wanted(2).Priority; a != 100 || b != 1100 {
		t.Errorf("priorities %d and %d", a, b)
	}
	if ds := v.Plan().Decisions; ds[0].ID != 2 {
		t.Errorf("job %d comes first", ds[0].ID)
	}
	if j, ok := v.Explain(2); !ok || j.QOS != "high" || j.Account != "chem" {
		t.Errorf("%+v", j)
	}
}

func TestLimitsHoldWithinOnePlan(t *testing.T) {
	p := Policy{QOS: []*v1alpha1.QOS{quality("one", func(q *v1alpha1.QOSSpec) { q.Limits.MaxJobsPerUser = 1 })}}
	v := view(Input{Policy: p, Jobs: []*v1alpha1.BatchJob{aJob(1, withQOS("one")), aJob(2, withQOS("one"))}})
	if d := decisionOf(v, 2); decisionOf(v, 1).Reason != "" || d.StartNow || d.Reason != "QOSMaxJobsPerUserLimit" {
		t.Errorf("%+v", d)
	}
}

// A job that takes whole nodes counts with all that they have.
func TestLimitsCountWhatIsGiven(t *testing.T) {
	p := Policy{QOS: []*v1alpha1.QOS{quality("ten", func(q *v1alpha1.QOSSpec) { q.Limits.GrpTRES = map[string]int64{"cpu": 10} })}}
	var jobs []*v1alpha1.BatchJob
	for id := range int64(3) {
		jobs = append(jobs, aJob(id+1, withQOS("ten"), wholeNode))
	}
	v := view(Input{Policy: p, Jobs: jobs, Partitions: []*v1alpha1.Partition{{ObjectMeta: metav1.ObjectMeta{Name: "debug"}}}})
	if d := decisionOf(v, 3); !decisionOf(v, 2).StartNow || d.StartNow || d.Reason != "QOSGrpCpuLimit" {
		t.Errorf("%+v", d)
	}
}

// preemption has a job of QOS low on n1 and one of QOS high that wants a node,
// with only that node in its partition.
func preemption(change func(*Input)) *View {
	in := Input{
		Policy: Policy{QOS: []*v1alpha1.QOS{
			quality("high", func(q *v1alpha1.QOSSpec) { q.Preempt = []string{"low"} }),
			quality("low", func(q *v1alpha1.QOSSpec) { q.GraceTime = 5 })}},
		Parameters: v1alpha1.ClusterSpec{PreemptType: "preempt/qos", PreemptMode: "requeue"},
		Partitions: []*v1alpha1.Partition{{ObjectMeta: metav1.ObjectMeta{Name: "debug"}, Spec: v1alpha1.PartitionSpec{Nodes: "n1"}}},
		Jobs:       []*v1alpha1.BatchJob{aJob(1, runningOn("0-3", "n1"), withQOS("low")), aJob(2, withQOS("high"), wholeNode)},
	}
	in.Jobs[0].Status.StartTime = &metav1.MicroTime{Time: now.Add(-time.Minute)}
	if change != nil {
		change(&in)
	}
	return view(in)
}

// tiers has the waiting job in a partition of one tier and the running one in
// another of the other, on the same node, with preemption by partition.
func tiers(waiting, running int32) func(*Input) {
	return func(in *Input) {
		in.Parameters.PreemptType = "preempt/partition_prio"
		in.Partitions[0].Spec.PriorityTier = waiting
		low := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Spec: v1alpha1.PartitionSpec{Nodes: "n1", PriorityTier: running, GraceTime: 5}}
		in.Partitions = append(in.Partitions, low)
		in.Jobs[0].Spec.Partition, in.Jobs[0].Status.Partition = "low", "low"
	}
}

func TestVictims(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Input)
		want   int
	}{
		"one":                        {nil, 1},
		"no preemption":              {func(in *Input) { in.Parameters.PreemptType = "" }, 0},
		"mode off":                   {func(in *Input) { in.Parameters.PreemptMode = "OFF" }, 0},
		"to suspend is not possible": {func(in *Input) { in.Parameters.PreemptMode = "SUSPEND" }, 0},
		"the qos cancels":            {func(in *Input) { in.Policy.QOS[1].Spec.PreemptMode, in.Parameters.PreemptMode = "cancel", "OFF" }, 1},
		"of no lower qos":            {func(in *Input) { in.Jobs[0].Spec.Job.QOS = "high" }, 0},
		"not the other way round":    {func(in *Input) { in.Jobs[0].Spec.Job.QOS, in.Jobs[1].Spec.Job.QOS = "high", "low" }, 0},
		"exempt for a while":         {func(in *Input) { in.Parameters.PreemptExemptTime = 61 }, 0},
		"going already":              {func(in *Input) { in.Jobs[0].Status.Preempt = &v1alpha1.Preemption{By: 2} }, 0},
		"of the same tier":           {func(in *Input) { in.Parameters.PreemptType = "partition_prio" }, 0},
		"of a lower tier":            {tiers(2, 1), 1},
		"of a higher tier":           {tiers(1, 2), 0},
		"the lower tier's mode is off": {func(in *Input) {
			tiers(2, 1)(in)
			in.Partitions[1].Spec.PreemptMode = "OFF"
		}, 0},
	} {
		v := preemption(tt.change)
		got := v.Victims(2, nil)
		if len(got) != tt.want || tt.want == 1 && (got[0].Job.Spec.JobID != 1 || got[0].Grace != 5*time.Second) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// While its victim goes, and afterwards, the preemptor is ahead of everybody.
func TestNothingStartsInTheVictimsPlace(t *testing.T) {
	for _, gone := range []bool{false, true} {
		v := preemption(func(in *Input) {
			urgent := int64(1 << 31)
			in.Jobs = append(in.Jobs, aJob(3, func(b *v1alpha1.BatchJob) { b.Spec.Job.Priority = &urgent }))
			in.Jobs[0].Status.Preempt = &v1alpha1.Preemption{By: 2}
			if gone {
				in.Jobs, in.Expected = in.Jobs[1:], map[int64]bool{2: true}
			}
		})
		if ds := v.Plan().Decisions; ds[0].ID != 2 || ds[0].StartNow != gone || ds[1].StartNow {
			t.Errorf("gone %v: %+v", gone, ds)
		}
	}
}

func TestReservationsRepeat(t *testing.T) {
	r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: "maint"}}
	r.Spec = v1alpha1.ReservationSpec{StartTime: metav1.NewTime(now.Add(time.Hour)), Duration: 60, Nodes: "n[1-2]", Flags: []string{"DAILY", "MAINT"}}
	v := view(Input{Reservations: []*v1alpha1.Reservation{r}})
	if len(v.AdvanceReservations) != occurrences || v.AdvanceReservations[1].Start-v.AdvanceReservations[0].Start != 86400 || !v.AdvanceReservations[0].Nodes.Has(1) || v.AdvanceReservations[0].Nodes.Has(2) {
		t.Errorf("%+v", v.AdvanceReservations)
	}
}

// A MAGNETIC reservation attracts the jobs of its users, first of all places;
// those that name another, and those of others, it does not.
func TestMagneticReservation(t *testing.T) {
	r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Annotations: map[string]string{v1alpha1.NameAnnotation: "team_A"}}}
	r.Spec = v1alpha1.ReservationSpec{StartTime: metav1.NewTime(now), Duration: 60, Nodes: "n2", Flags: []string{"MAGNETIC"}, Users: []string{"anna"}}
	attracted := func(user, reservation string) (string, string) {
		b := aJob(1)
		b.Spec.User, b.Spec.Job.Reservation = user, reservation
		v := view(Input{Reservations: []*v1alpha1.Reservation{r}, Jobs: []*v1alpha1.BatchJob{b}})
		d := v.Plan().Decisions[0]
		return v.Attracted(d), strings.Join(v.Names(d), ",")
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

// A job in a reservation that is about to end will have ended with it.
func TestRunningJobEndsWithItsReservation(t *testing.T) {
	r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	r.Spec = v1alpha1.ReservationSpec{StartTime: metav1.NewTime(now.Add(-time.Hour)), Duration: 65, Nodes: "n1"}
	b := aJob(1, runningOn("0-1", "n1"))
	b.Spec.Job.Reservation, b.Status.StartTime = "r", &metav1.MicroTime{Time: now.Add(-time.Minute)}
	end := func() int64 {
		return view(Input{Reservations: []*v1alpha1.Reservation{r}, Jobs: []*v1alpha1.BatchJob{b}}).Running[0].End
	}
	if got := end(); got != now.Unix()+300 {
		t.Errorf("it ends in %d s, want 300", got-now.Unix())
	}
	if r.Spec.Flags = []string{"FLEX"}; end() <= now.Unix()+300 {
		t.Error("a flexible reservation ends it")
	}
}

// A partition's weights decide what its jobs are billed, and with it what
// their users have used; whoever has used more comes later.
func TestBillingWeighsInFairShare(t *testing.T) {
	factor := func(weights string) float64 {
		in := Input{
			Policy: Policy{Users: []*v1alpha1.User{
				{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.UserSpec{DefaultAccount: "x", Accounts: []string{"x"}}},
				{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: v1alpha1.UserSpec{DefaultAccount: "x", Accounts: []string{"x"}}}},
				Accounts: []*v1alpha1.Account{{ObjectMeta: metav1.ObjectMeta{Name: "x"}}}},
			Parameters: v1alpha1.ClusterSpec{Priority: v1alpha1.Priority{PriorityWeights: map[string]int64{"fairshare": 1000}}},
			Partitions: []*v1alpha1.Partition{{ObjectMeta: metav1.ObjectMeta{Name: "debug"}, Spec: v1alpha1.PartitionSpec{TRESBillingWeights: weights}}},
			Jobs:       []*v1alpha1.BatchJob{aJob(1, runningOn("0-1", "n1")), aJob(2, runningOn("0-1", "n2"))},
		}
		for i, user := range []string{"a", "b"} {
			in.Jobs[i].Spec.User, in.Jobs[i].Spec.Job.Account = user, "x"
			in.Jobs[i].Status.StartTime = &metav1.MicroTime{Time: now.Add(-time.Hour)}
		}
		in.Jobs[1].Status.Allocation.Nodes[0].Memory = 3000
		v := view(in)
		for _, s := range v.Factors().Shares() {
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
		{"", 2, nil, 2},                       // one CPU each
		{"CPU=2.0", 6, nil, 3},                // two each
		{"CPU=2.0", 7, nil, 3},                // the rest is too little
		{"CPU=0.5", 1, nil, 3},                // half a CPU each is rounded down to nothing
		{"GRES/gpu=3.0", 5, oneCard, 1},       // by the card
		{"CPU=1.0", 9, wholeNode, 2},          // all CPUs of a node
		{"Node=10.0,CPU=1.0", 28, oneCard, 2}, // eleven each
	} {
		parts := partitions()
		parts[0].Spec.TRESBillingWeights = c.weights
		p := Policy{QOS: []*v1alpha1.QOS{quality("q", func(q *v1alpha1.QOSSpec) { q.Limits.GrpTRES = map[string]int64{"billing": c.most} })}}
		var jobs []*v1alpha1.BatchJob
		for id := range int64(3) {
			b := aJob(id+1, withQOS("q"))
			if c.change != nil {
				c.change(b)
			}
			jobs = append(jobs, b)
		}
		now := 0
		for _, d := range view(Input{Policy: p, Partitions: parts, Jobs: jobs}).Plan().Decisions {
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
				QOS:      []*v1alpha1.QOS{quality("q", func(q *v1alpha1.QOSSpec) { q.UsageFactor = factor }), quality("plain", func(*v1alpha1.QOSSpec) {})}},
			Jobs: []*v1alpha1.BatchJob{aJob(1, withQOS("q"), runningOn("0-1", "n1")), aJob(2, withQOS("plain"), runningOn("0-1", "n2"))},
		}
		in.Jobs[1].Spec.User = "b"
		for _, b := range in.Jobs {
			b.Status.StartTime = &metav1.MicroTime{Time: now.Add(-time.Hour)}
		}
		got := -1.0
		for _, s := range view(in).Factors().Shares() {
			if s.User == "a" {
				got = s.EffectvUse
			}
		}
		if got != want {
			t.Errorf("with UsageFactor %q a has used %v of all, want %v", factor, got, want)
		}
	}
}
