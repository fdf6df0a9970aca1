package admission_test

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
)

func TestCancelIsStamped(t *testing.T) {
	h := newHarness(t)
	b := h.submit(t, anna, submission(nil))
	for name, by := range map[string]authv1.UserInfo{"anna": anna, "opal": opal} {
		got, refused := h.update(t, by, b, func(b *v1alpha1.BatchJob) {
			b.Spec.Cancel = &v1alpha1.CancelRequest{By: "somebody"}
		})
		if refused != "" || got.Spec.Cancel.By != name || !got.Spec.Cancel.At.Time.Equal(now) {
			t.Errorf("by %s: %q %+v", name, refused, got)
		}
	}
	got, refused := h.update(t, scheduler, b, func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{By: "anna"} })
	if refused != "" || got.Spec.Cancel.By != "anna" {
		t.Errorf("the scheduler, for anna: %q %+v", refused, got)
	}
}

// attacks are changes that a user may not make to its own job.
var attacks = map[string]func(*v1alpha1.BatchJob){
	"id":            func(b *v1alpha1.BatchJob) { b.Spec.JobID = 1 },
	"user":          func(b *v1alpha1.BatchJob) { b.Spec.User = "ben" },
	"submit time":   func(b *v1alpha1.BatchJob) { t := metav1.NewMicroTime(now.AddDate(-1, 0, 0)); b.Spec.SubmitTime = &t },
	"partition":     func(b *v1alpha1.BatchJob) { b.Spec.Partition = "vip" },
	"script":        func(b *v1alpha1.BatchJob) { b.Spec.Script = compress("#!/bin/sh\nid\n") },
	"environment":   func(b *v1alpha1.BatchJob) { b.Spec.Environment = nil },
	"suspend":       func(b *v1alpha1.BatchJob) { b.Spec.Suspend = true },
	"arguments":     func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Args = []string{"x"} },
	"deadline":      func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Deadline = now.Unix() + 3600 },
	"factor":        func(b *v1alpha1.BatchJob) { b.Spec.Job.SiteFactor = 5 },
	"contiguous":    func(b *v1alpha1.BatchJob) { b.Spec.Job.Placement.Contiguous = true },
	"array":         func(b *v1alpha1.BatchJob) { b.Spec.Job.Array = &job.Array{Spec: "0-3"} },
	"group":         func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Group = &job.Group{GID: 0} },
	"options":       func(b *v1alpha1.BatchJob) { b.Spec.Job.Options = map[string]string{"x": "y"} },
	"licenses":      func(b *v1alpha1.BatchJob) { b.Spec.Job.Licenses = []job.License{{Name: "none", Count: 1}} },
	"reservation":   func(b *v1alpha1.BatchJob) { b.Spec.Job.Reservation = "none" },
	"partitions":    func(b *v1alpha1.BatchJob) { b.Spec.Job.Partitions = []string{"vip"} },
	"admin comment": func(b *v1alpha1.BatchJob) { b.Spec.Job.AdminComment = "boo" },
	"admin hold":    func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "admin" },
	"nicer":         func(b *v1alpha1.BatchJob) { b.Spec.Job.Nice = -5 },
	"priority":      func(b *v1alpha1.BatchJob) { p := int64(1 << 30); b.Spec.Job.Priority = &p },
	"requeues":      func(b *v1alpha1.BatchJob) { b.Spec.Requeues = 2 },
	"label":         func(b *v1alpha1.BatchJob) { b.Labels["berth.hpc/user"] = "ben" },
	"other label":   func(b *v1alpha1.BatchJob) { b.Labels["x"] = "y" },
	"no label":      func(b *v1alpha1.BatchJob) { b.Labels = nil },
	"annotation":    func(b *v1alpha1.BatchJob) { b.Annotations = map[string]string{"berth.hpc/state": "x"} },
	"no finalizer":  func(b *v1alpha1.BatchJob) { b.Finalizers = nil },
	"orphan":        func(b *v1alpha1.BatchJob) { b.Finalizers = append(b.Finalizers, "orphan") },
	"foreground":    func(b *v1alpha1.BatchJob) { b.Finalizers = append(b.Finalizers, "foregroundDeletion") },
	"own finalizer": func(b *v1alpha1.BatchJob) { b.Finalizers = append(b.Finalizers, "mine/x") },
	"owner":         func(b *v1alpha1.BatchJob) { b.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "x"}} },
}

func sixtyMinutes(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit, b.Spec.Job.Nice = 60, 10 }

func TestUserMayNotChange(t *testing.T) {
	h := newHarness(t)
	b := h.submit(t, anna, submission(sixtyMinutes))
	for name, change := range attacks {
		for _, by := range []authv1.UserInfo{anna, inAJob} {
			if _, refused := h.update(t, by, b, change); refused == "" {
				t.Errorf("%s: the change by %s is accepted", name, by.Username)
			}
		}
	}
}

