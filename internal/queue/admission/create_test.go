package admission_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/admission"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

func TestSubmission(t *testing.T) {
	h := newHarness(t)
	b := h.submit(t, anna, submission(nil))
	if b.Spec.JobID != 101 || b.Spec.User != "anna" || b.Spec.Partition != "main" || !b.Spec.SubmitTime.Time.Equal(now) {
		t.Errorf("stored: %+v", b.Spec)
	}
	want := map[string]string{"berth.hpc/job-id": "101", "berth.hpc/user": "anna"}
	if !maps.Equal(b.Labels, want) || !slices.Equal(b.Finalizers, ourFinalizers) {
		t.Errorf("labels %v, finalizers %v", b.Labels, b.Finalizers)
	}
	if b.Spec.Job.Name != "ring" || !bytes.Equal(b.Spec.Script, submission(nil).Spec.Script) {
		t.Error("the job itself was changed")
	}
	if next := h.submit(t, inAJob, submission(nil)); next.Spec.JobID != 102 || next.Spec.User != "anna" {
		t.Errorf("from within a job: %+v", next.Spec)
	}
}

func TestForgeryIsOverwritten(t *testing.T) {
	h := newHarness(t)
	longAgo := metav1.NewMicroTime(now.AddDate(-10, 0, 0))
	priority := int64(1 << 40)
	b := h.submit(t, anna, submission(func(b *v1alpha1.BatchJob) {
		b.Spec.JobID, b.Spec.User, b.Spec.Partition, b.Spec.SubmitTime = 7, "ben", "vip", &longAgo
		b.Spec.Cancel, b.Spec.Requeues = &v1alpha1.CancelRequest{By: "ben"}, 5
		b.Labels = map[string]string{"berth.hpc/job-id": "7", "berth.hpc/user": "ben", "app": "x"}
		b.Annotations = map[string]string{"berth.hpc/x": "y", "note": "z"}
		b.Finalizers = []string{"mine/forever", "orphan"}
		b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "u"}}
		b.Spec.Job.Priority, b.Spec.Job.AdminComment, b.Spec.Job.Hold = &priority, "boo", "admin"
	}))
	if b.Spec.JobID != 101 || b.Spec.User != "anna" || b.Spec.Partition != "main" || !b.Spec.SubmitTime.Time.Equal(now) || b.Spec.Cancel != nil || b.Spec.Requeues != 0 {
		t.Errorf("stored: %+v", b.Spec)
	}
	if len(b.Labels) != 2 || b.Labels["berth.hpc/job-id"] != "101" || !slices.Equal(b.Finalizers, ourFinalizers) || b.OwnerReferences != nil {
		t.Errorf("metadata: %+v", b.ObjectMeta)
	}
	if !maps.Equal(b.Annotations, map[string]string{"note": "z"}) {
		t.Errorf("annotations: %v", b.Annotations)
	}
	if j := b.Spec.Job; j.Priority != nil || j.AdminComment != "" || j.Hold != "user" {
		t.Errorf("job: %+v", j)
	}
}

func TestWhoMaySubmitWhere(t *testing.T) {
	h := newHarness(t)
	h.Users.Apply(func() *v1alpha1.User {
		u := fake.User("zoe", 1009)
		u.UID, u.ResourceVersion = "zoe", "9"
		u.Spec.Identities = []string{"https://idp#zoe"}
		return u
	}())
	for _, c := range []struct {
		by        authv1.UserInfo
		namespace string
		user      string // "": refused
	}{
		{anna, "user-anna", "anna"},
		{ben, "user-anna", ""},
		{opal, "user-anna", ""}, // an operator is not an administrator
		{root, "user-anna", "anna"},
		{root, "default", ""},
		{who("nobody"), "user-anna", ""},
		{who("system:serviceaccount:user-ben:berth-job"), "user-anna", ""},
		{who("system:serviceaccount:user-anna:other"), "user-anna", ""},
		{who("system:anonymous"), "user-anna", ""},
		{who("https://idp#zoe"), "user-zoe", "zoe"},
		{who("zoe"), "user-zoe", ""}, // the listed identities replace the name
	} {
		b, refused := h.create(t, c.by, submission(func(b *v1alpha1.BatchJob) { b.Namespace = c.namespace }), false)
		switch {
		case c.user == "" && refused == nil:
			t.Errorf("%s submitted in %s as %s", c.by.Username, c.namespace, b.Spec.User)
		case c.user != "" && (b == nil || b.Spec.User != c.user):
			t.Errorf("%s in %s: %v", c.by.Username, c.namespace, refused)
		}
	}
}

