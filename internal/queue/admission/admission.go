// Package admission decides about requests to create, change and delete BatchJobs
// and to create pods in users' namespaces. The API server calls it before it stores
// anything.
//
// It sets what a user may not choose, from the authenticated identity of the
// request and from nothing else, and refuses what a user may not change. It
// decides from memory, and reads from the API server only the job of a pod that
// this process does not know yet.
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

// Checker checks whether the cluster could ever run a job.
type Checker interface {
	// Feasible returns an error with Slurm's message ("Requested node configuration
	// is not available") if the job can never run.
	Feasible(*v1alpha1.BatchJob) error
	// FeasibleGRES checks only that the generic resources exist.
	FeasibleGRES(*v1alpha1.BatchJob) error
	// FeasibleNodes checks only that the required nodes exist.
	FeasibleNodes(*v1alpha1.BatchJob) error
	// FeasibleSize checks only the required nodes and the numbers of nodes and CPUs.
	// FeasibleExclusions checks the excluded nodes as well, and FeasibleNames also checks
	// features and generic resources.
	FeasibleSize(*v1alpha1.BatchJob) error
	FeasibleExclusions(*v1alpha1.BatchJob) error
	FeasibleNames(*v1alpha1.BatchJob) error
}

// Forecaster plans the start of a job without its submission. See planner.Planner.
type Forecaster interface {
	// Forecast returns when and where the job would start if it were submitted now;
	// ok is false if there is no time to plan it.
	Forecast(ctx context.Context, b *v1alpha1.BatchJob) (f *wire.Forecast, ok bool)
}

// IDs allocates job ids.
type IDs interface {
	// Peek returns the next id, or 0 if it is not known.
	Peek() int64
	// Span allocates n consecutive ids and returns the first.
	Span(ctx context.Context, n int64) (first int64, err error)
}

// Jobs is the table of jobs in the queue. Expect announces a job that is about to
// be stored; the other methods reserve places for jobs that are being admitted.
type Jobs interface {
	Expect(id int64, components int, user string)
	Reserve(p *table.Place, room table.Room) error
	Take(p *table.Place, id int64)
	GiveBack(p *table.Place)
	Resent(object string) bool
	// Stored returns the size of the user's jobs (BatchJob.StoredBytes), and the part
	// of it that the job with the id has.
	Stored(user string, id int64) (all, job int64)
}

// Config is the configuration of an Admission.
type Config struct {
	Directory *directory.Directory
	IDs       IDs
	Jobs      Jobs
	Checker   Checker // nil: everything is feasible
	// Forecast plans the start of the job of a dry run with wire.AnnotationForecast;
	// nil: no start is planned.
	Forecast Forecaster
	// Trace decides whether a job that was admitted, since began, is traced, and returns its
	// traceparent; "": it is not. nil: no job is traced.
	Trace func(b *v1alpha1.BatchJob, began time.Time) string
	// Known returns the job with the id from this process's store, Read a job from
	// the API server.
	Known func(id int64) (*v1alpha1.BatchJob, bool)
	Read  func(ctx context.Context, namespace, name string) (*v1alpha1.BatchJob, error)
	// PodCreators are the identities that create the pods of jobs.
	PodCreators []string
	// Caller returns an error for a request that does not come from the API server.
	// nil: everybody who reaches the webhooks may call them, and so use up ids and
	// other users' rates, but store nothing.
	Caller func(*http.Request) error
	// Secret, if set, is the last part of the webhooks' paths. Only administrators
	// and the API server can read the webhook configurations that contain it.
	Secret string
	// Rate is the number of submissions per second that a user may make on average,
	// where the Cluster does not set it; Burst the number at once. 0: DefaultRate, and
	// as many as in BurstTime.
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

// Admission serves the webhooks. It is safe for concurrent use.
type Admission struct {
	Config
	creators map[string]bool

	rates rates
}

// New returns an Admission. Directory, IDs, Jobs, Known, Read and Now are required.
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
	suffix := ""
	if a.Secret != "" {
		suffix = "/{secret}"
	}
	mux.Handle("POST /mutate/batchjobs"+suffix, a.webhook(a.mutateJob))
	mux.Handle("POST /validate/batchjobs"+suffix, a.webhook(a.validateJob))
	mux.Handle("POST /mutate/pods"+suffix, a.webhook(a.mutatePod))
}

var errCaller = errors.New("this path is for the API server only")

// checkCaller returns an error for a request that does not come from the API
// server.
func (a *Admission) checkCaller(r *http.Request) error {
	if a.Secret != "" && subtle.ConstantTimeCompare([]byte(r.PathValue("secret")), []byte(a.Secret)) != 1 {
		return errCaller
	}
	if a.Caller != nil {
		return a.Caller(r)
	}
	return nil
}

// decision is the logic of one webhook. It returns a patch, which may be nil, or an
// error that refuses the request.
type decision func(ctx context.Context, r *admissionv1.AdmissionRequest) (*patch, error)

// maxReviewBytes bounds a review, which has the old and the new object.
const maxReviewBytes = 8 << 20

func (a *Admission) webhook(decide decision) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.checkCaller(r); err != nil {
			w.Header().Set("Connection", "close")
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		var review admissionv1.AdmissionReview
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReviewBytes)).Decode(&review)
		if err != nil || review.Request == nil {
			http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
			return
		}
		response := a.review(r.Context(), review.Request, decide)
		response.UID = review.Request.UID
		body, err := json.Marshal(&admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionv1.SchemeGroupVersion.String()},
			Response: response,
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the API server retries a call without a response
	})
}

// ReviewJob decides about a request for a BatchJob, as the mutating or the
// validating webhook does.
func (a *Admission) ReviewJob(
	ctx context.Context, mutating bool, r *admissionv1.AdmissionRequest,
) *admissionv1.AdmissionResponse {
	if mutating {
		return a.review(ctx, r, a.mutateJob)
	}
	return a.review(ctx, r, a.validateJob)
}

func (a *Admission) review(
	ctx context.Context, r *admissionv1.AdmissionRequest, decide decision,
) *admissionv1.AdmissionResponse {
	p, err := decide(ctx, r)
	if err != nil {
		if !errors.As(err, new(*Refusal)) {
			a.Log.Error(
				"admission failed", "resource", r.Resource.Resource, "namespace", r.Namespace, "name", r.Name, "error",
				err,
			)
		}
		return errorResponse(err)
	}
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if p == nil {
		return response
	}
	response.Warnings = p.warnings
	if response.Patch, err = p.json(); err != nil {
		return errorResponse(err)
	}
	if response.Patch != nil {
		kind := admissionv1.PatchTypeJSONPatch
		response.PatchType = &kind
	}
	return response
}
