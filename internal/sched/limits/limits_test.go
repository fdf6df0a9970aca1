package limits_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/status"
)

func account(name, parent string, l v1alpha1.Limits) *v1alpha1.Account {
	return &v1alpha1.Account{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.AccountSpec{Parent: parent, Limits: l},
	}
}

func qos(name string, l v1alpha1.Limits) *v1alpha1.QOS {
	return &v1alpha1.QOS{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.QOSSpec{Limits: l}}
}

type tres map[string]int64

func anna(cpus int64) *limits.Usage {
	return &limits.Usage{
		Account: "chem",
		User:    "anna",
		QOS:     "normal",
		CPUs:    cpus,
		Nodes:   2,
		Memory:  100,
		Minutes: 60,
		GRES:    map[string]int64{"gpu": 1},
	}
}

// Every limit, with the reason that Slurm gives.
func TestReasons(t *testing.T) {
	running := []limits.Usage{
		{
			Account: "chem",
			User:    "anna",
			QOS:     "normal",
			CPUs:    6,
			Nodes:   1,
			Memory:  50,
			Minutes: 10,
			GRES:    map[string]int64{"gpu": 3},
		},
		{Account: "phys", User: "ben", QOS: "normal", CPUs: 2, Nodes: 1, Minutes: 10},
	}
	minutes := map[status.AssociationKey]map[string]float64{
		{Account: "chem", User: "anna"}: {"cpu": 1000, limits.WallMinutes: 500},
	}
	type l = v1alpha1.Limits
	for _, tt := range []struct {
		name                string
		science, chem, user l // science is above chem
		qos                 l
		reason              string // why the job may not start
		draws               string // or the limit on which it draws
		left                int64
	}{
		{name: "none"},
		{name: "job", chem: l{MaxTRES: tres{"cpu": 3}}, reason: "AssocMaxCpuPerJobLimit"},
		{name: "job, inherited", science: l{MaxTRES: tres{"node": 1}}, reason: "AssocMaxNodePerJobLimit"},
		{name: "the nearest counts", science: l{MaxTRES: tres{"node": 1}}, user: l{MaxTRES: tres{"node": 2}}},
		{name: "memory", chem: l{MaxTRES: tres{"mem": 10}}, reason: "AssocMaxMemPerJob"},
		{name: "gres", chem: l{MaxTRES: tres{"gres/gpu": 0}}, reason: "AssocMaxGRESPerJob"},
		{name: "node", chem: l{MaxTRESPerNode: tres{"cpu": 1}}, reason: "AssocMaxCpuPerNode"},
		{name: "job minutes", chem: l{MaxTRESMins: tres{"cpu": 239}}, reason: "AssocMaxCpuMinutesPerJobLimit"},
		{name: "wall", chem: l{MaxWall: 59}, reason: "AssocMaxWallDurationPerJobLimit"},
		{name: "jobs", chem: l{MaxJobs: 1}, draws: "AssocMaxJobsLimit", left: 0},
		{name: "group", science: l{GrpTRES: tres{"cpu": 8}}, draws: "AssocGrpCpuLimit", left: 2},
		{name: "group of gpus", chem: l{GrpTRES: tres{"gres/gpu": 4}}, draws: "AssocGrpGRES", left: 1},
		{name: "group jobs", science: l{GrpJobs: 2}, draws: "AssocGrpJobsLimit", left: 1},
		{name: "group minutes", chem: l{GrpTRESMins: tres{"cpu": 1000}}, reason: "AssocGrpCPUMinutesLimit"},
		{name: "group run minutes", chem: l{GrpTRESRunMins: tres{"cpu": 299}}, reason: "AssocGrpCPURunMinutesLimit"},
		{name: "group run minutes left", chem: l{GrpTRESRunMins: tres{"cpu": 300}}},
		{name: "group wall", chem: l{GrpWall: 500}, reason: "AssocGrpWallLimit"},

		{name: "qos group minutes", qos: l{GrpTRESMins: tres{"cpu": 700}}, reason: "QOSGrpCPUMinutesLimit"},
		{name: "qos group minutes left", qos: l{GrpTRESMins: tres{"cpu": 701}}},
		{name: "qos group wall", qos: l{GrpWall: 90}, reason: "QOSGrpWallLimit"},
		{name: "qos group wall left", qos: l{GrpWall: 91}},
		{name: "qos group run minutes", qos: l{GrpTRESRunMins: tres{"cpu": 319}}, reason: "QOSGrpCPURunMinutesLimit"},
		{name: "qos job", qos: l{MaxTRES: tres{"cpu": 3}}, reason: "QOSMaxCpuPerJobLimit"},
		{name: "qos least", qos: l{MinTRES: tres{"cpu": 5}}, reason: "QOSMinCpuNotSatisfied"},
		{name: "qos wall", qos: l{MaxWall: 59}, reason: "QOSMaxWallDurationPerJobLimit"},
		{name: "qos user", qos: l{MaxTRESUser: tres{"cpu": 9}}, draws: "QOSMaxCpuPerUserLimit", left: 3},
		{name: "qos jobs of a user", qos: l{MaxJobsPerUser: 1}, draws: "QOSMaxJobsPerUserLimit", left: 0},
		{name: "qos account", qos: l{MaxTRESPerAccount: tres{"node": 2}}, draws: "MaxNodePerAccount", left: 1},
		{name: "qos group", qos: l{GrpTRES: tres{"cpu": 20}}, draws: "QOSGrpCpuLimit", left: 12},
		{name: "qos group jobs", qos: l{GrpJobs: 5}, draws: "QOSGrpJobsLimit", left: 3},
		{name: "the qos counts instead", qos: l{GrpTRES: tres{"cpu": 20}}, chem: l{GrpTRES: tres{"cpu": 1}}, draws: "QOSGrpCpuLimit", left: 12},
		{name: "of the same kind only", qos: l{GrpTRES: tres{"cpu": 20}}, chem: l{MaxTRES: tres{"cpu": 1}}, reason: "AssocMaxCpuPerJobLimit"},
		{name: "too large for ever", qos: l{GrpTRES: tres{"cpu": 3}}, reason: "QOSGrpCpuLimit"},
	} {
		u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "anna"}}
		u.Spec.Associations = []v1alpha1.Association{{Account: "chem", Limits: tt.user}}
		c := limits.New(&limits.Input{
			Accounts: []*v1alpha1.Account{
				account("science", "", tt.science),
				account("chem", "science", tt.chem),
				account("phys", "", l{}),
			},
			Users: []*v1alpha1.User{
				u,
			},
			QOS:          []*v1alpha1.QOS{qos("normal", tt.qos)},
			Running:      running,
			Minutes:      minutes,
			MinutesOfQOS: map[string]map[string]float64{"normal": {"cpu": 700, limits.WallMinutes: 90}},
		})
		reason, draws := c.Check(anna(4))
		if reason != tt.reason {
			t.Errorf("%s: %q, want %q", tt.name, reason, tt.reason)
			continue
		}
		var got []backfill.Limit
		for _, d := range draws {
			got = append(got, c.Limits[d])
		}
		if tt.draws == "" && len(got) > 0 ||
			tt.draws != "" && (len(got) != 1 || got[0].Reason != tt.draws || got[0].Left != tt.left) {
			t.Errorf("%s: %+v, want %s with %d left", tt.name, got, tt.draws, tt.left)
		}
	}
}