// TestDisabledUsers: nobody submits jobs of a disabled user but the scheduler, which creates
// parts of what was submitted before; and the user acts on nobody's jobs.
func TestDisabledUsers(t *testing.T) {
	h := newHarness(t)
	disabled := fake.User("anna", 1001)
	disabled.Spec.Disabled, disabled.Spec.AdminLevel = true, "Administrator"
	fake.Feed(h.Cluster, disabled)
	for _, by := range []authv1.UserInfo{anna, inAJob, root} {
		_, refused := h.create(t, by, submission(nil), false)
		if refused == nil || !strings.Contains(refused.Message, "Invalid user id: the user anna is disabled") {
			t.Errorf("%s: %v", by.Username, refused)
		}
	}
	ofBen := submission(func(b *v1alpha1.BatchJob) { b.Namespace = "user-ben" })
	if _, refused := h.create(t, anna, ofBen, false); refused == nil {
		t.Error("a disabled administrator submits for others")
	}
	if _, refused := h.create(t, who("system:berth-scheduler"), submission(nil), false); refused != nil {
		t.Errorf("the scheduler: %v", refused)
	}
}

// TestAmbiguousUsers: a namespace or an identity that two Users claim belongs to neither.
func TestAmbiguousUsers(t *testing.T) {
	h := newHarness(t)
	thief := fake.User("thief", 0)
	thief.Spec.Namespace, thief.Spec.Identities = "user-anna", []string{"ben", "system:berth-scheduler"}
	fake.Feed(h.Cluster, thief)
	if _, refused := h.create(t, anna, submission(nil), false); refused == nil {
		t.Error("a job in a namespace of two users is accepted")
	}
	if _, refused := h.create(t, ben, submission(func(b *v1alpha1.BatchJob) { b.Namespace = "user-ben" }), false); refused == nil {
		t.Error("a job of an identity of two users is accepted")
	}
}

func TestDryRunAllocatesNoID(t *testing.T) {
	h := newHarness(t)
	for _, forged := range []int64{0, 7} {
		b, refused := h.create(t, anna, submission(func(b *v1alpha1.BatchJob) { b.Spec.JobID = forged }), true)
		if refused != nil || b.Spec.JobID != admission.DryRunID || h.ids.last.Load() != 100 {
			t.Errorf("%v %v; last id %d", b, refused, h.ids.last.Load())
		}
	}
}

