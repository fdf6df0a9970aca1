// Package agentapi is the server side of the agents' messages (internal/wire). It
// welcomes the agents of a gang when all of them have reported, sends commands to the
// batch host and receives its reports.
//
// An agent is authenticated by the token of its pod and by nothing else: the token names
// the pod, the pod's labels name job, attempt and index, and the BatchJob must agree. All
// that must outlive this process is in the BatchJob. An agent that lost its connection
// repeats its request and gets the same answer.
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
// arguments: an agent repeats a request that was not answered.
type Keeper interface {
	// GangReady is called when every agent of the attempt has said hello;
	// agents[i] is the agent of node i. It returns the job as written: RUNNING,
	// with its start time and the addresses.
	GangReady(ctx context.Context, jobID int64, attempt int32, agents []wire.AgentInfo) (*v1alpha1.BatchJob, error)
	// Report handles a report of the batch host's agent; nil: it is recorded.
	Report(ctx context.Context, jobID int64, attempt int32, r wire.Report) error
}

// Options are what a Server works with. Cluster and Keeper are needed.
type Options struct {
	Cluster *control.Cluster
	Keeper  Keeper
	// Gone reports whether an error of the Keeper means that the attempt is over;
	// nil: never.
	Gone func(error) bool
	// Leads reports whether this process certainly leads; nil: it does. While it does not,
	// agents have to try again, because another process may lead.
	Leads func() bool
	// Pool is shared with the starter; nil: no pod is reused for another job.
	Pool *Pool
	// PodPerJob reports whether no pod is kept for another job on the node (by its Kubernetes
	// name), because the plan does not count the CPUs of pods that wait; nil: nowhere.
	PodPerJob func(node string) bool
	// KubeURL is the API server's URL as pods reach it.
	KubeURL string
	// Poll is how long a query for commands is held; 0: 50 s.
	Poll time.Duration
	// Steps is called with what agents report of steps; nil: nothing is called. It must
	// return quickly.
	Steps func(jobID int64, attempt int32, list []wire.StepRecord)
	// Joined is called when the agent of a node of a job reports for the first time; nil:
	// nothing is called. It must return quickly.
	Joined func(b *v1alpha1.BatchJob, index int)
	// Traceparent returns the place of what runs in the job in a trace; nil or "": none.
	Traceparent func(b *v1alpha1.BatchJob) string

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: none
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

// New returns a Server. Call it before the stores of o.Cluster are fed.
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
	if o.Leads == nil {
		o.Leads = func() bool { return true }
	}
	if o.Joined == nil {
		o.Joined = func(*v1alpha1.BatchJob, int) {}
	}
	if o.Traceparent == nil {
		o.Traceparent = func(*v1alpha1.BatchJob) string { return "" }
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
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.Leads() {
		fail(w, errNotLeading)
		return
	}
	s.mux.ServeHTTP(&leaderWriter{w, s.Leads}, r)
}

var errNotLeading = &failure{http.StatusServiceUnavailable, "this scheduler may not lead any more; try again"}

// leaderWriter writes the answers of a process that leads. If it has stopped leading since
// the request arrived, its refusals, which are final for an agent, become temporary ones.
type leaderWriter struct {
	http.ResponseWriter
	leads func() bool
}

func (w *leaderWriter) WriteHeader(code int) {
	if code >= 400 && code < 500 && !w.leads() {
		code = errNotLeading.code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *leaderWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// attempt names one placement of one job.
type attempt struct {
	id int64
	n  int32
}

// jobChanged informs the agents that a change of a job concerns, and frees what is
// held for an attempt that has ended.
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

// gathering reports whether agents may still report for the job's gang.
func gathering(b *v1alpha1.BatchJob) bool {
	return pending(b) || b.Status.State == v1alpha1.StateConfiguring || b.Status.State == v1alpha1.StateRunning
}

// failure is an error response.
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
		w.Header().Set("Connection", "close") // do not keep connections that are not authenticated
	case http.StatusUnauthorized:
		w.Header().Set("Connection", "close")
	}
	http.Error(w, f.text, f.code)
}

// reread returns the job as the API server has it, with script and environment.
func (s *Server) reread(ctx context.Context, b *v1alpha1.BatchJob) (*v1alpha1.BatchJob, error) {
	live := &v1alpha1.BatchJob{}
	if err := s.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(b), live); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	live.Status = *live.CurrentStatus()
	return live, nil
}
