package priority_test

import (
	"math"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/priority"
	"github.com/berth-hpc/berth/translate/status"
)

func account(name, parent string, share int64) *v1alpha1.Account {
	return &v1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.AccountSpec{Parent: parent, Limits: v1alpha1.Limits{Share: share}}}
}

func user(name string, accounts ...string) *v1alpha1.User {
	return &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.UserSpec{Accounts: accounts}}
}

// recorded is a cluster of 4 nodes with 4 CPUs as Slurm 22.05.8 had it when its
// answers were recorded (sshare -l -a, squeue -o %Q).
func recorded() priority.Input {
	return priority.Input{
		Now:   1000,
		Nodes: 4,
		CPUs:  16,
		Parameters: v1alpha1.Priority{
			PriorityWeights: map[string]int64{
				"age":       1000,
				"fairshare": 1000,
				"jobsize":   100,
				"partition": 1000,
				"qos":       1000,
			},
		},
		Accounts: []*v1alpha1.Account{
			account("other", "", 1),
			account("science", "", 1),
			account("a1", "science", 5),
		},
		Users: []*v1alpha1.User{
			user("refuser", "other", "science"),
			user("refuser2", "science"),
		},
		Partitions: []*v1alpha1.Partition{
			{ObjectMeta: metav1.ObjectMeta{Name: "debug"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "batch"}, Spec: v1alpha1.PartitionSpec{PriorityJobFactor: 10}},
		},
		QOS:   []*v1alpha1.QOS{{ObjectMeta: metav1.ObjectMeta{Name: "normal"}}},
		Usage: map[status.AssociationKey]float64{{Account: "science", User: "refuser"}: 2606},
	}
}

func TestPrioritiesAsSlurm(t *testing.T) {
	m := priority.New(recorded())
	for _, tt := range []struct {
		partition   string
		nodes, cpus int32
		nice        int32
		refuser     int64
		root        int64
	}{
		{"debug", 1, 1, 0, 365, 1115},
		{"debug", 1, 4, 0, 375, 1125},
		{"debug", 1, 8, 0, 387, 1137},
		{"debug", 2, 2, 0, 381, 1131},
		{"debug", 4, 16, 0, 450, 1200},
		{"debug", 1, 3, 100, 271, 1021},
		{"batch", 1, 2, 0, 1268, 2018},
		{"debug", 2, 4, 0, 387, 1137},
	} {
		j := priority.Job{
			Account:   "science",
			User:      "refuser",
			QOS:       "normal",
			Partition: tt.partition,
			Nodes:     tt.nodes,
			CPUs:      tt.cpus,
			Nice:      tt.nice,
		}
		if got := m.Of(1, &j); got != tt.refuser {
			t.Errorf("%+v: %d", tt, got)
		}
		for _, site := range []int32{500, -300, -3000} { // scontrol update SiteFactor
			s := j
			s.Site = site
			if got := m.Of(1, &s); got != max(1, tt.refuser+int64(site)) || m.Explain(1, &s).Site != int64(site) {
				t.Errorf("%+v with a site factor of %d: %d", tt, site, got)
			}
		}
		j.Account, j.User = "root", "root"
		if got := m.Of(1, &j); got != tt.root {
			t.Errorf("%+v of root: %d", tt, got)
		}
	}
}