func newLimitedHarness(t *testing.T) *harness {
	h := newHarness(t, func(c *admission.Config) { c.Checker = checker{} })
	two := int64(2000)
	fake.Feed(h.Cluster,
		fake.Settings(v1alpha1.ClusterSpec{EnforcePartLimits: "ALL", Licenses: map[string]int32{"matlab": 5}}),
		fake.Partition("debug", func(s *v1alpha1.PartitionSpec) { s.Default = true; s.SharedPaths = []string{"/home", "/data/"} }),
		fake.Partition("batch", func(s *v1alpha1.PartitionSpec) {
			s.MaxTime, s.MaxNodes, s.MaxMemPerNode = 30, 3, &two
		}),
		fake.Partition("off", func(s *v1alpha1.PartitionSpec) { s.State = "INACTIVE" }),
		fake.Partition("down", func(s *v1alpha1.PartitionSpec) { s.State = "DOWN" }),
		fake.Partition("root", func(s *v1alpha1.PartitionSpec) { s.RootOnly = true }),
		fake.Partition("staff", func(s *v1alpha1.PartitionSpec) { s.AllowGroups = []string{"staff"} }),
		fake.Partition("wheel", func(s *v1alpha1.PartitionSpec) { s.AllowGroups = []string{"wheel"} }),
		fake.Partition("paid", func(s *v1alpha1.PartitionSpec) { s.AllowAccounts = []string{"physics"} }),
		fake.Partition("cloud", func(s *v1alpha1.PartitionSpec) {
			s.Template = runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"job","image":"example/image"}]}}`)}
		}),
	)
	return h
}

func TestRefusals(t *testing.T) {
	h := newLimitedHarness(t)
	on := func(parts ...string) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) { b.Spec.Job.Partitions = parts }
	}
	with := func(f func(*job.Job)) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) { f(&b.Spec.Job) }
	}
	mem := int64(3000)
	for name, c := range map[string]struct {
		change func(*v1alpha1.BatchJob)
		want   string // "" for accepted; else a prefix
	}{
		"default":  {nil, ""},
		"licenses": {with(func(j *job.Job) { j.Licenses = []job.License{{Name: "matlab", Count: 5}} }), ""},
		"more licenses in all than there are": {with(func(j *job.Job) {
			j.Licenses = []job.License{{Name: "matlab", Count: 3}, {Name: "matlab", Count: 3}}
		}), string(refusal.InvalidLicense)},
		"an array before nodes before licenses": {with(func(j *job.Job) {
			j.Array, j.Placement.NodeList = &job.Array{Spec: "0-999999"}, []string{"n9"}
		}), string(refusal.InvalidArray)},
		"nodes before licenses": {with(func(j *job.Job) {
			j.Placement.NodeList, j.Licenses = []string{"n9"}, []job.License{{Name: "nosuch", Count: 1}}
		}), "Invalid node name specified"},
		"nodes before the partition": {func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Partitions, b.Spec.Job.Placement.NodeList = []string{"nope"}, []string{"n9"}
		}, "Invalid node name specified"},
		"an array before the partition": {func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Partitions, b.Spec.Job.Array = []string{"nope"}, &job.Array{Spec: "0-999999"}
		}, string(refusal.InvalidArray)},
		"a priority before the array": {with(func(j *job.Job) {
			j.Nice, j.Array = -1, &job.Array{Spec: "0-999999"}
		}), string(refusal.InvalidNice)},
		"the partition before excluded nodes": {func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Partitions, b.Spec.Job.Placement.Exclude = []string{"nope"}, []string{"nosuch"}
		}, string(refusal.InvalidPartition)},
		"generic resources before the partition": {func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Partitions, b.Spec.Job.Shape.GRES = []string{"nope"}, []job.GRES{{Name: "fpga", Count: 1}}
		}, "Invalid generic resource (gres) specification"},
		"unknown partition":        {on("nope"), string(refusal.InvalidPartition)},
		"one unknown of two":       {on("debug", "nope"), string(refusal.InvalidPartition)},
		"inactive":                 {on("off"), string(refusal.PartitionUnavailable)},
		"down: the job only waits": {on("down"), ""},
		"root only":                {on("root"), string(refusal.AccessDenied)},
		"in the group":             {on("staff"), ""},
		"not in the group":         {on("wheel"), string(refusal.GroupNotPermitted)},
		"account":                  {on("paid"), string(refusal.InvalidAccount)},
		"right account": {with(func(j *job.Job) { j.Partitions, j.Account = []string{"paid"}, "physics" }),
			""},
		"time": {with(func(j *job.Job) { j.Partitions, j.Time.Limit = []string{"batch"}, 31 }),
			string(refusal.InvalidTimeLimit)},
		"time, least": {with(func(j *job.Job) { j.Partitions, j.Time.Limit, j.Time.Min = []string{"batch"}, 31, 10 }),
			""},
		"unlimited": {with(func(j *job.Job) { j.Partitions, j.Time.Limit = []string{"batch"}, job.Unlimited }),
			string(refusal.InvalidTimeLimit)},
		"nodes": {with(func(j *job.Job) { j.Partitions, j.Shape.MinNodes = []string{"batch"}, 4 }),
			string(refusal.InvalidNodeCount)},
		"no nodes": {with(func(j *job.Job) { j.Options = map[string]string{"nodes": "0"} }),
			string(refusal.InvalidNodeCount)},
		"no nodes, held": {with(func(j *job.Job) { j.Options, j.Hold = map[string]string{"nodes": "0"}, "user" }), ""},
		"memory": {with(func(j *job.Job) { j.Partitions, j.Shape.MemPerNode = []string{"batch"}, &mem }),
			string(refusal.MemoryUnavailable)},
		"all memory": {with(func(j *job.Job) { j.Partitions, j.Shape.MemPerNode = []string{"batch"}, new(int64) }),
			string(refusal.MemoryUnavailable)},
		"all of the partitions": {with(func(j *job.Job) { j.Partitions, j.Time.Limit = []string{"debug", "batch"}, 31 }),
			string(refusal.InvalidTimeLimit)},
		"infeasible": {with(func(j *job.Job) { j.Placement.NodeList = []string{"n9"} }), "Invalid node name specified"},
		"least time before the deadline": {with(func(j *job.Job) {
			j.Time.Min, j.Time.Begin, j.Time.Deadline = 10, now.Unix()+5, now.Unix()+541
		}), ""},
		"least time beyond the deadline": {with(func(j *job.Job) {
			j.Time.Min, j.Time.Deadline = 10, now.Unix()+540
		}), string(refusal.InvalidTimeMin)},
		"components with one node": {func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Placement.NodeList = []string{"n1"}
			b.Spec.Components = []job.Job{*b.Spec.Job.DeepCopy()}
		}, string(refusal.InvalidNode)},
		"a required node that is excluded": {with(func(j *job.Job) {
			j.Placement.NodeList, j.Placement.Exclude = []string{"n1", "n2"}, []string{"n1"}
		}), string(refusal.InvalidNode)},
		"nice": {with(func(j *job.Job) { j.Nice = -1 }), string(refusal.InvalidNice)},
		"expand": {with(func(j *job.Job) { j.Dependencies.Items = []job.Dependency{{Type: "expand", JobID: 1}} }),
			string(refusal.NotSupported)},
		"dependencies that could not be read": {with(func(j *job.Job) {
			j.Dependencies, j.Reservation = value.UnreadableDependencies(), "nosuch"
		}), string(refusal.DependencyProblem)},
		"dependency and feature": {with(func(j *job.Job) {
			j.Dependencies, j.Placement.Constraint = value.UnreadableDependencies(), "nosuch"
		}), string(refusal.DependencyProblem)},
		"dependency and excluded node": {with(func(j *job.Job) {
			j.Dependencies, j.Placement.Exclude = value.UnreadableDependencies(), []string{"nosuch"}
		}), "Invalid node name specified"},
		"feature": {with(func(j *job.Job) { j.Placement.Constraint = "nosuch" }), "Invalid feature specification"},
		"more tasks than indexes before that": {with(func(j *job.Job) {
			j.Dependencies, j.Array = value.UnreadableDependencies(), &job.Array{Spec: "0-1001"}
		}), string(refusal.InvalidArray)},
		"array": {with(func(j *job.Job) { j.Array = &job.Array{Spec: "0-1001", Indexes: []int32{0, 1001}} }),
			string(refusal.InvalidArray)},
		"long name": {with(func(j *job.Job) { j.Name = strings.Repeat("x", 2000) }), string(refusal.TooLong)},
		"directory": {with(func(j *job.Job) { j.Batch.WorkDir = "/tmp" }),
			"the nodes of partition debug do not see /tmp; submit from a directory in /home, /data/"},
		"escaping": {with(func(j *job.Job) { j.Batch.WorkDir = "/home/../tmp" }),
			"the nodes of partition debug do not see"},
		"a similar name": {with(func(j *job.Job) { j.Batch.WorkDir = "/home2/x" }),
			"the nodes of partition debug do not see"},
		"relative": {with(func(j *job.Job) { j.Batch.WorkDir = "work" }), "the job's directory"},
		"output elsewhere": {with(func(j *job.Job) { j.Batch.Output = "/scratch/%j.out" }),
			"the nodes of partition debug do not see /scratch"},
		"output up": {with(func(j *job.Job) { j.Batch.Output = "../../../%j/x.out" }),
			"the nodes of partition debug do not see"},
		"output below":   {with(func(j *job.Job) { j.Batch.Output = "logs/%j/x.out" }), ""},
		"output to null": {with(func(j *job.Job) { j.Batch.Output = "/dev/null" }), ""},
		"nothing shared": {on("cloud"), "the nodes of partition cloud share no directory"},
		"group": {with(func(j *job.Job) { j.Batch.Group = &job.Group{Name: "wheel", GID: 0} }),
			string(refusal.InvalidGroup)},
		"group of a component": {func(b *v1alpha1.BatchJob) {
			b.Spec.Components = []job.Job{{Batch: job.Batch{Group: &job.Group{GID: 50}}}}
		}, string(refusal.InvalidGroup)},
		"script not compressed": {func(b *v1alpha1.BatchJob) { b.Spec.Script = []byte("#!/bin/sh") },
			"spec.script is not zstd-compressed"},
		"empty script": {func(b *v1alpha1.BatchJob) { b.Spec.Script = compress("") },
			string(refusal.NoScript)},
		"script too large": {func(b *v1alpha1.BatchJob) { b.Spec.Script = compress(strings.Repeat("x", 4<<20+1)) },
			string(refusal.TooLong)},
		"a decompression bomb": {func(b *v1alpha1.BatchJob) { b.Spec.Environment = compress(strings.Repeat("\x00", 64<<20)) }, "spec.environment cannot be decompressed"},
	} {
		before := h.ids.last.Load()
		_, refused := h.create(t, anna, submission(c.change), false)
		if got := plain(t, refused); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if refused != nil && (h.ids.last.Load() != before || refused.Code != 403) {
			t.Errorf("%s: a refused submission allocated an id, or has code %d", name, refused.Code)
		}
	}
	if _, refused := h.create(t, root, submission(on("root")), false); refused != nil {
		t.Errorf("an administrator in a root-only partition: %s", refused.Message)
	}
	grouped := with(func(j *job.Job) { j.Batch.Group = &job.Group{Name: "lab", GID: 2000} })
	if _, refused := h.create(t, root, submission(grouped), false); refused != nil {
		t.Errorf("an administrator chooses a group: %s", refused.Message)
	}
}

func TestMalformed(t *testing.T) {
	h := newHarness(t)
	meta := map[string]any{"namespace": "user-anna", "name": "x"}
	for _, object := range []map[string]any{
		{"metadata": meta},
		{"metadata": meta, "spec": nil},
		{"metadata": meta, "spec": map[string]any{}},
		{"metadata": meta, "spec": map[string]any{"job": nil}},
		{"metadata": meta, "spec": map[string]any{"job": "x"}},
		{"metadata": meta, "spec": map[string]any{"job": map[string]any{"name": 5}}},
	} {
		if _, refused := h.create(t, anna, object, false); refused == nil || refused.Code != 403 {
			t.Errorf("%v: %v", object, refused)
		}
	}
}

func TestWithoutADefaultPartition(t *testing.T) {
	h := newHarness(t)
	fake.Feed(h.Cluster, fake.Partition("a", nil), fake.Partition("b", nil))
	_, refused := h.create(t, anna, submission(nil), false)
	if got := plain(t, refused); got != string(refusal.NoPartition) {
		t.Errorf("got %q", got)
	}
}

func TestDefaultsOfTheUser(t *testing.T) {
	h := newHarness(t)
	u := fake.User("carl", 1005)
	u.Spec.DefaultAccount, u.Spec.Accounts, u.Spec.DefaultQOS = "physics", []string{"physics", "chem"}, "normal"
	fake.Feed(h.Cluster, u)
	carl := who("carl")
	mine := func(account string) *v1alpha1.BatchJob {
		return submission(func(b *v1alpha1.BatchJob) { b.Namespace, b.Spec.Job.Account = "user-carl", account })
	}
	if b := h.submit(t, carl, mine("")); b.Spec.Job.Account != "physics" || b.Spec.Job.QOS != "normal" {
		t.Errorf("%+v", b.Spec.Job)
	}
	if b := h.submit(t, carl, mine("chem")); b.Spec.Job.Account != "chem" {
		t.Errorf("%+v", b.Spec.Job)
	}
	chem, high := &v1alpha1.Account{}, &v1alpha1.QOS{}
	chem.Name, high.Name = "chem", "high"
	fake.Feed(h.Cluster, chem, high)
	inCapitals := mine("CHEM")
	inCapitals.Spec.Job.QOS = "High"
	if b := h.submit(t, carl, inCapitals); b.Spec.Job.Account != "chem" || b.Spec.Job.QOS != "high" {
		t.Errorf("account and QOS in capitals: %q, %q", b.Spec.Job.Account, b.Spec.Job.QOS)
	}
	if _, refused := h.create(t, carl, mine("bio"), false); plain(t, refused) != string(refusal.InvalidAccount) {
		t.Errorf("%v", refused)
	}
}

func TestTooManyJobs(t *testing.T) {
	h := newHarness(t)
	fake.Feed(h.Cluster, fake.Settings(v1alpha1.ClusterSpec{MaxJobs: 2}))
	for range 2 {
		fake.Feed(h.Cluster, h.submit(t, anna, submission(func(b *v1alpha1.BatchJob) { b.Name = fmt.Sprintf("j-%d", h.ids.last.Load()) })))
	}
	_, refused := h.create(t, anna, submission(nil), false)
	if plain(t, refused) != string(refusal.TryAgain) || refused.Code != 429 || refused.Details.RetryAfterSeconds == 0 {
		t.Errorf("%+v", refused)
	}
}

func TestSubmitLimits(t *testing.T) {
	h := newHarness(t)
	acc := &v1alpha1.Account{}
	acc.Name, acc.Spec.Limits.MaxSubmitJobs = "small", 1
	other := &v1alpha1.Account{}
	other.Name = "other"
	member := fake.User("anna", 1001)
	member.Spec.Accounts, member.Spec.DefaultAccount = []string{"small", "other"}, "other"
	fake.Feed(h.Cluster, acc, other, member)
	small := func(b *v1alpha1.BatchJob) { b.Spec.Job.Account = "small" }
	fake.Feed(h.Cluster, h.submit(t, anna, submission(small)))
	_, refused := h.create(t, anna, named(2, small), false)
	if plain(t, refused) != "AssocMaxSubmitJobLimit\n"+string(refusal.PolicyViolation) {
		t.Errorf("%v", refused)
	}
	if _, refused := h.create(t, anna, submission(nil), false); refused != nil {
		t.Errorf("in the other account: %v", refused)
	}
}

func TestFlood(t *testing.T) {
	h := newHarness(t, func(c *admission.Config) { c.Rate, c.Burst = 1, 3 })
	for range 3 {
		h.submit(t, anna, submission(nil))
	}
	_, refused := h.create(t, anna, submission(nil), false)
	if plain(t, refused) != string(refusal.TryAgain) {
		t.Errorf("%v", refused)
	}
	h.submit(t, ben, submission(func(b *v1alpha1.BatchJob) { b.Namespace = "user-ben" }))
	h.submit(t, root, submission(nil))
}

// TestSchedulerMayChoose: the scheduler splits off array tasks with ids of their own.
func TestSchedulerMayChoose(t *testing.T) {
	h := newHarness(t)
	b := h.submit(t, scheduler, submission(func(b *v1alpha1.BatchJob) { b.Spec.JobID = 42 }))
	if b.Spec.JobID != 42 || b.Spec.User != "anna" {
		t.Errorf("%+v", b.Spec)
	}
	if b = h.submit(t, scheduler, submission(nil)); b.Spec.JobID != 101 {
		t.Errorf("%+v", b.Spec)
	}
}

type failing struct{}

func (failing) Peek() int64 { return 0 }

func (failing) Span(context.Context, int64) (int64, error) { return 0, errors.New("no ids") }

func TestFailureToAllocateIDs(t *testing.T) {
	h := newHarness(t, func(c *admission.Config) { c.IDs = failing{} })
	if _, refused := h.create(t, anna, submission(nil), false); refused == nil || refused.Code != 503 {
		t.Errorf("%v", refused)
	}
}

func BenchmarkCreate(b *testing.B) {
	h := newHarness(b, func(c *admission.Config) { c.Rate, c.Burst = 1e9, 1<<30 })
	env := make([]byte, 0, 4000)
	for i := range 100 {
		env = fmt.Appendf(env, "VARIABLE_%d=%032x\x00", i, i*7919)
	}
	object := submission(func(j *v1alpha1.BatchJob) { j.Spec.Environment = compress(string(env)) })
	for b.Loop() {
		h.submit(b, anna, object)
	}
}

// TestOnlyTheAPIServerCalls: calls from anywhere else are refused before anything is
// decided.
func TestOnlyTheAPIServerCalls(t *testing.T) {
	h := newHarness(t, func(c *admission.Config) {
		c.Caller = func(*http.Request) error { return errors.New("not the API server") }
	})
	for _, path := range []string{"/mutate/batchjobs", "/validate/batchjobs", "/mutate/pods"} {
		body := `{"request":{"uid":"x","operation":"CREATE","namespace":"user-anna","userInfo":{"username":"anna"},"object":{"spec":{"job":{}}}}}`
		rec := httptest.NewRecorder()
		h.mux.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
		if rec.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	if n := h.ids.last.Load(); n != 100 {
		t.Errorf("ids up to %d were allocated", n)
	}
}
