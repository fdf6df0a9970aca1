package agentapi_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// newScripted returns a fixture of a site with a prolog, with job 7 on two nodes.
func newScripted(t *testing.T, spec v1alpha1.SiteScripts, change func(*v1alpha1.BatchJob)) *fixture {
	t.Helper()
	h := newFixture(t)
	set := &v1alpha1.Cluster{}
	set.Name, set.Spec.SiteScripts = v1alpha1.ClusterName, spec
	fake.Feed(h.Cluster, set)
	b := h.place(t, 7, "anna", 1, 2)
	for _, n := range b.Status.Allocation.Nodes {
		node := &corev1.Node{}
		node.Name = n.Name
		if err := h.Client.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	if w := h.helloAll(t, 7, "anna", 1, 2); w[1].Site == nil || w[1].Site.Prolog != spec.Prolog || w[1].Site.Timeout != 300 {
		t.Errorf("the welcome has the site's programs %+v", w[1].Site)
	}
	now, _ := h.Job(7)
	now = now.DeepCopy()
	if change != nil {
		change(now)
	}
	fake.Feed(h.Cluster, now)
	return h
}

// reportFailure reports a failure on a node of job 7 and returns the code of the response.
func (h *fixture) reportFailure(t *testing.T, kind string, node int) int {
	t.Helper()
	r := wire.Report{JobID: 7, Attempt: 1, Kind: kind, Message: "it ended with status 3"}
	code, text := h.post(t.Context(), wire.PathReport, token(7, "anna", 1, node), r, nil)
	t.Logf("%d %s", code, text)
	return code
}

func (h *fixture) stored(t *testing.T, node string) (*v1alpha1.BatchJob, *corev1.Node) {
	t.Helper()
	b, n := &v1alpha1.BatchJob{}, &corev1.Node{}
	if err := h.Client.Get(t.Context(), client.ObjectKey{Namespace: "user-anna", Name: "j-7"}, b); err != nil {
		t.Fatal(err)
	}
	if err := h.Client.Get(t.Context(), client.ObjectKey{Name: node}, n); err != nil {
		t.Fatal(err)
	}
	return b, n
}

func TestPrologFails(t *testing.T) {
	h := newScripted(t, v1alpha1.SiteScripts{Prolog: "/x"}, nil)
	if code := h.reportFailure(t, wire.ReportProlog, 1); code != 200 {
		t.Fatal(code)
	}
	b, n := h.stored(t, "n2")
	if b.Spec.Requeues != 1 || b.Spec.Job.Hold != job.HoldLaunch {
		t.Errorf("the job is not requeued and held: %d requeues, hold %q", b.Spec.Requeues, b.Spec.Job.Hold)
	}
	if n.Spec.Unschedulable {
		t.Error("the report of an agent drained a node without DrainOnScriptError")
	}
}

func TestPrologDrains(t *testing.T) {
	h := newScripted(t, v1alpha1.SiteScripts{Prolog: "/x", DrainOnScriptError: true}, nil)
	if code := h.reportFailure(t, wire.ReportProlog, 1); code != 200 {
		t.Fatal(code)
	}
	_, n := h.stored(t, "n2")
	if !n.Spec.Unschedulable || n.Annotations[wire.AnnotationState] != "drain" || !strings.HasPrefix(n.Annotations[wire.AnnotationReason], "Prolog error [root@2026-01-02T03:04:05]") {
		t.Errorf("%+v %v", n.Spec, n.Annotations)
	}
	if _, other := h.stored(t, "n1"); other.Spec.Unschedulable {
		t.Error("another node was drained")
	}
}

func TestEpilogFails(t *testing.T) {
	h := newScripted(t, v1alpha1.SiteScripts{Prolog: "/x", DrainOnScriptError: true}, nil)
	if code := h.reportFailure(t, wire.ReportEpilog, 0); code != 200 {
		t.Fatal(code)
	}
	b, n := h.stored(t, "n1")
	if b.Spec.Requeues != 0 || b.Spec.Job.Hold != "" || !strings.HasPrefix(n.Annotations[wire.AnnotationReason], "Epilog error ") {
		t.Errorf("%d %q %v", b.Spec.Requeues, b.Spec.Job.Hold, n.Annotations)
	}
}

// A job that cannot be requeued fails.
func TestPrologFailsOfJobWithoutRequeue(t *testing.T) {
	no := false
	for name, change := range map[string]func(*v1alpha1.BatchJob){
		"--no-requeue": func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Requeue = &no },
		"salloc":       func(b *v1alpha1.BatchJob) { b.Spec.Job.Batch.Client = "salloc" },
	} {
		h := newScripted(t, v1alpha1.SiteScripts{Prolog: "/x"}, change)
		if code := h.reportFailure(t, wire.ReportProlog, 0); code != 200 {
			t.Fatal(name, code)
		}
		if len(h.reports) != 1 || h.reports[0].Kind != wire.ReportFailed || !strings.Contains(h.reports[0].Message, "Job prolog failed: it ended with status 3") {
			t.Errorf("%s: %+v", name, h.reports)
		}
		if b, _ := h.stored(t, "n1"); b.Spec.Requeues != 0 {
			t.Errorf("%s: requeued", name)
		}
	}
}