// Two jobs of one account draw on the same limit, and the QOS of a partition has limits too.
func TestLimitsAreShared(t *testing.T) {
	part := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Spec: v1alpha1.PartitionSpec{QOS: "part"}}
	c := limits.New(&limits.Input{
		Accounts: []*v1alpha1.Account{account("chem", "", v1alpha1.Limits{GrpJobs: 3})},
		QOS: []*v1alpha1.QOS{
			qos("part", v1alpha1.Limits{MaxJobsPerUser: 2}),
		},
		Partitions: []*v1alpha1.Partition{part},
	})
	a, b := anna(1), anna(2)
	a.Partition, b.User = "big", "ben"
	_, first := c.Check(a)
	_, second := c.Check(b)
	if len(first) != 2 || len(second) != 1 || first[1] != second[0] ||
		c.Limits[first[0]].Reason != "QOSMaxJobsPerUserLimit" {
		t.Errorf("%v %v %+v", first, second, c.Limits)
	}
}

// Where the QOS of the partition and of the job both have a limit, that of the partition
// applies, unless the QOS of the job has OverPartQOS.
func TestPartitionQOS(t *testing.T) {
	part := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Spec: v1alpha1.PartitionSpec{QOS: "part"}}
	own := qos("normal", v1alpha1.Limits{MaxTRES: tres{"cpu": 2}})
	c := limits.New(
		&limits.Input{
			QOS:        []*v1alpha1.QOS{own, qos("part", v1alpha1.Limits{MaxTRES: tres{"cpu": 8}, MaxWall: 30})},
			Partitions: []*v1alpha1.Partition{part},
		},
	)
	u := anna(4)
	u.Partition, u.Minutes = "big", 20
	if reason, _ := c.Check(u); reason != "" {
		t.Errorf("the partition's limit does not count: %s", reason)
	}
	own.Spec.Flags = []string{"OverPartQOS"}
	if reason, _ := c.Check(u); reason != "QOSMaxCpuPerJobLimit" {
		t.Errorf("OverPartQOS: %q", reason)
	}
	u.CPUs, u.Minutes = 1, 31
	if reason, _ := c.Check(u); reason != "QOSMaxWallDurationPerJobLimit" {
		t.Errorf("what only the partition limits: %q", reason)
	}
}

