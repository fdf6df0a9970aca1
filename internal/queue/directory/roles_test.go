package directory_test

import (
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// account returns an account below parent with these coordinators.
func account(name, parent string, coordinators ...string) *v1alpha1.Account {
	a := &v1alpha1.Account{}
	a.Name, a.Spec.Parent, a.Spec.Coordinators = name, parent, coordinators
	return a
}

// TestCoordinatorsHaveAccountsBelow: who coordinates an account also coordinates those below
// it, and no others. A cycle of accounts, which admission refuses, does no harm.
func TestCoordinatorsHaveAccountsBelow(t *testing.T) {
	c, d := newDirectory()
	fake.Feed(c,
		account("root", ""), account("lab", "root", "anna"), account("sub", "lab"), account("deep", "sub", "bob"),
		account("other", "root", "bob"), account("x", "y", "eve"), account("y", "x", "eve"),
	)
	for user, want := range map[string]map[string]bool{
		"anna": {"lab": true, "sub": true, "deep": true},
		"bob":  {"deep": true, "other": true},
		"eve":  {"x": true, "y": true},
		"carl": {},
		"":     {},
	} {
		got := d.Coordinates(user)
		for _, name := range []string{"root", "lab", "sub", "deep", "other", "x", "y", ""} {
			if got[name] != want[name] {
				t.Errorf("%q coordinates %q: %v", user, name, got[name])
			}
		}
	}
	fake.Feed(c, account("lab", "root"))
	if d.Coordinates("anna")["sub"] {
		t.Error("a removed coordinator still coordinates")
	}
}

// TestRolesOnJob: the roles of a caller towards a job of anna's in the account lab.
func TestRolesOnJob(t *testing.T) {
	c, d := newDirectory()
	fake.Feed(c, user("anna", 1), user("bob", 2), user("coord", 3), account("lab", "", "coord"))
	b := fake.Job(1, "anna", nil)
	b.Spec.Job.Account = "lab"
	unaccounted := fake.Job(2, "anna", nil)
	for _, tt := range []struct {
		identity string
		groups   []string
		b        *v1alpha1.BatchJob
		want     authz.Roles
	}{
		{"nobody", nil, b, authz.Of(authz.Anyone)},
		{"anna", nil, b, authz.Of(authz.Anyone, authz.User, authz.Owner)},
		{"system:serviceaccount:user-anna:berth-job", nil, b, authz.Of(authz.Anyone, authz.User, authz.Owner)},
		{"bob", nil, b, authz.Of(authz.Anyone, authz.User)},
		{"coord", nil, b, authz.Of(authz.Anyone, authz.User, authz.Coordinator)},
		{"coord", nil, unaccounted, authz.Of(authz.Anyone, authz.User)},
		{"cert:root", []string{directory.Masters}, b, authz.Of(authz.Anyone, authz.Operator, authz.Administrator)},
		{"system:berth", nil, b, authz.Of(authz.Anyone, authz.Operator, authz.Process)},
		{"system:apiserver", nil, b, authz.Of(authz.Anyone, authz.Controller)},
		{"system:kube-controller-manager", nil, b, authz.Of(authz.Anyone, authz.Controller)},
		{"system:serviceaccount:kube-system:job-controller", nil, b, authz.Of(authz.Anyone, authz.Controller)},
		{"system:serviceaccount:kube-system-x:job-controller", nil, b, authz.Of(authz.Anyone)},
		{"system:serviceaccount:user-x:kube-system:", nil, b, authz.Of(authz.Anyone)},
	} {
		if got := d.RolesOnJob(d.Resolve(tt.identity, tt.groups), tt.b); got != tt.want {
			t.Errorf("%s on job %d: roles %b, want %b", tt.identity, tt.b.Spec.JobID, got, tt.want)
		}
	}
}

// TestRequestWithoutUserOwnsNoJob: a job without an owner, as one that is being
// admitted, does not belong to callers without a User.
func TestRequestWithoutUserOwnsNoJob(t *testing.T) {
	_, d := newDirectory()
	if s := d.RolesOn(d.Resolve("", nil), "", ""); s != authz.Of(authz.Anyone) {
		t.Errorf("roles %b", s)
	}
}

// TestRefusals: the refusals depend on PrivateData, and an action without a rule is denied.
func TestRefusals(t *testing.T) {
	c, d := newDirectory()
	other, owner := authz.Of(authz.Anyone, authz.User), authz.Of(authz.Anyone, authz.User, authz.Owner)
	read := func(s authz.Roles) bool { return d.Refusal(s, authz.Job, authz.Read) == "" }
	if !read(other) || !read(owner) {
		t.Error("jobs are hidden without PrivateData")
	}
	for _, private := range []string{"jobs", "Jobs", "all"} {
		fake.Feed(c, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"usage", private}}))
		if read(other) || !read(owner) || !read(authz.Of(authz.Anyone, authz.Operator)) {
			t.Errorf("PrivateData=%s: another user reads %v, the owner %v", private, read(other), read(owner))
		}
	}
	fake.Feed(c, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"usage", "job"}}))
	if !read(other) {
		t.Error("PrivateData=usage hides jobs")
	}
	if got := d.Refusal(authz.Of(authz.Administrator), authz.Job, "no such action"); got != authz.Denied {
		t.Errorf("an action without a rule: %q", got)
	}
	if got := d.Refusal(0, authz.Job, authz.Read); got == "" {
		t.Error("a request that was not authenticated may read jobs")
	}
}
