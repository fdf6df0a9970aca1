package directory_test

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/job"
)

// newDirectory returns a directory of an empty cluster whose own process is "system:berth".
func newDirectory() (*control.Cluster, *directory.Directory) {
	c := fake.Cluster(interceptor.Funcs{})
	return c, directory.New(c, []string{"system:berth"})
}

// user returns a user with these identities.
func user(name string, uid int64, identities ...string) *v1alpha1.User {
	u := fake.User(name, uid)
	u.Spec.Identities = identities
	return u
}

// resolved returns the name of the User for which the identity counts, or "".
func resolved(d *directory.Directory, identity string) string {
	if u := d.Resolve(identity, nil).User; u != nil {
		return u.Name
	}
	return ""
}

// TestIdentitiesOfUsers: a User has the identities of its list, or else its name, and the
// ServiceAccount of its jobs. No User can claim an identity of Kubernetes.
func TestIdentitiesOfUsers(t *testing.T) {
	c, d := newDirectory()
	fake.Feed(c,
		user("anna", 1001),
		user("bob", 1002, "oidc:bob", "bob@site", "oidc:bob"),
		user("eve", 1003, "system:admin", "system:serviceaccount:user-anna:berth-job", "eve"),
		user("empty", 1004, ""),
	)
	for identity, want := range map[string]string{
		"anna":     "anna",
		"bob":      "", // bob's list does not have it
		"oidc:bob": "bob",
		"bob@site": "bob",
		"eve":      "eve",
		"":         "",
		"empty":    "",
		"nobody":   "",

		"system:serviceaccount:user-anna:berth-job": "anna",
		"system:serviceaccount:user-bob:berth-job":  "bob",
		"system:serviceaccount:user-bob:other":      "",
		"system:serviceaccount:user-x:berth-job":    "",
		"system:admin":                              "",
	} {
		if got := resolved(d, identity); got != want {
			t.Errorf("%q is %q, want %q", identity, got, want)
		}
	}
}

// TestClaimedTwice: an identity or a namespace that several Users claim belongs to none of
// them, in whatever order they were created, and to the last one when the others are
// deleted.
func TestClaimedTwice(t *testing.T) {
	c, d := newDirectory()
	one, two, three := user("one", 1, "shared"), user("two", 2, "shared"), user("three", 3, "shared")
	for _, u := range []*v1alpha1.User{one, two, three} {
		u.Spec.Namespace = "home"
	}
	account := "system:serviceaccount:home:berth-job"
	fake.Feed(c, one)
	if resolved(d, "shared") != "one" || resolved(d, account) != "one" || d.Owner("home") == nil {
		t.Fatal("the only User does not have its identity and namespace")
	}
	fake.Feed(c, two, three)
	if got := resolved(d, "shared") + resolved(d, account); got != "" || d.Owner("home") != nil {
		t.Errorf("what three Users claim belongs to %q, the namespace to %v", got, d.Owner("home"))
	}
	c.Users.Remove(one, time.Now())
	if got := resolved(d, "shared"); got != "" {
		t.Errorf("what two Users claim belongs to %q", got)
	}
	c.Users.Remove(three, time.Now())
	if got := resolved(d, "shared"); got != "two" || d.Owner("home") != two || resolved(d, account) != "two" {
		t.Errorf("what only one User is left to claim belongs to %q", got)
	}
	if d.Owner("") != nil || d.Owner("other") != nil {
		t.Error("a namespace that no User names has an owner")
	}
}

// TestLevels: who is an operator and who an administrator.
func TestLevels(t *testing.T) {
	c, d := newDirectory()
	operator, admin, odd := user("op", 1), user("adm", 2), user("odd", 3)
	operator.Spec.AdminLevel = directory.LevelOperator
	admin.Spec.AdminLevel = directory.LevelAdministrator
	odd.Spec.AdminLevel = "administrator" // no level, and admission refuses it
	fake.Feed(c, operator, admin, odd, user("anna", 4))
	for _, tt := range []struct {
		identity                 string
		groups                   []string
		admin, operator, trusted bool
		name                     string
	}{
		{"anna", nil, false, false, false, "anna"},
		{"anna", []string{"system:authenticated", "system:master"}, false, false, false, "anna"},
		{"anna", []string{"system:authenticated", "system:masters"}, true, true, false, "anna"},
		{"op", nil, false, true, false, "op"},
		{"adm", nil, true, true, false, "adm"},
		{"odd", nil, false, false, false, "odd"},
		{"root@site", nil, false, false, false, "root@site"},
		{"system:berth", nil, false, true, true, "system:berth"},
		{"system:berth2", nil, false, false, false, "system:berth2"},
		{"system:serviceaccount:user-op:berth-job", nil, false, true, false, "op"},
	} {
		got := d.Resolve(tt.identity, tt.groups)
		if got.Admin != tt.admin || got.Operator != tt.operator || got.Trusted != tt.trusted || got.Name != tt.name {
			t.Errorf("%s %q: %+v", tt.identity, tt.groups, got)
		}
		if got.Identity != tt.identity || !slices.Equal(got.Groups, tt.groups) {
			t.Errorf("%s: the identity is recorded as %s %q", tt.identity, got.Identity, got.Groups)
		}
	}
}

