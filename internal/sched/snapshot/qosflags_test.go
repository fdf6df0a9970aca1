package snapshot

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/schedtest"
	"github.com/berth-hpc/berth/translate/status"
)

// What the flags of a QOS do to its jobs (sacctmgr(1)).
func TestQOSFlags(t *testing.T) {
	q := schedtest.QOS("q", func(*v1alpha1.QOSSpec) {})
	part := &v1alpha1.Partition{
		ObjectMeta: metav1.ObjectMeta{Name: "debug"},
		Spec:       v1alpha1.PartitionSpec{MaxNodes: 1, MaxTime: 60},
	}
	plan := func(used float64, flags ...string) (reason string, planned bool) {
		q.Spec.Flags = flags
		b := schedtest.Job(1)
		b.Spec.User, b.Spec.Job.QOS, b.Spec.Job.Account = "anna", "q", "chem"
		b.Spec.Job.Shape.MinNodes, b.Spec.Job.Time.Limit = 2, 120
		in := Input{
			Partitions: []*v1alpha1.Partition{part},
			Jobs:       []*v1alpha1.BatchJob{b, schedtest.Job(2, schedtest.RunningOn("0-3", "n1"))},
		}
		in.Policy = Policy{
			QOS: []*v1alpha1.QOS{q},
			Accounts: []*v1alpha1.Account{
				{ObjectMeta: metav1.ObjectMeta{Name: "chem"}},
				{ObjectMeta: metav1.ObjectMeta{Name: "phys"}},
			},
			Users: []*v1alpha1.User{
				{
					ObjectMeta: metav1.ObjectMeta{Name: "anna"},
					Spec:       v1alpha1.UserSpec{DefaultAccount: "chem", Accounts: []string{"chem"}},
				},
				{
					ObjectMeta: metav1.ObjectMeta{Name: "ben"},
					Spec:       v1alpha1.UserSpec{DefaultAccount: "phys", Accounts: []string{"phys"}},
				},
			},
			Usage: Usage{
				Associations: map[status.AssociationKey]map[string]float64{
					{Account: "chem", User: "anna"}: {"billing": used},
					{Account: "phys", User: "ben"}:  {"billing": 100},
				},
				QOS: map[string]map[string]float64{"q": {"cpu": used * 60}},
			},
		}
		s := newSnapshot(in)
		return s.Plan().Decisions[0].Reason, s.Pending[0].NoReserve
	}
	for _, tt := range []struct {
		name  string
		used  float64
		flags []string
		want  string
	}{
		{"none", 0, nil, "PartitionTimeLimit"},
		{"time", 0, []string{"PartitionTimeLimit"}, "PartitionNodeLimit"},
		{"time and nodes", 0, []string{"PartitionTimeLimit", "PartitionMaxNodes"}, ""},
	} {
		if got, _ := plan(tt.used, tt.flags...); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	free := []string{"PartitionTimeLimit", "PartitionMaxNodes"}
	if _, no := plan(0, append(free, "NoReserve")...); !no {
		t.Error("NoReserve is not handed on")
	}
	q.Spec.UsageThres = "0.6"
	if got, _ := plan(1e6, free...); got != "" {
		t.Errorf("a threshold that is not enforced: %q", got)
	}
	if got, _ := plan(1e6, append(free, "EnforceUsageThreshold")...); got != "QOSUsageThreshold" {
		t.Errorf("who has used too much: %q", got)
	}
	if got, _ := plan(0, append(free, "EnforceUsageThreshold")...); got != "" {
		t.Errorf("who has used nothing: %q", got)
	}
	q.Spec.Limits.GrpTRESMins = map[string]int64{"cpu": 50}
	if got, _ := plan(50, free...); got != "QOSGrpCPUMinutesLimit" {
		t.Errorf("minutes that finished runs of the QOS used: %q", got)
	}
}
