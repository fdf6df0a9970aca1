package namespaces

import (
	"math"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/internal/wire"
)

// TestJobsAreProtected: each user's namespace has a budget for the pods of jobs and no
// others, a changed one is kept, and those of the controller are deleted when it is turned
// off.
func TestJobsAreProtected(t *testing.T) {
	sites := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "user-anna", Name: "site"}}
	c, log := newController(interceptor.Funcs{}, sites)
	c.settings.ProtectJobs = true
	c.cluster.Users.Apply(user("anna"))
	pass := func() *policyv1.PodDisruptionBudget {
		t.Helper()
		if !c.reconcileAll(t.Context()) {
			t.Fatal(log)
		}
		b := &policyv1.PodDisruptionBudget{}
		if !get(t, c, "user-anna", DisruptionBudgetName, b) {
			return nil
		}
		return b
	}
	b := pass()
	if b == nil || b.Spec.MinAvailable == nil || b.Spec.MinAvailable.IntValue() != math.MaxInt32 {
		t.Fatalf("the budget is %+v", b)
	}
	s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil || !s.Matches(labels.Set{wire.LabelJobID: "7"}) || s.Matches(labels.Set{"app": "x"}) {
		t.Errorf("it selects %v, %v", s, err)
	}
	none := intstr.FromInt32(0)
	b.Spec.MinAvailable = &none
	if err := c.cluster.Client.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if b := pass(); b.Spec.MinAvailable.IntValue() != 0 {
		t.Error("a changed budget was changed back")
	}
	c.settings.ProtectJobs = false
	if b := pass(); b != nil {
		t.Error("the budget is still there")
	}
	if !get(t, c, "user-anna", "site", sites) {
		t.Error("the site's own budget was deleted")
	}
}