func TestUsersByNameAndUID(t *testing.T) {
	c, d := newDirectory()
	fake.Feed(c, user("anna", 1001))
	if u := d.User("anna"); u == nil || d.UserByUID(1001) != u {
		t.Errorf("%v by name, %v by uid", u, d.UserByUID(1001))
	}
	if d.User("bob") != nil || d.UserByUID(0) != nil {
		t.Error("there is a user who was not created")
	}
	moved := user("anna", 1002)
	fake.Feed(c, moved)
	if d.UserByUID(1001) != nil || d.UserByUID(1002) != moved {
		t.Error("a changed uid is not followed")
	}
}

// TestDefaultPartition: jobs that name no partition get the one marked as default, or the
// only one.
func TestDefaultPartition(t *testing.T) {
	c, d := newDirectory()
	name := func() string {
		if p := d.Default(); p != nil {
			return p.Name
		}
		return ""
	}
	if name() != v1alpha1.DefaultPartition || d.Partition(v1alpha1.DefaultPartition) == nil {
		t.Errorf("without Partition objects the default is %q", name())
	}
	fake.Feed(c, fake.Partition("b", nil))
	if name() != "b" || d.Partition(v1alpha1.DefaultPartition) != nil {
		t.Errorf("with one partition the default is %q, and the built-in one is %v", name(), d.Partition("main"))
	}
	fake.Feed(c, fake.Partition("c", nil))
	if name() != "" {
		t.Errorf("of two partitions without a mark the default is %q", name())
	}
	fake.Feed(c, fake.Partition("a", func(s *v1alpha1.PartitionSpec) { s.Default = true }))
	if name() != "a" {
		t.Errorf("the default is %q", name())
	}
	var names []string
	for _, p := range d.Partitions() {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) || d.Partition("b") == nil || d.Partition("x") != nil {
		t.Errorf("partitions %q; b is %v, x is %v", names, d.Partition("b"), d.Partition("x"))
	}
}

// TestAccountsAndQOS: a cluster without accounts or QOS does not refuse any name.
func TestAccountsAndQOS(t *testing.T) {
	c, d := newDirectory()
	exists := func(f func(string) (string, bool), name string) bool { _, ok := f(name); return ok }
	if !exists(d.AccountName, "lab") || !exists(d.QOSName, "high") {
		t.Error("a name is refused by a cluster that has none")
	}
	lab, high := &v1alpha1.Account{}, &v1alpha1.QOS{}
	lab.Name, high.Name = "lab", "high"
	fake.Feed(c, lab, high)
	if a, known := d.Account("lab"); a != lab || !known || !exists(d.AccountName, "lab") || exists(d.AccountName, "la") {
		t.Errorf("account %v, known %v", a, known)
	}
	if q, known := d.QOS("high"); q != high || !known || !exists(d.QOSName, "high") || exists(d.QOSName, "hig") {
		t.Errorf("QOS %v, known %v", q, known)
	}
	// As in Slurm, case does not matter, and what was stored is shown.
	if name, ok := d.AccountName("Lab"); name != "lab" || !ok {
		t.Errorf("account Lab is %q, %v", name, ok)
	}
	if name, ok := d.QOSName("HIGH"); name != "high" || !ok {
		t.Errorf("QOS HIGH is %q, %v", name, ok)
	}
	if a, known := d.Account("other"); a != nil || !known {
		t.Errorf("an unknown account is %v, known %v", a, known)
	}
	u := user("anna", 1)
	u.Spec.DefaultAccount, u.Spec.Accounts = "lab", []string{"physics"}
	u.Spec.Associations = []v1alpha1.Association{{Account: "chem"}}
	for account, want := range map[string]bool{"lab": true, "physics": true, "chem": true, "": false, "bio": false} {
		if directory.HasAssociation(u, account) != want {
			t.Errorf("association with %q: %v", account, !want)
		}
	}
	if directory.HasAssociation(user("bob", 2), "") {
		t.Error("a user without accounts has an association with no account")
	}
}

func TestArraysAndReservations(t *testing.T) {
	c, d := newDirectory()
	fake.Feed(c, fake.Job(7, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Array = &job.Array{Spec: "1-3"} }), fake.Job(8, "anna", nil))
	for id, want := range map[int64]bool{7: true, 8: false, 9: false} {
		if d.IsArray(id) != want {
			t.Errorf("job %d is an array: %v", id, !want)
		}
	}
	r := &v1alpha1.Reservation{}
	r.Name = v1alpha1.ReservationObject("Big_Run")
	fake.Feed(c, r)
	if d.Reservation("Big_Run") != r || d.Reservation("big") != nil {
		t.Errorf("reservation %v", d.Reservation("Big_Run"))
	}
}

// TestRequeueable: what the job requests precedes the cluster's JobRequeue, which is on by
// default.
func TestRequeueable(t *testing.T) {
	c, d := newDirectory()
	yes, no := true, false
	check := func(cluster string, request *bool, want bool) {
		t.Helper()
		j := &job.Job{}
		j.Batch.Requeue = request
		if d.Requeueable(j) != want {
			t.Errorf("JobRequeue %s: requeueable %v", cluster, !want)
		}
	}
	check("not set", nil, true)
	check("not set", &no, false)
	fake.Feed(c, fake.Settings(v1alpha1.ClusterSpec{JobRequeue: &no}))
	check("0", nil, false)
	check("0", &yes, true)
	fake.Feed(c, fake.Settings(v1alpha1.ClusterSpec{JobRequeue: &yes}))
	check("1", nil, true)
}
