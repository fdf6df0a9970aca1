package agentapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/member"
	"github.com/berth-hpc/berth/internal/wire"
)

// agent is an authenticated agent and its job.
type agent struct {
	member.Place                    // in the job that it runs now
	host         member.Place       // of the job whose pods it is in
	job          *v1alpha1.BatchJob // shared: not to be changed
	templateHash string             // of its pod (wire.AnnotationPodTemplateHash)
}

func (a *agent) attempt() attempt { return attempt{a.JobID, a.Attempt} }

var errOver = &failure{http.StatusGone, "this attempt of the job is over"}

// identify returns the agent that sent the request: token, pod, place and job, each
// checked against the one before. Only the current attempt of a job is served.
func (s *Server) identify(r *http.Request) (*agent, error) {
	h, err := s.tokens.holder(r)
	if err != nil {
		return nil, err
	}
	pod, err := s.pod(r.Context(), h)
	if err != nil {
		return nil, err
	}
	place, err := member.Of(pod)
	if err != nil {
		return nil, &failure{http.StatusForbidden, err.Error()}
	}
	b, err := s.jobOf(r.Context(), place)
	if err != nil {
		return nil, err
	}
	switch {
	case b == nil || b.RunsIn() != (v1alpha1.PodsOf{JobID: place.JobID, Attempt: place.Attempt}) ||
		b.Status.Allocation == nil:
		return nil, errOver
	case b.Namespace != pod.Namespace || place.Index >= len(b.Status.Allocation.Nodes):
		return nil, &failure{http.StatusForbidden, fmt.Sprintf("job %d has no such pod", place.JobID)}
	}
	return &agent{
		Place: member.Place{JobID: b.Spec.JobID, Attempt: b.Status.Attempt, Index: place.Index},
		host:  place, job: b, templateHash: pod.Annotations[wire.AnnotationPodTemplateHash],
	}, nil
}

// placeOf returns the place of the only agent of b.
func placeOf(b *v1alpha1.BatchJob) member.Place {
	return member.Place{JobID: b.Spec.JobID, Attempt: b.Status.Attempt}
}

// jobOf returns the job from the store, or from the API server if the pod belongs
// to a later attempt than the store has.
func (s *Server) jobOf(ctx context.Context, at member.Place) (*v1alpha1.BatchJob, error) {
	if b := s.inPods(v1alpha1.PodsOf{JobID: at.JobID, Attempt: at.Attempt}); b != nil {
		return b, nil // it reuses the pods
	}
	b, ok := s.Cluster.Job(at.JobID)
	if !ok {
		return nil, nil
	}
	if b.Status.Attempt < at.Attempt || b.Status.Attempt == at.Attempt && b.Status.Allocation == nil {
		return s.reread(ctx, b)
	}
	return b, nil
}

// maxBody bounds the body of a request.
const maxBody = 1 << 20

// receive reads the request's body into v.
func receive(w http.ResponseWriter, r *http.Request, v any) error {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(v); err != nil {
		return &failure{http.StatusBadRequest, "the message cannot be read: " + err.Error()}
	}
	return nil
}

// hold allows the answer to take longer than the server's own limits.
func (s *Server) hold(w http.ResponseWriter) {
	// A writer that knows no deadlines (a test's) needs none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.Poll + 30*time.Second))
}

func send(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // an agent that lost the answer repeats its request
}
