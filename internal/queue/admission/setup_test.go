package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	admissionv1 "k8s.io/api/admission/v1"
	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/admission"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// counter allocates consecutive ids.
type counter struct{ last atomic.Int64 }

func (c *counter) Span(_ context.Context, n int64) (int64, error) { return c.last.Add(n) - n + 1, nil }

func (c *counter) Peek() int64 { return c.last.Load() + 1 }

// harness is an Admission with fake stores, ids and a mux.
type harness struct {
	*control.Cluster
	ids *counter
	mux *http.ServeMux
	cfg admission.Config
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

// newHarness returns a harness with the users anna (uid 1001) and ben and the operator
// opal.
func newHarness(tb testing.TB, change ...func(*admission.Config)) *harness {
	h := &harness{Cluster: fake.Cluster(interceptor.Funcs{}), ids: &counter{}, mux: http.NewServeMux()}
	h.ids.last.Store(100)
	dir := directory.New(h.Cluster, []string{"system:berth-scheduler"})
	h.cfg = admission.Config{
		Directory: dir, IDs: h.ids, Jobs: table.New(h.Cluster, dir, nil), Known: h.Job,
		Read: func(context.Context, string, string) (*v1alpha1.BatchJob, error) {
			tb.Error("a job was read from the API server")
			return nil, context.Canceled
		},
		PodCreators: []string{jobController},
		Now:         func() time.Time { return now },
	}
	for _, f := range change {
		f(&h.cfg)
	}
	admission.New(h.cfg).Register(h.mux)
	opal := fake.User("opal", 1003)
	opal.Spec.AdminLevel = directory.LevelOperator
	fake.Feed(h.Cluster, fake.User("anna", 1001), fake.User("ben", 1002), opal)
	return h
}

const jobController = "system:serviceaccount:kube-system:job-controller"

// who returns the identity with the name.
func who(name string, groups ...string) authv1.UserInfo {
	return authv1.UserInfo{Username: name, Groups: append(groups, "system:authenticated")}
}

var (
	anna      = who("anna", "berth:users")
	ben       = who("ben", "berth:users")
	opal      = who("opal", "berth:users")
	root      = who("kubernetes-admin", "system:masters")
	scheduler = who("system:berth-scheduler")
	inAJob    = who("system:serviceaccount:user-anna:berth-job")
)

// encoder is shared: a new one takes milliseconds, and seconds where hundreds of tests
// make one at once under the race detector.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w
})

func compress(text string) []byte { return encoder().EncodeAll([]byte(text), nil) }

// submission returns a job as a client sends it.
func submission(change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{TypeMeta: metav1.TypeMeta{APIVersion: "berth.hpc/v1alpha1", Kind: "BatchJob"}}
	b.Name, b.Namespace = "j-abcdefghijklmnopqrst", "user-anna"
	b.Spec.Job = job.Job{Name: "ring", Shape: job.Shape{MinNodes: 3}, Batch: job.Batch{WorkDir: "/home/anna/work"}}
	b.Spec.Script = compress("#!/bin/bash\ntrue\n")
	b.Spec.Environment = compress("PATH=/bin\x00")
	if change != nil {
		change(b)
	}
	return b
}

func raw(tb testing.TB, v any) runtime.RawExtension {
	tb.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return runtime.RawExtension{Raw: data}
}

// post sends a review to a webhook.
func (h *harness) post(tb testing.TB, path string, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	tb.Helper()
	r.UID = "review-1"
	body, err := json.Marshal(&admissionv1.AdmissionReview{Request: r})
	if err != nil {
		tb.Fatal(err)
	}
	rec := httptest.NewRecorder()
	h.mux.ServeHTTP(rec, httptest.NewRequestWithContext(tb.Context(), http.MethodPost, path, bytes.NewReader(body)))
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(rec.Body.Bytes(), &review); err != nil || review.Response == nil ||
		review.Response.UID != "review-1" {
		tb.Fatalf("response %d %s", rec.Code, rec.Body)
	}
	return review.Response
}