func TestSharesAsSlurm(t *testing.T) {
	want := []struct {
		account, user                                      string
		depth                                              int
		normShares, usage, normUsage, effective, fs, level float64
	}{
		{"root", "", 0, 0, 2606, 1, 1, 0, 0},
		{"root", "root", 1, .333333, 0, 0, 0, 1, -1},
		{"other", "", 1, .333333, 0, 0, 0, 0, -1},
		{"other", "refuser", 2, 1, 0, 0, 0, 1, -1},
		{"science", "", 1, .333333, 2606, 1, 1, 0, .333333},
		{"science", "refuser", 2, .142857, 2606, 1, 1, .25, .142857},
		{"science", "refuser2", 2, .142857, 0, 0, 0, .5, -1},
		{"a1", "", 2, .714286, 0, 0, 0, 0, -1},
	}
	got := priority.New(recorded()).Shares()
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		g := got[i]
		same := g.Account == w.account && g.User == w.user && g.Depth == w.depth
		for _, x := range [][2]float64{{g.NormShares, w.normShares}, {g.RawUsage, w.usage}, {g.NormUsage, w.normUsage}, {g.EffectvUse, w.effective}, {g.FairShare, w.fs}, {g.LevelFS, w.level}} {
			same = same && math.Abs(x[0]-x[1]) < 1e-6
		}
		if !same && i > 0 {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
}

func TestFactors(t *testing.T) {
	in := recorded()
	day := int64(86400)
	in.Parameters.PriorityMaxAge = &day
	in.Parameters.PriorityWeightTRES = map[string]string{"CPU": "160", "gres/gpu": "100"}
	in.TRES = map[string]float64{"cpu": 16, "gres/gpu": 4}
	in.Parameters.PriorityWeights["assoc"] = 10
	in.QOS = []*v1alpha1.QOS{{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Spec: v1alpha1.QOSSpec{Priority: 20}},
		{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Spec: v1alpha1.QOSSpec{Priority: 5}}}
	in.Users[1].Spec.Associations = []v1alpha1.Association{{Account: "science", Limits: v1alpha1.Limits{Priority: 4}}}
	in.Now = 2 * day
	j := &priority.Job{
		Account:   "science",
		User:      "refuser2",
		QOS:       "low",
		Partition: "debug",
		Nodes:     1,
		CPUs:      4,
		Since:     in.Now - day/4,
		TRES:      map[string]float64{"cpu": 4, "gres/gpu": 1},
	}
	p := priority.New(in).Explain(1, j)
	for name, x := range map[string][2]float64{
		"age": {p.Age.Weighted, 250}, "fairshare": {p.FairShare.Weighted, 500}, "jobsize": {p.JobSize.Weighted, 25}, "part": {p.Part.Weighted, 100},
		"qos": {p.QOSTerm.Weighted, 250}, "assoc": {p.Assoc.Weighted, 10}, "cpu": {p.TRES["cpu"].Weighted, 40}, "gpu": {p.TRES["gres/gpu"].Weighted, 25},
	} {
		if math.Abs(x[0]-x[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
	if p.Priority != 1200 {
		t.Errorf("priority %d", p.Priority)
	}
	in.Parameters.PriorityFlags = []string{"NO_NORMAL_ALL"}
	if p := priority.New(in).Explain(1, j); p.QOSTerm.Weighted != 5000 || p.Assoc.Weighted != 40 ||
		p.TRES["cpu"].Weighted != 640 {
		t.Errorf("not normalized: %+v", p)
	}
	in.Parameters.PriorityFavorSmall = true
	if p := priority.New(in).Explain(1, j); math.Abs(p.JobSize.Normalized-0.75) > 1e-9 {
		t.Errorf("small first: %+v", p.JobSize)
	}
}

// The classic algorithm, by slurm.conf's formula F = 2^(-U/S).
func TestClassic(t *testing.T) {
	in := recorded()
	in.Parameters.PriorityFlags = []string{"NO_FAIR_TREE"}
	in.Usage = map[status.AssociationKey]float64{
		{Account: "science", User: "refuser"}: 300,
		{Account: "root", User: "root"}:       100,
	}
	m := priority.New(in)
	// science: S = 1/3, U = 3/4 (a child of root: its own). refuser there:
	// S = 1/21, U = 3/4 + (3/4 - 3/4)/7.
	for _, tt := range []struct {
		k    status.AssociationKey
		want float64
	}{
		{status.AssociationKey{Account: "science", User: "refuser"}, math.Exp2(-0.75 * 21)},
		{status.AssociationKey{Account: "science", User: "refuser2"}, math.Exp2(-0.75 / 7 * 21)},
		{status.AssociationKey{Account: "other", User: "refuser"}, 1},
		{status.AssociationKey{Account: "root", User: "root"}, math.Exp2(-0.25 * 3)},
	} {
		if got := m.Factor(tt.k); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", tt.k, got, tt.want)
		}
	}
}

func TestBasicWithoutWeights(t *testing.T) {
	m := priority.New(priority.Input{Nodes: 1, CPUs: 1})
	a, b := m.Of(1, &priority.Job{}), m.Of(2, &priority.Job{})
	if a != 4294901759 || b != a-1 || m.Of(3, &priority.Job{Nice: 100}) != a-102 {
		t.Errorf("%d %d", a, b)
	}
	if m := priority.New(
		priority.Input{Parameters: v1alpha1.Priority{PriorityType: "priority/multifactor"}},
	); m.Of(1, &priority.Job{}) != 1 {
		t.Error("multifactor without weights gives 1")
	}
}

// However the accounts hang together, loops included, every association has a
// factor in (0, 1], those who used less than all others of their account rank
// first there, and the same tree gives the same factors.
func TestFairTreeProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		in := recorded()
		names := []string{"", "root", "a", "b", "c", "nowhere"}
		in.Accounts = nil
		for _, n := range names[2:5] {
			in.Accounts = append(
				in.Accounts,
				account(n, rapid.SampledFrom(names).Draw(r, "parent"), rapid.Int64Range(0, 5).Draw(r, "share")),
			)
		}
		in.Users, in.Usage = nil, map[status.AssociationKey]float64{}
		for _, u := range []string{"u", "v", "w"} {
			in.Users = append(in.Users, user(u, names[2:5]...))
			for _, a := range names[2:5] {
				in.Usage[status.AssociationKey{Account: a, User: u}] = float64(rapid.IntRange(0, 3).Draw(r, "usage"))
			}
		}
		m, again := priority.New(in), priority.New(in)
		for k := range in.Usage {
			f := m.Factor(k)
			if f <= 0 || f > 1 || f != again.Factor(k) {
				t.Fatalf("%v: %v", k, f)
			}
			for other := range in.Usage {
				if other.Account == k.Account && in.Usage[other] > in.Usage[k] && m.Factor(other) > f {
					t.Fatalf("%v used less than %v and comes after it", k, other)
				}
			}
		}
	})
}
