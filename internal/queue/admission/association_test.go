package admission_test

import (
	"testing"

	authv1 "k8s.io/api/authentication/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/refusal"
)

// newAssociations returns a harness with the accounts physics (QOS normal), theory below
// it, and arts (every QOS). anna is in physics and theory, and may use the QOS long in
// theory; ben is in no account.
func newAssociations(t *testing.T, enforce ...string) *harness {
	t.Helper()
	h := newHarness(t)
	physics, theory, arts := &v1alpha1.Account{}, &v1alpha1.Account{}, &v1alpha1.Account{}
	physics.Name, theory.Name, arts.Name = "physics", "theory", "arts"
	physics.Spec.QOS, theory.Spec.Parent = []string{"normal"}, "physics"
	high, long := &v1alpha1.QOS{}, &v1alpha1.QOS{}
	high.Name, long.Name = "high", "long"
	member := fake.User("anna", 1001)
	member.Spec.Accounts, member.Spec.DefaultAccount = []string{"physics", "theory"}, "physics"
	member.Spec.Associations = []v1alpha1.Association{{Account: "theory", QOS: []string{"normal", "long"}}}
	member.Spec.WCKeys = []string{"key"}
	fake.Feed(
		h.Cluster, physics, theory, arts, high, long, member,
		fake.Settings(v1alpha1.ClusterSpec{AccountingStorageEnforce: enforce}),
	)
	return h
}

// TestEnforcement: which submissions are refused for each AccountingStorageEnforce.
func TestEnforcement(t *testing.T) {
	const bad, badQOS, badKey = string(refusal.InvalidAccount), string(refusal.InvalidQOS), string(refusal.InvalidWCKey)
	for _, c := range []struct {
		enforce           []string
		by                authv1.UserInfo
		account, qos, key string
		want              string
	}{
		{nil, anna, "", "", "", ""},
		{nil, anna, "physics", "normal", "", ""},
		{nil, anna, "physics", "high", "", badQOS},
		{nil, anna, "", "high", "", badQOS},
		{nil, anna, "theory", "long", "", ""},
		{nil, anna, "theory", "high", "", badQOS},
		{nil, anna, "arts", "", "", bad},
		{nil, anna, "nowhere", "", "", bad},
		{nil, anna, "physics", "nothing", "", badQOS},
		{nil, ben, "", "", "", bad},
		{nil, ben, "physics", "", "", bad},
		{[]string{"associations"}, anna, "physics", "high", "", ""},
		{[]string{"associations"}, anna, "arts", "", "", bad},
		{[]string{"qos"}, anna, "arts", "", "", bad},
		{[]string{"none"}, anna, "arts", "high", "", ""},
		{[]string{"none"}, ben, "", "", "", ""},
		{[]string{"wckeys"}, anna, "", "", "", badKey},
		{[]string{"wckeys"}, anna, "", "", "other", badKey},
		{[]string{"wckeys"}, anna, "", "", "key", ""},
	} {
		h := newAssociations(t, c.enforce...)
		set := func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Account, b.Spec.Job.QOS, b.Spec.Job.WCKey = c.account, c.qos, c.key
		}
		b := submission(set)
		b.Namespace = "user-" + c.by.Username
		_, refused := h.create(t, c.by, b, false)
		got := ""
		if refused != nil {
			got = plain(t, refused)
		}
		if got != c.want {
			t.Errorf(
				"%q: a submission of %s to %q with QOS %q and key %q: %q, want %q", c.enforce, c.by.Username, c.account,
				c.qos, c.key, got, c.want,
			)
		}
	}
}

// TestEnforcementOfChanges: a job in the queue cannot be changed to one that may not be
// submitted; an operator may choose any QOS.
func TestEnforcementOfChanges(t *testing.T) {
	h := newAssociations(t)
	old := h.submit(t, anna, submission(nil))
	fake.Feed(h.Cluster, old)
	for _, c := range []struct {
		by           authv1.UserInfo
		account, qos string
		want         string
	}{
		{anna, "physics", "high", string(refusal.InvalidQOS)},
		{anna, "theory", "long", ""},
		{anna, "arts", "", string(refusal.InvalidAccount)},
		{opal, "physics", "high", ""},
	} {
		_, got := h.update(
			t, c.by, old, func(b *v1alpha1.BatchJob) { b.Spec.Job.Account, b.Spec.Job.QOS = c.account, c.qos },
		)
		if got != c.want {
			t.Errorf("a change by %s to %q with QOS %q: %q, want %q", c.by.Username, c.account, c.qos, got, c.want)
		}
	}
}

// TestLimitOfAQOS: a job without a time limit gets the MaxWall of its QOS, unless the limit of
// its partition is lower.
func TestLimitOfAQOS(t *testing.T) {
	h := newHarness(t)
	fast := &v1alpha1.QOS{}
	fast.Name, fast.Spec.Limits.MaxWall = "fast", 60
	fake.Feed(h.Cluster, fast,
		fake.Partition("debug", func(s *v1alpha1.PartitionSpec) { s.Default = true; s.SharedPaths = []string{"/home"} }),
		fake.Partition("batch", func(s *v1alpha1.PartitionSpec) { s.MaxTime, s.SharedPaths = 30, []string{"/home"} }))
	for _, c := range []struct {
		partition, qos string
		limit, want    int32
	}{{"debug", "fast", 0, 60}, {"batch", "fast", 0, 0}, {"debug", "fast", 20, 20}, {"debug", "", 0, 0}} {
		b := h.submit(t, anna, submission(func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Partitions, b.Spec.Job.QOS, b.Spec.Job.Time.Limit = []string{c.partition}, c.qos, c.limit
		}))
		if got := b.Spec.Job.Time.Limit; got != c.want {
			t.Errorf("%+v: a limit of %d minutes", c, got)
		}
	}
}