// create sends a submission through both webhooks, as the API server does, and returns
// what would be stored, or nil and the refusal.
func (h *harness) create(tb testing.TB, by authv1.UserInfo, b any, dry bool) (*v1alpha1.BatchJob, *metav1.Status) {
	tb.Helper()
	object := raw(tb, b)
	var meta struct {
		Metadata struct{ Namespace string }
	}
	if err := json.Unmarshal(object.Raw, &meta); err != nil {
		tb.Fatal(err)
	}
	r := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		UserInfo:  by,
		Namespace: meta.Metadata.Namespace,
		Object:    object,
		DryRun:    &dry,
	}
	a := h.post(tb, "/mutate/batchjobs", r)
	if !a.Allowed {
		return nil, a.Result
	}
	stored := apply(tb, object.Raw, a.Patch)
	r.Object.Raw = stored
	if a := h.post(tb, "/validate/batchjobs", r); !a.Allowed {
		tb.Fatalf("the validating webhook refuses the result of the mutating one: %v", a.Result)
	}
	out := &v1alpha1.BatchJob{}
	if err := json.Unmarshal(stored, out); err != nil {
		tb.Fatal(err)
	}
	return out, nil
}

// submit is create for a submission that must be accepted.
func (h *harness) submit(tb testing.TB, by authv1.UserInfo, b *v1alpha1.BatchJob) *v1alpha1.BatchJob {
	tb.Helper()
	out, refused := h.create(tb, by, b, false)
	if refused != nil {
		tb.Fatalf("refused: %s", refused.Message)
	}
	return out
}

// update sends a change through both webhooks and returns what would be stored, or the
// message of the refusal.
func (h *harness) update(
	tb testing.TB, by authv1.UserInfo, old *v1alpha1.BatchJob, change func(*v1alpha1.BatchJob),
) (*v1alpha1.BatchJob, string) {
	tb.Helper()
	now := old.DeepCopy()
	change(now)
	r := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update,
		UserInfo:  by,
		Namespace: old.Namespace,
		Object:    raw(tb, now),
		OldObject: raw(tb, old),
	}
	a := h.post(tb, "/mutate/batchjobs", r)
	if !a.Allowed {
		return nil, a.Result.Message
	}
	if a.Patch != nil {
		r.Object.Raw = apply(tb, r.Object.Raw, a.Patch)
	}
	if a = h.post(tb, "/validate/batchjobs", r); !a.Allowed {
		return nil, a.Result.Message
	}
	out := &v1alpha1.BatchJob{}
	if err := json.Unmarshal(r.Object.Raw, out); err != nil {
		tb.Fatal(err)
	}
	return out, ""
}

func apply(tb testing.TB, object, patch []byte) []byte {
	tb.Helper()
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		tb.Fatal(err)
	}
	out, err := p.Apply(object)
	if err != nil {
		tb.Fatalf("%v: %s", err, patch)
	}
	return out
}

// plain returns the text of the refusal as clients read it.
func plain(tb testing.TB, s *metav1.Status) string {
	tb.Helper()
	if s == nil {
		return ""
	}
	if s.Details == nil || len(s.Details.Causes) != 1 || s.Details.Causes[0].Type != admission.CauseRefusal {
		tb.Fatalf("no cause in %+v", s)
	}
	return s.Details.Causes[0].Message
}

var ourFinalizers = []string{wire.Finalizer}

// checker refuses jobs on node n9.
type checker struct{}

func (checker) Feasible(b *v1alpha1.BatchJob) error {
	if slices.Contains(b.Spec.Job.Placement.NodeList, "n9") {
		return errors.New("Invalid node name specified")
	}
	return nil
}

func (c checker) FeasibleNodes(b *v1alpha1.BatchJob) error { return c.Feasible(b) }

func (c checker) FeasibleSize(b *v1alpha1.BatchJob) error { return c.Feasible(b) }

// FeasibleExclusions knows no node nosuch.
func (checker) FeasibleExclusions(b *v1alpha1.BatchJob) error {
	if slices.Contains(b.Spec.Job.Placement.Exclude, "nosuch") {
		return errors.New("Invalid node name specified")
	}
	return nil
}

// FeasibleNames knows no feature.
func (checker) FeasibleNames(b *v1alpha1.BatchJob) error {
	if b.Spec.Job.Placement.Constraint != "" {
		return errors.New("Invalid feature specification")
	}
	return nil
}

// FeasibleGRES knows only gpu.
func (checker) FeasibleGRES(b *v1alpha1.BatchJob) error {
	for _, g := range b.Spec.Job.Shape.GRES {
		if g.Name != "gpu" {
			return errors.New("Invalid generic resource (gres) specification")
		}
	}
	return nil
}