// TestStartedJob: fields that a user may change only while the job is pending.
func TestStartedJob(t *testing.T) {
	h := newHarness(t)
	b := h.submit(t, anna, submission(sixtyMinutes))
	b.Status.State, b.Status.TimeLimit = v1alpha1.StateRunning, 60
	for name, c := range map[string]struct {
		change func(*v1alpha1.BatchJob)
		want   string
	}{
		"longer": {func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 61 }, string(refusal.AccessDenied)},
		"without limit": {func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = job.Unlimited },
			string(refusal.AccessDenied)},
		"default limit": {func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 0 }, string(refusal.AccessDenied)},
		"shorter":       {func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 59 }, ""},
		"nodes":         {func(b *v1alpha1.BatchJob) { b.Spec.Job.Shape.MinNodes = 1 }, string(refusal.NotPending)},
		"account":       {func(b *v1alpha1.BatchJob) { b.Spec.Job.Account = "rich" }, string(refusal.NotPending)},
		"suspend":       {attacks["suspend"], string(refusal.AccessDenied)},
	} {
		if _, refused := h.update(t, anna, b, c.change); refused != c.want {
			t.Errorf("%s: %q, want %q", name, refused, c.want)
		}
	}
	suspended, refused := h.update(t, opal, b, attacks["suspend"])
	if refused != "" {
		t.Fatalf("an operator suspends a job that runs: %s", refused)
	}
	resume := func(b *v1alpha1.BatchJob) { b.Spec.Suspend = false }
	if _, refused := h.update(t, anna, suspended, resume); refused != string(refusal.AccessDenied) {
		t.Errorf("its owner resumes it: %q", refused)
	}
	if _, refused := h.update(t, opal, suspended, resume); refused != "" {
		t.Errorf("an operator resumes it: %s", refused)
	}
}

// TestSubmissionOfASuspendedJob: only the scheduler submits a job that is suspended.
func TestSubmissionOfASuspendedJob(t *testing.T) {
	h := newHarness(t)
	for _, by := range []authv1.UserInfo{anna, inAJob, opal, root} {
		b := submission(attacks["suspend"])
		if by.Username == opal.Username {
			b.Namespace = "user-opal"
		}
		if _, refused := h.create(t, by, b, true); refused == nil || plain(t, refused) != string(refusal.AccessDenied) {
			t.Errorf("%s: %v", by.Username, refused)
		}
	}
}

// TestPartitionFollows: the partition of a job is the first of those requested.
func TestPartitionFollows(t *testing.T) {
	h := newHarness(t)
	for i, name := range []string{"main", "debug"} {
		p := &v1alpha1.Partition{}
		p.Name, p.Spec.Default = name, i == 0
		fake.Feed(h.Cluster, p)
	}
	b := h.submit(t, anna, submission(nil))
	got, refused := h.update(t, anna, b, func(b *v1alpha1.BatchJob) { b.Spec.Job.Partitions = []string{"debug", "main"} })
	if refused != "" || got.Spec.Partition != "debug" {
		t.Errorf("%q %+v", refused, got)
	}
}

func TestOthersMayChangeNothing(t *testing.T) {
	h := newHarness(t)
	b := h.submit(t, anna, submission(nil))
	cancel := func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{} }
	for _, by := range []authv1.UserInfo{ben, who("nobody"), who("system:serviceaccount:user-ben:berth-job"), who("system:serviceaccount:kube-system:generic-garbage-collector")} {
		if _, refused := h.update(t, by, b, cancel); refused != string(refusal.AccessDenied) {
			t.Errorf("%s: %q", by.Username, refused)
		}
	}
	touch := func(b *v1alpha1.BatchJob) { b.Annotations = map[string]string{"note": "x"} }
	if _, refused := h.update(t, who("system:serviceaccount:kube-system:generic-garbage-collector"), b, touch); refused != "" {
		t.Errorf("the garbage collector: %q", refused)
	}
}

func TestUserMayChange(t *testing.T) {
	h := newHarness(t)
	b := h.submit(t, anna, submission(sixtyMinutes))
	for name, change := range map[string]func(*v1alpha1.BatchJob){
		"hold":       func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" },
		"shorter":    func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 59 },
		"nice":       func(b *v1alpha1.BatchJob) { b.Spec.Job.Nice = 11 },
		"requeue":    func(b *v1alpha1.BatchJob) { b.Spec.Requeues = 1 },
		"comment":    func(b *v1alpha1.BatchJob) { b.Spec.Job.Comment = "x" },
		"annotation": func(b *v1alpha1.BatchJob) { b.Annotations = map[string]string{"note": "x"} },
		"less nice":  func(b *v1alpha1.BatchJob) { b.Spec.Job.Nice = 5 },
		"longer":     func(b *v1alpha1.BatchJob) { b.Spec.Job.Time.Limit = 61 },
		"directory":  func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.WorkDir = "/" },
		"nodes":      func(b *v1alpha1.BatchJob) { b.Spec.Job.Shape.MinNodes = 1 },
	} {
		if _, refused := h.update(t, anna, b, change); refused != "" {
			t.Errorf("%s: %s", name, refused)
		}
	}
}

