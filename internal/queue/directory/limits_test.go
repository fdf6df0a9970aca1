package directory_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/limits"
)

// TestLimitsFollowChanges: a change of any object on which the limits depend is in
// force for the next submission.
func TestLimitsFollowChanges(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	d := directory.New(c, nil)
	refused := func() bool {
		use := limits.Usage{User: "anna", Account: "lab", QOS: "normal"}
		return d.Limits().CheckSubmit(&use, 2, func(string, string, string) int { return 0 }) != ""
	}
	if refused() {
		t.Fatal("a submission is refused without limits")
	}
	lab := &v1alpha1.Account{}
	lab.Name, lab.Spec.Limits.GrpSubmitJobs = "lab", 1
	fake.Feed(c, lab)
	if !refused() {
		t.Error("the limit of a new account is not in force")
	}
	fake.Feed(c, fake.Settings(v1alpha1.ClusterSpec{AccountingStorageEnforce: []string{"associations"}}))
	if refused() {
		t.Error("a limit is in force although AccountingStorageEnforce no longer names limits")
	}
}
