package operations_test

import (
	"strconv"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/status"
)

// callers are users with their roles towards anna's jobs in the account lab.
var callers = map[string]authz.Roles{
	"anna":   authz.Of(authz.Anyone, authz.User, authz.Owner),
	"ben":    authz.Of(authz.Anyone, authz.User),
	"cora":   authz.Of(authz.Anyone, authz.User, authz.Coordinator),
	"opal":   authz.Of(authz.Anyone, authz.User, authz.Operator),
	"ada":    authz.Of(authz.Anyone, authz.User, authz.Operator, authz.Administrator),
	"nobody": authz.Of(authz.Anyone),
}

// TestRightsOfOperations: each operation on a job is refused to exactly those roles
// to which the table of rights refuses it.
func TestRightsOfOperations(t *testing.T) {
	c := newCluster(t)
	ada, cora := fake.User("ada", 1004), fake.User("cora", 1005)
	ada.Spec.AdminLevel = directory.LevelAdministrator
	faculty, lab := &v1alpha1.Account{}, &v1alpha1.Account{}
	faculty.Name, faculty.Spec.Coordinators = "faculty", []string{"cora"}
	lab.Name, lab.Spec.Parent = "lab", "faculty"
	fake.Feed(c.Cluster, ada, cora, faculty, lab)
	id, walked := int64(100), 0
	for _, rule := range authz.Rules() {
		op, ok := verbOf(rule)
		if !ok {
			continue
		}
		walked++
		for name, roles := range callers {
			id++
			c.add(t, id, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Account = "lab" })
			op.Jobs = []string{strconv.FormatInt(id, 10)}
			got := c.operation(t, name, op).Error
			allowed := rule.Grant(roles) == authz.Allow
			if refused := got == rule.Refusal; refused == allowed {
				t.Errorf("%s by %s (roles %b): %q, allowed: %v", op.Verb, name, roles, got, allowed)
			}
		}
	}
	if walked < 13 {
		t.Errorf("only %d operations were tried", walked)
	}
}

func verbOf(rule authz.Rule) (op status.Operation, ok bool) {
	if rule.Object != authz.Job {
		return op, false
	}
	op = status.Operation{Verb: string(rule.Action), Signal: 10, Message: "x", Set: map[string]string{"Comment": "x"}}
	switch rule.Action {
	case authz.Create,
		authz.Read,
		authz.Script,
		authz.Pods,
		authz.Events,
		authz.Attach,
		authz.Free,
		authz.Delete,
		authz.Touch:
		return op, false // not operations
	}
	return op, true
}