func TestCancellationIsFinal(t *testing.T) {
	h := newHarness(t)
	b := h.submit(t, anna, submission(nil))
	b, _ = h.update(t, opal, b, func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{} })
	for name, change := range map[string]func(*v1alpha1.BatchJob){
		"undone":  func(b *v1alpha1.BatchJob) { b.Spec.Cancel = nil },
		"renamed": func(b *v1alpha1.BatchJob) { b.Spec.Cancel.By = "ben" },
		"emptied": func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{} },
	} {
		if _, refused := h.update(t, anna, b, change); refused == "" {
			t.Errorf("%s", name)
		}
	}
}

func TestHolds(t *testing.T) {
	h := newHarness(t)
	b := h.submit(t, anna, submission(nil))
	held, refused := h.update(t, opal, b, func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "admin" })
	if refused != "" {
		t.Fatal(refused)
	}
	release := func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "" }
	if _, refused := h.update(t, anna, held, release); refused != string(refusal.AccessDenied) {
		t.Errorf("the user releases an operator's hold: %q", refused)
	}
	if _, refused := h.update(t, opal, held, release); refused != "" {
		t.Errorf("the operator: %q", refused)
	}
	b.Status.State = v1alpha1.StateRunning
	if _, refused := h.update(t, anna, b, func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "user" }); refused != string(refusal.NotPending) {
		t.Errorf("a running job: %q", refused)
	}
}

func TestRequeueDisabled(t *testing.T) {
	h := newHarness(t)
	no := false
	b := h.submit(t, anna, submission(func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Requeue = &no }))
	if _, refused := h.update(t, anna, b, func(b *v1alpha1.BatchJob) { b.Spec.Requeues = 1 }); refused != string(refusal.Disabled) {
		t.Errorf("%q", refused)
	}
}

func TestOperatorMayChangeMore(t *testing.T) {
	h := newHarness(t)
	b := h.submit(t, anna, submission(sixtyMinutes))
	vip := &v1alpha1.Partition{}
	vip.Name = "vip"
	fake.Feed(h.Cluster, vip)
	for _, name := range []string{"partitions", "admin comment", "admin hold", "nicer", "priority", "deadline", "factor", "contiguous"} {
		if _, refused := h.update(t, opal, b, attacks[name]); refused != "" {
			t.Errorf("%s: %s", name, refused)
		}
	}
	for _, name := range []string{"id", "user", "submit time", "script", "environment", "arguments", "options", "group", "array", "suspend", "no label", "no finalizer", "owner"} {
		if _, refused := h.update(t, opal, b, attacks[name]); refused == "" {
			t.Errorf("%s: an operator may", name)
		}
	}
	if _, refused := h.update(t, root, b, attacks["no finalizer"]); refused != "" {
		t.Errorf("the administrator's way out: %s", refused)
	}
	if _, refused := h.update(t, scheduler, b, attacks["id"]); refused == "" {
		t.Error("the scheduler changes an id")
	}
}

func (h *harness) delete(tb testing.TB, by authv1.UserInfo, o metav1.DeleteOptions) string {
	tb.Helper()
	r := &admissionv1.AdmissionRequest{Operation: admissionv1.Delete, UserInfo: by, Namespace: "user-anna", OldObject: raw(tb, submission(nil)), Options: raw(tb, &o)}
	if a := h.post(tb, "/validate/batchjobs", r); !a.Allowed {
		return a.Result.Message
	}
	return ""
}

func TestDelete(t *testing.T) {
	h := newHarness(t)
	orphan, background, foreground, yes := metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, true
	for _, by := range []authv1.UserInfo{anna, inAJob, opal, root, scheduler, who("system:serviceaccount:kube-system:namespace-controller")} {
		for _, o := range []metav1.DeleteOptions{{}, {PropagationPolicy: &background}, {PropagationPolicy: &foreground}} {
			if refused := h.delete(t, by, o); refused != "" {
				t.Errorf("%s: %s", by.Username, refused)
			}
		}
	}
	for _, by := range []authv1.UserInfo{ben, who("nobody")} {
		if refused := h.delete(t, by, metav1.DeleteOptions{}); refused != string(refusal.AccessDenied) {
			t.Errorf("%s: %q", by.Username, refused)
		}
	}
	for _, by := range []authv1.UserInfo{anna, opal} {
		//nolint:staticcheck // the old field still takes effect
		for _, o := range []metav1.DeleteOptions{{PropagationPolicy: &orphan}, {OrphanDependents: &yes}} {
			if refused := h.delete(t, by, o); refused == "" {
				t.Errorf("%s leaves pods behind", by.Username)
			}
		}
	}
}
