// Package agentapi is the server side of the agents' messages (internal/wire):
// it welcomes the agents of a gang when all of them have reported, hands
// commands to the batch host and takes its reports.
//
// An agent is known by the token of its pod, and by nothing it says: the
// token names the pod, the pod's labels name job, attempt and index, and the
// BatchJob must agree. All that must survive this process is in the BatchJob;
// an agent that lost its connection asks again and gets the same answer.
package agentapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// Keeper decides about jobs. Its methods may be called again with the same
// arguments: an agent repeats what was not answered.
type Keeper interface {
	// GangReady is called when every agent of the attempt has said hello;
	// addresses[i] is host:port of node i's agent. It returns the job as
	// written: RUNNING, with its start time and the addresses.
	GangReady(ctx context.Context, jobID int64, attempt int32, addresses []string) (*v1alpha1.BatchJob, error)
	// Report is what the batch host's agent says; nil: it is on record.
	Report(ctx context.Context, jobID int64, attempt int32, r wire.Report) error
}

// Options say what a Server works with. Cluster and Keeper are needed.
type Options struct {
	Cluster *control.Cluster
	Keeper  Keeper
	// Gone tells whether an error of the Keeper means that the attempt is
	// over; nil: never.
	Gone func(error) bool
	// Pool is shared with who places tasks; nil: no pod goes from one task of an
	// array to the next.
	Pool *Pool
	// KubeURL is the API server's URL as pods reach it.
	KubeURL string
	// Poll is how long a query for commands is held; 0: 50 s.
	Poll time.Duration
	// Steps takes what agents tell about steps; nil: nobody wants to know. It
	// must be quick.
	Steps func(jobID int64, attempt int32, list []wire.StepRecord)
	Now   func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: none
}

// Server is an http.Handler for the agents' paths. Safe for concurrent use.
type Server struct {
	Options
	mux    *http.ServeMux
	tokens *tokens
	key    *key
	gangs  gangs
	boxes  boxes

	payloads payloads
}

// New makes a Server, before the stores of o.Cluster are fed.
func New(o Options) *Server {
	if o.Poll == 0 {
		o.Poll = 50 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Gone == nil {
		o.Gone = func(error) bool { return false }
	}
	s := &Server{Options: o, mux: http.NewServeMux(), key: &key{client: o.Cluster.Client}}
	s.tokens = newTokens(o.Cluster.Client, o.Now, func(h holder) bool {
		p, ok := o.Cluster.Pods.ByUID(h.uid)
		return ok && p.Namespace == h.namespace && p.Name == h.name
	})
	o.Cluster.Jobs.Subscribe(s.payloads.jobChanged)
	s.gangs.open = map[attempt]*gang{}
	s.boxes.open = map[attempt]*box{}
	s.boxes.now = o.Now
	o.Cluster.Jobs.Subscribe(s.jobChanged)
	s.mux.HandleFunc("POST "+wire.PathHello, s.hello)
	s.mux.HandleFunc("POST "+wire.PathCommands, s.commands)
	s.mux.HandleFunc("POST "+wire.PathReport, s.report)
	s.mux.HandleFunc("POST "+wire.PathSteps, s.stepReport)
	s.mux.HandleFunc("POST "+wire.PathNext, s.next)
	return s
}

// ServeHTTP answers the agents.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// attempt names one placement of one job.
type attempt struct {
	id int64
	n  int32
}

// jobChanged follows the queue: a change may mean that an agent is to be
// told, and the end of an attempt frees what is kept for it.
func (s *Server) jobChanged(old, now *v1alpha1.BatchJob) {
	if now == nil {
		s.boxes.drop(attempt{old.Spec.JobID, old.Status.Attempt})
		s.gangs.drop(attempt{old.Spec.JobID, old.Status.Attempt})
		return
	}
	at := attempt{now.Spec.JobID, now.Status.Attempt}
	if old != nil && old.Status.Attempt < now.Status.Attempt {
		s.boxes.drop(attempt{at.id, old.Status.Attempt})
		s.gangs.drop(attempt{at.id, old.Status.Attempt})
	}
	if now.Status.Allocation == nil {
		s.boxes.drop(at)
		s.gangs.drop(at)
		return
	}
	if !gathering(now) {
		s.gangs.drop(at)
	}
	if _, end := ending(now); end || old != nil && state(old) != state(now) {
		s.boxes.wake(at)
	}
}

// gathering tells whether agents may still come together for the job.
func gathering(b *v1alpha1.BatchJob) bool {
	return pending(b) || b.Status.State == v1alpha1.StateConfiguring || b.Status.State == v1alpha1.StateRunning
}

// failure is an answer that is not a success.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

func fail(w http.ResponseWriter, err error) {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{http.StatusServiceUnavailable, err.Error()}
	}
	switch f.code {
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Connection", "close") // no stranger's connection is kept
	case http.StatusUnauthorized:
		w.Header().Set("Connection", "close")
	}
	http.Error(w, f.text, f.code)
}

// reread is the job as the API server has it, script and environment
// included.
func (s *Server) reread(ctx context.Context, b *v1alpha1.BatchJob) (*v1alpha1.BatchJob, error) {
	live := &v1alpha1.BatchJob{}
	if err := s.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(b), live); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	live.Status = *live.CurrentStatus()
	return live, nil
}