// Flags of a QOS exempt its jobs from limits of their partition.
func TestOverridden(t *testing.T) {
	spec := &v1alpha1.PartitionSpec{MinNodes: 2, MaxNodes: 4, MaxTime: 60}
	if limits.Overridden(spec, nil) != spec || limits.Overridden(spec, qos("q", v1alpha1.Limits{})) != spec {
		t.Error("the limits of a partition are changed without a flag of a QOS")
	}
	for _, tt := range []struct {
		flag string
		want [4]int32 // least and most nodes, most and assumed minutes
	}{
		{"PartitionMaxNodes", [4]int32{2, 0, 60, 0}},
		{"PartitionMinNodes", [4]int32{0, 4, 60, 0}},
		{"PartitionTimeLimit", [4]int32{2, 4, 0, 60}},
		{"NoReserve", [4]int32{2, 4, 60, 0}},
	} {
		q := qos("q", v1alpha1.Limits{})
		q.Spec.Flags = []string{tt.flag}
		if s := limits.Overridden(spec, q); [4]int32{s.MinNodes, s.MaxNodes, s.MaxTime, s.DefaultTime} != tt.want {
			t.Errorf("%s: %+v", tt.flag, s)
		}
	}
}

func TestAccountsInACycle(t *testing.T) {
	c := limits.New(
		&limits.Input{
			Accounts: []*v1alpha1.Account{
				account("a", "b", v1alpha1.Limits{GrpJobs: 1}),
				account("b", "a", v1alpha1.Limits{GrpJobs: 1}),
			},
		},
	)
	if _, draws := c.Check(&limits.Usage{Account: "a"}); len(draws) != 2 {
		t.Errorf("%v", draws)
	}
}

