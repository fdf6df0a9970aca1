// Package admission decides about requests to create, change and delete
// BatchJobs and to create pods in users' namespaces. The API server asks it
// before it stores anything.
//
// What a user may not choose is set here from the request's authenticated
// identity and from nothing else; what a user may not change is refused here.
// Everything is decided from memory: no request is made for an admission,
// except for a pod whose job this process does not know yet.
package admission

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
)

// Checker tells whether the cluster could ever run a job. The text of its
// error is Slurm's ("Requested node configuration is not available", ...).
type Checker interface {
	Feasible(*v1alpha1.BatchJob) error
}

// Forecaster says when and where a job would start if it were submitted now; ok
// is false when it has no time to say. See planner.Planner.
type Forecaster interface {
	Forecast(ctx context.Context, b *v1alpha1.BatchJob) (f *wire.Forecast, ok bool)
}

// IDs draws job ids. Peek is the next one; 0: not known.
type IDs interface {
	Peek() int64
	// Span draws n ids that follow each other.
	Span(ctx context.Context, n int64) (first int64, err error)
}

// Jobs is the table of jobs in the queue. Expect announces one that is about
// to be stored; the others keep places for what is being admitted.
type Jobs interface {
	Expect(id int64, user string)
	Reserve(p *table.Place, room table.Room) error
	Take(p *table.Place, id int64)
	GiveBack(p *table.Place)
	Resent(object string) bool
	// Stored returns how many bytes the user's jobs take (BatchJob.StoredBytes), and
	// how many of them the job with that id takes.
	Stored(user string, id int64) (all, job int64)
}

// Config says what an Admission decides by.
type Config struct {
	Directory *directory.Directory
	IDs       IDs
	Jobs      Jobs
	Checker   Checker // nil: everything is feasible
	// Forecast says when the job would start, asked by a dry run with
	// wire.AnnotationForecast; nil: nobody knows.
	Forecast Forecaster
	// Known is the job with that id as this process has it; Read asks the API
	// server for it.
	Known func(id int64) (*v1alpha1.BatchJob, bool)
	Read  func(ctx context.Context, namespace, name string) (*v1alpha1.BatchJob, error)
	// PodCreators are the identities that create the pods of jobs.
	PodCreators []string
	// Caller tells whether a request comes from the API server; its error
	// refuses it. nil: whoever reaches the webhooks may call them, which lets
	// them draw ids and use up other users' rate, but store nothing.
	Caller func(*http.Request) error
	// Secret, if set, is the last part of the webhooks' paths, which only
	// administrators and the API server can read where it is written (the
	// webhook configurations).
	Secret string
	// Rate is how many submissions a user may make in a second on average, where
	// the Cluster does not say, Burst how many at once. 0: DefaultRate, and what
	// comes in BurstTime.
	Rate  float64
	Burst int
	Now   func() time.Time
	Log   *slog.Logger
}

// Defaults of Config.
const (
	DefaultRate = 100
	BurstTime   = 5 * time.Second
	// DefaultMaxJobs is the most jobs in the queue (MaxJobCount).
	DefaultMaxJobs = 100000
)

// Admission serves the webhooks. Safe for concurrent use.
type Admission struct {
	Config
	creators map[string]bool

	rates rates
}

// New makes an Admission. Directory, IDs, Jobs, Known, Read and Now are
// needed.
func New(cfg Config) *Admission {
	a := &Admission{Config: cfg, creators: map[string]bool{}}
	if a.Rate == 0 {
		a.Rate = DefaultRate
	}
	if a.Log == nil {
		a.Log = slog.New(slog.DiscardHandler)
	}
	for _, name := range cfg.PodCreators {
		a.creators[name] = true
	}
	return a
}

// Register adds the webhooks to mux.
func (a *Admission) Register(mux *http.ServeMux) {
	tail := ""
	if a.Secret != "" {
		tail = "/{secret}"
	}
	mux.Handle("POST /mutate/batchjobs"+tail, a.webhook(a.mutateJob))
	mux.Handle("POST /validate/batchjobs"+tail, a.webhook(a.validateJob))
	mux.Handle("POST /mutate/pods"+tail, a.webhook(a.mutatePod))
}

// errCaller refuses who does not know the secret path.
var errCaller = errors.New("this path is the API server's")

// known tells whether the request may come from the API server.
func (a *Admission) known(r *http.Request) error {
	if a.Secret != "" && subtle.ConstantTimeCompare([]byte(r.PathValue("secret")), []byte(a.Secret)) != 1 {
		return errCaller
	}
	if a.Caller != nil {
		return a.Caller(r)
	}
	return nil
}

// decision is one webhook: a patch (may be nil), or an error that refuses.
type decision func(ctx context.Context, r *admissionv1.AdmissionRequest) (*patch, error)

// maxReview bounds a review: old and new object, both as large as the API
// server takes them.
const maxReview = 8 << 20

func (a *Admission) webhook(decide decision) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.known(r); err != nil {
			w.Header().Set("Connection", "close")
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		var review admissionv1.AdmissionReview
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(&review)
		if err != nil || review.Request == nil {
			http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
			return
		}
		answer := a.answer(r.Context(), review.Request, decide)
		answer.UID = review.Request.UID
		body, err := json.Marshal(&admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionv1.SchemeGroupVersion.String()},
			Response: answer,
		})
		if err != nil {
			http.Error(w, "answer", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the API server tries again if it is gone
	})
}

// Answer decides about a request for a BatchJob: the mutating webhook's part, or
// the validating one's.
func (a *Admission) Answer(ctx context.Context, mutating bool, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if mutating {
		return a.answer(ctx, r, a.mutateJob)
	}
	return a.answer(ctx, r, a.validateJob)
}

func (a *Admission) answer(ctx context.Context, r *admissionv1.AdmissionRequest, decide decision) *admissionv1.AdmissionResponse {
	p, err := decide(ctx, r)
	if err != nil {
		if !errors.As(err, new(*Refusal)) {
			a.Log.Error("admission failed", "resource", r.Resource.Resource, "namespace", r.Namespace, "name", r.Name, "error", err)
		}
		return errorResponse(err)
	}
	answer := &admissionv1.AdmissionResponse{Allowed: true}
	if p != nil {
		answer.Warnings = p.warnings
		if answer.Patch, err = p.json(); err != nil {
			return errorResponse(err)
		}
		if answer.Patch != nil {
			kind := admissionv1.PatchTypeJSONPatch
			answer.PatchType = &kind
		}
	}
	return answer
}