func TestSubmitted(t *testing.T) {
	counts := map[[3]string]int{
		{"chem", "anna", ""}:   2,
		{"chem", "", ""}:       5,
		{"science", "", ""}:    1,
		{"", "anna", "normal"}: 3,
		{"", "", "normal"}:     8,
	}
	active := func(account, user, qos string) int { return counts[[3]string{account, user, qos}] }
	type l = v1alpha1.Limits
	for _, tt := range []struct {
		science, chem, qos l
		more               int
		want               string
	}{
		{l{}, l{}, l{}, 1, ""},
		{l{}, l{MaxSubmitJobs: 2}, l{}, 1, "AssocMaxSubmitJobLimit"},
		{l{MaxSubmitJobs: 2}, l{}, l{}, 1, "AssocMaxSubmitJobLimit"},
		{l{MaxSubmitJobs: 2}, l{MaxSubmitJobs: 3}, l{}, 1, ""},
		{l{GrpSubmitJobs: 6}, l{}, l{}, 1, "AssocGrpSubmitJobsLimit"},
		{l{GrpSubmitJobs: 7}, l{}, l{}, 1, ""},
		{l{}, l{MaxSubmitJobs: 2}, l{MaxSubmitJobsPerUser: 4}, 1, ""},
		{l{}, l{}, l{MaxSubmitJobsPerUser: 3}, 1, "QOSMaxSubmitJobPerUserLimit"},
		{l{}, l{}, l{GrpSubmitJobs: 8}, 1, "QOSGrpSubmitJobsLimit"},
		{l{}, l{}, l{MaxSubmitJobsPerAccount: 1}, 2, "MaxSubmitJobsPerAccount"},
		{l{}, l{MaxSubmitJobs: 5}, l{}, 3, ""}, // an array of three
		{l{}, l{MaxSubmitJobs: 5}, l{}, 4, "AssocMaxSubmitJobLimit"},
	} {
		c := limits.New(&limits.Input{
			Accounts: []*v1alpha1.Account{account("science", "", tt.science), account("chem", "science", tt.chem)},
			QOS:      []*v1alpha1.QOS{qos("normal", tt.qos)},
		})
		if got := c.CheckSubmit(anna(1), tt.more, active); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestDenyOnLimit(t *testing.T) {
	small := qos("small", v1alpha1.Limits{MaxTRES: tres{"cpu": 2}, MaxWall: 10})
	strict := qos("strict", v1alpha1.Limits{MaxTRES: tres{"cpu": 2}, MaxWall: 10})
	strict.Spec.Flags = []string{"DenyOnLimit"}
	c := limits.New(&limits.Input{QOS: []*v1alpha1.QOS{small, strict},
		Accounts: []*v1alpha1.Account{account("chem", "", v1alpha1.Limits{MaxTRES: tres{"node": 1}})}})
	for _, tt := range []struct {
		qos         string
		cpus, nodes int64
		minutes     int64
		want        bool
	}{
		{"small", 99, 9, 99, false}, {"strict", 2, 1, 10, false}, {"strict", 3, 1, 10, true},
		{"strict", 1, 1, 11, true}, {"strict", 1, 1, 0, false}, {"strict", 1, 2, 0, true},
	} {
		if got := c.Denied(
			&limits.Usage{Account: "chem", QOS: tt.qos, CPUs: tt.cpus, Nodes: tt.nodes, Minutes: tt.minutes},
		); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// Running jobs count towards limits of billing with what they are billed
// (TRESBillingWeights), also after others have started and ended.
func TestBillingOfRunningJobs(t *testing.T) {
	job := func(billing int64) *limits.Usage {
		u := anna(1)
		u.Billing, u.Billed = billing, true
		return u
	}
	unbilled := anna(3) // its CPUs count
	c := limits.New(&limits.Input{
		Accounts: []*v1alpha1.Account{account("chem", "", v1alpha1.Limits{
			GrpTRES: tres{"billing": 150}, GrpTRESRunMins: tres{"billing": 20_000},
		})},
		Running: []limits.Usage{*job(100), *unbilled},
	})
	left := func() int64 {
		t.Helper()
		reason, draws := c.Check(job(10))
		if reason != "" || len(draws) != 1 {
			t.Fatalf("%q, %v", reason, draws)
		}
		return c.Limits[draws[0]].Left
	}
	if n := left(); n != 47 {
		t.Errorf("%d are left of 150 beside jobs billed 100 and 3", n)
	}
	c.Add(job(40))
	if n := left(); n != 7 {
		t.Errorf("%d are left after a job billed 40 has started", n)
	}
	c.Remove(job(40))
	c.Remove(job(100))
	if n := left(); n != 147 {
		t.Errorf("%d are left after two jobs have ended", n)
	}
	// 100 and 3 for 60 minutes, and 250 of this job for as long: 21,180 of 20,000.
	c.Add(job(100))
	if reason, _ := c.Check(job(250)); reason != "AssocGrpBillingRunMinutes" {
		t.Errorf("a job beyond the limit of running minutes: %q", reason)
	}
}
